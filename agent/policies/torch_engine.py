"""The worker threads of the `transformers` engine: requests in, tokens out, any number of rollouts in few batches.

Each turn of a thread adds one token to every context of its batch that is read, and reads a piece of the new ones, so
no request waits for the long prompt of another. What was computed for a context is kept until its next turn.
"""

import atexit
import threading
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any, Final

import torch

from agent.errors import PolicyError
from agent.policies.base import Sampling
from agent.policies.requests import Request, sample_through
from agent.policies.token_context import Sampled
from agent.policies.torch_batch import ContextLine, TorchUse, Work, WorkerBatch
from agent.policies.torch_memory import ContextMemory, MemoryPool
from agent.policies.torch_rows import BatchRows

SMALL: Final = 100_000_000
"""Parameters below which, on a CPU, a second thread does not make a token faster."""
PIECE_TOKENS: Final = 512
"""Of prompts that are read between two tokens of the others: a piece of a long one, or some short ones."""
GPU_PIECE_TOKENS: Final = 32_768
"""The same on a GPU, where a call of the model takes about as long for one token as for some thousands."""
ROWS: Final = 32
"""Contexts that grow at the same time before another one is begun. Requests of one context may part beyond that."""
GPU_ROWS: Final = 256
KEPT_BYTES: Final = 1 << 30
"""Of keys and values of contexts that wait for their next turn."""
EVERY: Final = 16
"""Tokens that are reported at once at most, where nothing else is said."""
LINES_PER_TOKEN: Final = 8
"""Contexts in the engine for each of these: with many, the readers' wake-ups would cost more than the arithmetic."""
GPU_KEPT_SHARE: Final = 8
"""The same on a GPU: one part in so many of the memory that is free when the engine starts."""
_CLOSED: Final = "the transformers policy was closed"


class Session:
    """One context's way into the engine; a `Sampler`. It remembers what was computed for the context."""

    def __init__(self, engine: "TorchEngine", memory: ContextMemory | None = None) -> None:
        self._engine = engine
        self._memory = memory or ContextMemory()

    def sample(
        self, ids: Sequence[int], sampling: Sampling, *, ends: frozenset[int], max_tokens: int
    ) -> AsyncGenerator[list[Sampled]]:
        submit = partial(self._engine.submit, memory=self._memory)
        every = self._engine.every
        return sample_through(submit, ids, sampling, ends=ends, max_tokens=max_tokens, every=every)

    def fork(self) -> "Session":
        return Session(self._engine, ContextMemory(self._memory))


class TorchEngine:
    """Shares one model between the requests of a process. The threads end in `close`.

    Several workers, each with a batch of its own, use the cores of a CPU better for a small model than one worker
    whose arithmetic has several threads (docs/log.md).
    """

    def __init__(
        self,
        model: Any,
        *,
        device: str,
        workers: int = 1,
        threads: int = 0,
        rows: int | None = None,
        kept_bytes: int | None = None,
        every: int | None = None,
        together: bool | None = None,
    ) -> None:
        """Take a model that lies on a device, and start the threads.

        Args:
            model: of transformers, for causal language modelling.
            device: where it lies.
            workers: batches beside each other.
            threads: of each worker's arithmetic on a CPU; 0: what torch takes.
            rows: contexts that grow at the same time before another one is begun, in all batches together; None: as
                many as suit the device.
            kept_bytes: of keys and values that wait for their context's next turn; None: as suits the device.
            every: tokens that are reported at once; more where no one watches, because each time wakes a loop.
                Up to this number are sampled in vain where a turn ends with a text that is no single token. None: one
                by one where few contexts grow, up to `EVERY` where many do.
            together: whether several prompts are read at once; None: on a GPU, if every layer sees the whole context
                (one with a window would count the padding between what is known and what is new).
        """
        self._every = every
        self._threads = threads
        place = torch.device(device)
        on_gpu = place.type == "cuda"
        self._piece = GPU_PIECE_TOKENS if on_gpu else PIECE_TOKENS
        self._limit = -(-(rows or (GPU_ROWS if on_gpu else ROWS)) // workers)
        if together is None:
            together = on_gpu and getattr(model.config, "sliding_window", None) is None
        free = torch.cuda.mem_get_info(place)[0] // GPU_KEPT_SHARE if on_gpu else KEPT_BYTES
        self.kept = MemoryPool(free if kept_bytes is None else kept_bytes)
        self._lines: dict[tuple[int, ...], ContextLine] = {}
        """Prompt → the line that a request with this prompt joins: those that wait and those that are read."""
        self._waiting: deque[ContextLine] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._batches = [
            WorkerBatch(BatchRows(model, place), self.kept, close=self._close_line, together=together)
            for _ in range(workers)
        ]
        self._workers = [
            threading.Thread(target=self._work, args=(batch,), name=f"cairn-torch-{number}", daemon=True)
            for number, batch in enumerate(self._batches)
        ]
        for worker in self._workers:
            worker.start()
        _ENGINES.add(self)

    @property
    def use(self) -> TorchUse:
        """What the engine has done since it was loaded."""
        uses = [batch.use for batch in self._batches]
        return TorchUse(sum(use.read for use in uses), sum(use.sampled for use in uses))

    @property
    def every(self) -> int:
        """Tokens of a request that begins now that are reported at once."""
        if self._every is not None:
            return self._every
        return min(EVERY, 1 + sum(map(len, self._batches)) // LINES_PER_TOKEN)

    @property
    def busy(self) -> int:
        """Requests that are read or grow."""
        return sum(batch.requests for batch in self._batches)

    def submit(self, request: Request, *, memory: ContextMemory) -> None:
        """Put a request into the queue, or to one with the same context that has said nothing yet.

        Raises:
            PolicyError: the engine was closed.
        """
        work = Work.of(request, memory)
        with self._changed:
            if self._closed:
                raise PolicyError(_CLOSED)
            if line := self._lines.get(request.prompt):
                line.works.append(work)
                return
            line = self._lines[request.prompt] = ContextLine(request.prompt, [work])
            self._waiting.append(line)
            self._changed.notify_all()

    def stop(self) -> None:
        """End every request at its next token, and then the threads. It waits for nothing."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def close(self) -> None:
        """Stop, and wait for the threads. It may be called twice."""
        self.stop()
        for worker in self._workers:
            worker.join()

    @torch.inference_mode()
    def _work(self, batch: WorkerBatch) -> None:
        if self._threads:
            torch.set_num_threads(self._threads)  # of this thread alone
        while (taken := self._take(batch)) is not None:
            try:
                batch.turn(taken, read=self._piece)
            except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who waits, and the thread goes on
                batch.end_all(f"the transformers engine failed: {error}")
        batch.end_all(_CLOSED)
        with self._changed:
            for line in self._waiting:
                line.finish(_CLOSED)

    def _take(self, batch: WorkerBatch) -> list[ContextLine] | None:
        """A worker's share of what waits. Waits while there is nothing to do; None: the engine was closed."""
        with self._changed:
            while not self._closed:
                self._forget_who_is_over()
                taken = self._share(batch)
                if taken or len(batch):
                    return taken
                self._changed.wait()
        return None

    def _share(self, batch: WorkerBatch) -> list[ContextLine]:
        """As many as make its batch as long as the others', where there is room."""
        longest = -(-(len(self._waiting) + sum(map(len, self._batches))) // len(self._batches))
        taken: list[ContextLine] = []
        requests = batch.requests
        while self._waiting and len(batch) + len(taken) < longest and requests < self._limit:
            taken.append(self._waiting.popleft())
            requests += len(taken[-1].works)
        return taken

    def _forget_who_is_over(self) -> None:
        for line in self._waiting:
            if line.over:
                del self._lines[line.prompt]
        self._waiting = deque(line for line in self._waiting if not line.over)

    def _close_line(self, line: ContextLine) -> None:
        """No request joins it any more."""
        with self._changed:
            if self._lines.get(line.prompt) is line:
                del self._lines[line.prompt]


def _close_all() -> None:
    for engine in list(_ENGINES):
        engine.close()


_ENGINES: Final[weakref.WeakSet[TorchEngine]] = weakref.WeakSet()
atexit.register(_close_all)  # a thread that computes while the interpreter ends may end the process badly
