"""The policy that needs nothing: a checkpoint on this machine's CPU, through CTranslate2, many rollouts at once."""

import asyncio
import os
import weakref
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from agent.errors import ContextFull
from agent.policies.base import Chunk, Sampling
from agent.policies.batching import Engine, EngineUse, Request
from agent.policies.checkpoint import Checkpoint, open_checkpoint
from agent.policies.tokens import Codec, split_tags, whole
from agent.protocols.base import TextProtocol
from agent.trace import Author, Segment


class EmbeddedPolicy:
    """A checkpoint folder as a policy. It keeps every id that it sampled; text is never encoded twice."""

    continues = True
    instructed = False

    def __init__(self, checkpoint: Checkpoint, engine: Engine) -> None:
        self.checkpoint = checkpoint
        self._engine = engine
        weakref.finalize(self, engine.stop)

    @classmethod
    def load(cls, folder: Path, *, workers: int | None = None, compute_type: str = "default") -> "EmbeddedPolicy":
        """Check and load a checkpoint folder.

        Args:
            folder: what `cairn checkpoint export` made.
            workers: contexts that are worked on at the same time; one a core unless told otherwise.
            compute_type: CTranslate2's; `float32` where log-probabilities must agree with the trainer's.

        Raises:
            CheckpointError: the folder is missing, incomplete or damaged.
        """
        checkpoint = open_checkpoint(Path(folder))
        engine = Engine(
            checkpoint.folder,
            tokens=checkpoint.codec.tokens,
            eos=checkpoint.codec.eos,
            workers=workers or _cores(),
            compute_type=compute_type,
        )
        return cls(checkpoint, engine)

    @property
    def name(self) -> str:
        return self.checkpoint.manifest.name

    @property
    def context_tokens(self) -> int:
        return self.checkpoint.manifest.context_tokens

    @property
    def use(self) -> EngineUse:
        """What the engine has done so far."""
        return self._engine.use

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = ()
    ) -> "EmbeddedContext":
        """Open a context with the protocol's prompt.

        `history` is left out: these policies are trained on single questions. Tags in the question are plain text.

        Raises:
            ContextFull: the question is longer than the context.
        """
        return EmbeddedContext(self, protocol, question)

    def submit(self, request: Request) -> None:
        """Hand a request to the worker threads."""
        self._engine.submit(request)

    async def aclose(self) -> None:
        """End what is running and the threads."""
        await asyncio.to_thread(self._engine.close)


class EmbeddedContext:
    """One context that only grows, as segments with ids."""

    def __init__(self, policy: EmbeddedPolicy, protocol: TextProtocol, question: str) -> None:
        self._policy = policy
        self._codec = policy.checkpoint.codec
        self._limit = policy.context_tokens
        self._ids: list[int] = []
        self._segments: list[Segment] = []
        marks = {role: (protocol.opening(role), protocol.closing(role)) for role in protocol.tags}
        self._all_marks = [mark for pair in marks.values() for mark in pair]
        self._environment_marks = [
            mark for role, pair in marks.items() if role in ("information", "parents") for mark in pair
        ]
        before, hole, after = protocol.prompt.partition("{question}")
        pieces = split_tags(before, self._all_marks)
        pieces += [(whole(question) if hole else "", False), *split_tags(after, self._all_marks)]
        self._add("".join(piece for piece, _ in pieces), self._codec.encode_pieces(pieces), by="prompt")

    @property
    def segments(self) -> list[Segment]:
        return self._segments

    @property
    def tokens(self) -> int:
        return len(self._ids)

    def append(self, text: str, *, by: Author) -> Segment:
        """Put text into the context that the policy did not sample.

        What the environment says may hold its own tags only, what the loop says every tag of the protocol; all other
        marks, and all of them in what anyone else says, are plain text.

        Raises:
            ContextFull: there is no room for it; nothing was appended.
        """
        tags = {"environment": self._environment_marks, "loop": self._all_marks}.get(by, [])
        return self._add(whole(text), self._codec.encode(text, tags=tags), by=by)

    async def generate(self, sampling: Sampling, *, stop: Sequence[str], max_tokens: int) -> AsyncGenerator[Chunk]:
        """Continue the context; see `agent.policies.base.Context`. The end of the context ends it as `max_tokens` does.

        Log-probabilities are those of the policy itself, before temperature, top-k and top-p.
        """
        room = min(max_tokens, self._limit - len(self._ids))
        if room <= 0:
            raise ContextFull(f"the context of {self._limit} tokens is full")
        request = Request(
            prompt=tuple(self._ids),
            sampling=sampling,
            ends=frozenset({self._codec.eos, *(n for text in stop if (n := self._codec.id_of(text)) is not None)}),
            max_tokens=room,
            loop=asyncio.get_running_loop(),
        )
        turn = _Turn(self._codec, stop)
        self._policy.submit(request)
        try:
            while not turn.stopped and (sampled := await request.take()):
                yield turn.feed(sampled)
            cut = len(turn.ids) == room and not turn.stopped and turn.ids[-1] not in request.ends
            if (rest := turn.end()) or cut:
                yield Chunk(rest, cut=cut)
        finally:
            request.cancel()
            if turn.ids:
                turn.end()
                self._segments.append(
                    Segment(by="policy", text=turn.text, ids=tuple(turn.ids), logprobs=tuple(turn.logprobs))
                )
                self._ids += turn.ids

    def _add(self, text: str, ids: tuple[int, ...], *, by: Author) -> Segment:
        if len(self._ids) + len(ids) > self._limit:
            raise ContextFull(
                f"{len(ids)} tokens more do not fit: the context takes {self._limit} and holds {len(self._ids)}"
            )
        segment = Segment(by=by, text=text, ids=ids)
        self._ids += ids
        self._segments.append(segment)
        return segment


class _Turn:
    """What was sampled in one turn, up to the token that completes a stop text."""

    def __init__(self, codec: Codec, stop: Sequence[str]) -> None:
        self._stream = codec.stream()
        self._stop = stop
        self._longest = max(map(len, stop), default=0)
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.text = ""
        self.stopped = False

    def feed(self, sampled: Sequence[tuple[int, float]]) -> Chunk:
        first, shown = len(self.ids), len(self.text)
        for number, logprob in sampled:
            self.ids.append(number)
            self.logprobs.append(logprob)
            new = self._stream.feed(number)
            self.text += new
            tail = self.text[-(self._longest + len(new)) :]
            if new and any(mark in tail for mark in self._stop):
                self.stopped = True
                break
        return Chunk(self.text[shown:], tuple(self.ids[first:]), tuple(self.logprobs[first:]))

    def end(self) -> str:
        """The text of a character that stayed incomplete; nothing the second time."""
        rest = self._stream.end()
        self.text += rest
        return rest


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
