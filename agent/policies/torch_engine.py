"""The worker thread of the `transformers` engine: requests in, tokens out, any number of rollouts in one batch.

Each turn of the thread reads a piece of one new context and adds one token to every context that is read already, so
nobody waits for a long prompt of somebody else's. What was computed for a context is kept until its next turn.
"""

import atexit
import threading
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import torch

from agent.errors import PolicyError
from agent.policies.base import Sampling
from agent.policies.requests import Request, sample_through
from agent.policies.token_context import Sampled
from agent.policies.torch_rows import EMPTY, Cache, Rows, choose, closed_up

PIECE_TOKENS: Final = 512
"""Of a prompt that are read between two tokens of the others."""
ROWS: Final = 32
"""Contexts that grow at the same time at most."""
KEPT_BYTES: Final = 1 << 30
"""Of keys and values of contexts that wait for their next turn."""
_CLOSED: Final = "the transformers policy was closed"


class Session:
    """One context's way into the engine; a `Sampler`. It remembers what was computed for the context."""

    def __init__(self, engine: "TorchEngine", parent: "Session | None" = None) -> None:
        self._engine = engine
        self._parent = parent
        self.cache = EMPTY
        """Written by the engine's thread alone."""

    def sample(
        self, ids: Sequence[int], sampling: Sampling, *, ends: frozenset[int], max_tokens: int
    ) -> AsyncGenerator[list[Sampled]]:
        submit = partial(self._engine.submit, session=self)
        return sample_through(submit, ids, sampling, ends=ends, max_tokens=max_tokens)

    def fork(self) -> "Session":
        return Session(self._engine, self)

    def known(self, ids: Sequence[int]) -> Cache:
        """What was computed already of `ids`, here or where this was forked."""
        own = self.cache.common(ids)
        inherited = self._parent.cache.common(ids) if self._parent else EMPTY
        return max(own, inherited, key=lambda cache: len(cache.ids))


@dataclass
class _Work:
    """A request in the thread's hands."""

    request: Request
    session: Session
    draws: torch.Generator
    cache: Cache
    """While the prompt is read."""
    said: list[int]

    @property
    def unread(self) -> tuple[int, ...]:
        return self.request.prompt[len(self.cache.ids) :]


@dataclass(frozen=True)
class TorchUse:
    """What the engine has done since it was loaded, in tokens."""

    read: int = 0
    """Of prompts; what was kept from an earlier turn is not read again."""
    sampled: int = 0


class TorchEngine:
    """Shares one model between the requests of a process. The thread ends in `close`."""

    def __init__(
        self, model: Any, *, device: str, threads: int = 0, rows: int = ROWS, kept_bytes: int = KEPT_BYTES
    ) -> None:
        """Take a model that lies on a device, and start the thread.

        Args:
            model: of transformers, for causal language modelling.
            device: where it lies.
            threads: of arithmetic on a CPU; 0: what torch takes.
            rows: contexts that grow at the same time.
            kept_bytes: of keys and values that wait for their context's next turn.
        """
        self._threads = threads
        self._rows = Rows(model, torch.device(device))
        self._limit = rows
        self.kept_bytes = kept_bytes
        self._kept: deque[weakref.ref[Session]] = deque()
        self._waiting: deque[tuple[Request, Session]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._reading: deque[_Work] = deque()
        self._growing: list[_Work] = []
        """In the order of the batch's rows."""
        self._use = TorchUse()
        self._thread = threading.Thread(target=self._work, name="cairn-torch", daemon=True)
        self._thread.start()
        _ENGINES.add(self)

    @property
    def use(self) -> TorchUse:
        return self._use

    @property
    def busy(self) -> int:
        """Requests that are read or grow."""
        return len(self._reading) + len(self._growing)

    def submit(self, request: Request, *, session: Session) -> None:
        """Put a request into the queue.

        Raises:
            PolicyError: the engine was closed.
        """
        with self._changed:
            if self._closed:
                raise PolicyError(_CLOSED)
            self._waiting.append((request, session))
            self._changed.notify()

    def stop(self) -> None:
        """End every request at its next token, and then the thread. It waits for nothing."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def close(self) -> None:
        """Stop, and wait for the thread. It may be called twice."""
        self.stop()
        self._thread.join()

    @torch.inference_mode()
    def _work(self) -> None:
        if self._threads:
            torch.set_num_threads(self._threads)  # of this thread alone
        while (taken := self._take()) is not None:
            try:
                self._let_go()  # first: who comes may go on where somebody ended who is let go of here
                self._reading += [_begin(request, session) for request, session in taken]
                self._read()
                self._grow()
            except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who waits, and the thread goes on
                self._end_all(f"the transformers engine failed: {error}")
        self._end_all(_CLOSED)
        for request, _ in self._waiting:
            request.finish(_CLOSED)

    def _take(self) -> list[tuple[Request, Session]] | None:
        """Those that waited and have a place now. Waits while there is nothing to do; None: the engine was closed."""
        with self._changed:
            while not self._closed:
                room = self._limit - self.busy
                self._waiting = deque(entry for entry in self._waiting if not entry[0].over)
                if self.busy or self._waiting:
                    return [self._waiting.popleft() for _ in range(min(room, len(self._waiting)))]
                self._changed.wait()
        return None

    def _end_all(self, why: str) -> None:
        for work in (*self._reading, *self._growing):
            work.request.finish(why)
        self._reading.clear()
        self._growing = []
        self._rows.keep([])

    def _read(self) -> None:
        """Read a piece of the oldest prompt; behind its end, give its first token."""
        if not self._reading:
            return
        work = self._reading[0]
        piece = work.unread[:PIECE_TOKENS]
        try:
            if not work.request.over:
                work.cache, logits = self._rows.extend(work.cache, piece)
                self._count(read=len(piece))
                if not work.unread:
                    self._give([work], logits[None])
        except Exception as error:  # noqa: BLE001 - it belongs to this one alone
            work.request.finish(f"the transformers engine failed: {error}")
        if work.request.over:
            self._reading.popleft()
            self._keep(work, work.cache)
        elif not work.unread:
            self._reading.popleft()
            self._rows.join(work.cache)
            self._growing.append(work)
            work.cache = EMPTY

    def _grow(self) -> None:
        """Add one token to each context of the batch, and let go of those that are over."""
        self._let_go()
        if self._growing:
            self._give(self._growing, self._rows.step([work.said[-1] for work in self._growing]))
            self._let_go()

    def _give(self, works: Sequence[_Work], logits: torch.Tensor) -> None:
        chosen = choose(logits, [work.request.sampling for work in works], [work.draws for work in works])
        for work, (number, logprob) in zip(works, chosen, strict=True):
            work.said.append(number)
            work.request.put(number, logprob)
        self._count(sampled=len(works))

    def _let_go(self) -> None:
        left = closed_up([not work.request.over for work in self._growing])
        if len(left) == len(self._growing):
            return
        for row, work in enumerate(self._growing):
            if work.request.over:
                self._keep(work, Cache((*work.request.prompt, *work.said[:-1]), self._rows.take(row)))
        self._rows.keep(left)
        self._growing = [self._growing[row] for row in left]

    def _keep(self, work: _Work, cache: Cache) -> None:
        """Remember what was computed; where that is too much, what was used longest ago is forgotten."""
        work.session.cache = cache
        self._kept = deque(ref for ref in self._kept if (held := ref()) and held is not work.session and held.cache.ids)
        self._kept.append(weakref.ref(work.session))
        while self._kept and sum(held.cache.bytes for ref in self._kept if (held := ref())) > self.kept_bytes:
            if oldest := self._kept.popleft()():
                oldest.cache = EMPTY

    def _count(self, *, read: int = 0, sampled: int = 0) -> None:
        self._use = TorchUse(self._use.read + read, self._use.sampled + sampled)


def _begin(request: Request, session: Session) -> _Work:
    draws = torch.Generator()
    draws.manual_seed((request.sampling.seed * 1_000_003 + len(request.prompt)) % 2**63)
    return _Work(request, session, draws, session.known(request.prompt), [])


def _close_all() -> None:
    for engine in list(_ENGINES):
        engine.close()


_ENGINES: Final[weakref.WeakSet[TorchEngine]] = weakref.WeakSet()
atexit.register(_close_all)  # a thread that computes while the interpreter ends may end the process badly
