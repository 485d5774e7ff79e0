"""One worker's batch of the `transformers` engine: contexts that are read, and contexts that grow.

Requests whose contexts are the same are one line: it is read and computed once, each request draws for itself, and
they part where they say something else. The rollouts of one question have half of their tokens in common (docs/log.md).
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from agent.policies.requests import Request
from agent.policies.torch_memory import ContextMemory, MemoryPool
from agent.policies.torch_rows import EMPTY, BatchRows, Cache, choose, closed_up


@dataclass(frozen=True)
class TorchUse:
    """What was done so far, in tokens."""

    read: int = 0
    """Of prompts; what was kept from an earlier turn, or is another one's at the same time, is not read again."""
    sampled: int = 0

    def more(self, *, read: int = 0, sampled: int = 0) -> "TorchUse":
        return TorchUse(self.read + read, self.sampled + sampled)


@dataclass(eq=False)
class Work:
    """A request in the engine's hands."""

    request: Request
    memory: ContextMemory
    draws: torch.Generator
    said: int = 0
    """Its last token."""

    @classmethod
    def of(cls, request: Request, memory: ContextMemory) -> "Work":
        draws = torch.Generator()
        draws.manual_seed((request.sampling.seed * 1_000_003 + len(request.prompt)) % 2**63)
        return cls(request, memory, draws)


class ContextLine:
    """One context, and all requests whose context it is."""

    def __init__(self, prompt: tuple[int, ...], works: list[Work], said: int = 0) -> None:
        self.prompt = prompt
        self.ids = list(prompt)
        """And what is computed of what was said behind it."""
        self.works = works
        self.said = said
        """Behind them: sampled, not computed yet."""
        self.cache = EMPTY
        """Of the prompt, until the line grows."""
        self.logits: Tensor | None = None
        """Of what follows the prompt, [vocabulary], once it is read."""

    @property
    def over(self) -> bool:
        return all(work.request.over for work in self.works)

    @property
    def unread(self) -> list[int]:
        return self.ids[len(self.cache.ids) :]

    def drop(self) -> list[Work]:
        """Those that are over; they are its own no more."""
        over = [work for work in self.works if work.request.over]
        self.works = [work for work in self.works if work not in over]
        return over

    def part(self) -> "list[ContextLine]":
        """Go on with those that said the same as the first. The others, by what they said, are lines of their own."""
        by_said: dict[int, list[Work]] = {}
        for work in self.works:
            by_said.setdefault(work.said, []).append(work)
        (self.said, self.works), *others = by_said.items()
        return [ContextLine(tuple(self.ids), works, said) for said, works in others]

    def finish(self, why: str) -> None:
        for work in self.works:
            work.request.finish(why)


class WorkerBatch:
    """The lines of one worker. One thread calls it."""

    def __init__(
        self, rows: BatchRows, kept: MemoryPool, *, close: Callable[[ContextLine], object], together: bool = False
    ) -> None:
        """Begin with nothing.

        Args:
            rows: where the lines grow.
            kept: where contexts that end are remembered.
            close: called before a line is taken apart: from then on no request may be added to it.
            together: whether several prompts are read at once. That is for a GPU: on a CPU the padding costs more than
                a call of the model.
        """
        self._rows = rows
        self._kept = kept
        self._close = close
        self._together = together
        self._reading: deque[ContextLine] = deque()
        self._ready: deque[ContextLine] = deque()
        """Read, and nothing said yet: a later request with the same prompt has it for nothing."""
        self._growing: list[ContextLine] = []
        """In the order of the rows."""
        self.use = TorchUse()

    def __len__(self) -> int:
        return len(self._reading) + len(self._ready) + len(self._growing)

    @property
    def requests(self) -> int:
        """That are read or grow."""
        return sum(len(line.works) for line in (*self._reading, *self._ready, *self._growing))

    def turn(self, new: Sequence[ContextLine], *, read: int) -> None:
        """Add one token to each line that is read, and read at most `read` tokens of the others' prompts."""
        self._reading += new
        self._let_go()  # first: a new line may go on where one ended that is released here
        for line in new:
            line.cache = max((work.memory.known(line.ids) for work in line.works), key=lambda cache: len(cache.ids))
        self._begin()
        self._grow()
        while self._reading and read > 0:
            read -= self._read(read)

    def end_all(self, why: str) -> None:
        """End every request."""
        for line in (*self._reading, *self._ready, *self._growing):
            self._close(line)
            line.finish(why)
        self._reading.clear()
        self._ready.clear()
        self._growing = []
        self._rows.drop()

    def _read(self, most: int) -> int:
        """Read at most `most` tokens of the first prompts, and return their number."""
        lines = self._first(most)
        if not lines:
            return 0
        pieces = [line.unread[:most] for line in lines]
        count = sum(map(len, pieces))
        try:
            read = self._rows.extend_all([(line.cache, piece) for line, piece in zip(lines, pieces, strict=True)])
        except Exception as error:  # noqa: BLE001 - it belongs to these lines alone
            for line in lines:
                self._close(line)
                line.finish(f"the transformers engine failed: {error}")
                self._reading.remove(line)
            return count
        for line, (cache, logits) in zip(lines, read, strict=True):
            line.cache = cache
            if not line.unread:
                line.logits = logits
                self._reading.remove(line)
                self._ready.append(line)
        self.use = self.use.more(read=count)
        return count

    def _first(self, most: int) -> list[ContextLine]:
        """The lines that are read now: the first one, or as many as are read together where that is faster.

        Together they have at most `most` tokens to read, padding included.
        """
        lines: list[ContextLine] = []
        longest = 0
        for line in list(self._reading):
            if lines and not self._together:
                break
            if line.over:
                self._close(line)
            if line.over:  # no request joined meanwhile
                self._reading.remove(line)
                self._remember(line.works, line.cache)
                continue
            longest = max(longest, len(line.unread))
            if lines and longest * (len(lines) + 1) > most:
                break
            lines.append(line)
        return lines

    def _begin(self) -> None:
        """Give the prompts that are read their first tokens."""
        while self._ready:
            line = self._ready[0]
            self._close(line)
            assert line.logits is not None
            self._draw([line], line.logits[None])
            cache, line.cache, line.logits = line.cache, EMPTY, None
            self._remember(line.drop(), cache)
            if line.works:
                lines = [line, *line.part()]
                self._growing += lines  # before anything can fail: the requests in them get the error
                for _ in lines:
                    self._rows.join(cache)
            self._ready.popleft()

    def _grow(self) -> None:
        if not self._growing:
            return
        logits = self._rows.step([line.said for line in self._growing])
        for line in self._growing:
            line.ids.append(line.said)
        self._draw(self._growing, logits)
        self._let_go()
        for row, line in enumerate(list(self._growing)):
            if others := line.part():
                self._growing += others
                cache = self._cache(row)
                for _ in others:
                    self._rows.join(cache)

    def _draw(self, lines: Sequence[ContextLine], logits: Tensor) -> None:
        """Let each request draw its token from its line's row of the logits."""
        rows = [row for row, line in enumerate(lines) for _ in line.works]
        works = [work for line in lines for work in line.works]
        chosen = choose(logits[rows], [work.request.sampling for work in works], [work.draws for work in works])
        for work, (number, logprob) in zip(works, chosen, strict=True):
            work.said = number
            work.request.put(number, logprob)
        self.use = self.use.more(sampled=len(works))

    def _let_go(self) -> None:
        """Release the requests that are over, and the lines without a request."""
        for row, line in enumerate(self._growing):
            if over := line.drop():
                self._remember(over, self._cache(row))
        left = closed_up([bool(line.works) for line in self._growing])
        if len(left) < len(self._growing):
            self._rows.keep(left)
            self._growing = [self._growing[row] for row in left]

    def _cache(self, row: int) -> Cache:
        return Cache(tuple(self._growing[row].ids), self._rows.take(row))

    def _remember(self, works: Sequence[Work], cache: Cache) -> None:
        for work in works:
            self._kept.keep(work.memory, cache)
