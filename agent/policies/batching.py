"""Worker threads that turn waiting requests into CTranslate2 calls, token by token, for any number of event loops.

A core works on one long context as fast as on several at once (the caches decide, not the arithmetic), so only short
contexts share a call; the others take turns. See docs/log.md for the figures.
"""

import atexit
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import ctranslate2  # pyright: ignore[reportMissingTypeStubs]

from agent.errors import CheckpointError, PolicyError
from agent.policies.base import Sampling
from agent.policies.requests import Request

_ctranslate2: Any = ctranslate2
"""The package has no types."""

GROUP: Final = 8
"""Requests in one call at most."""
GROUP_TOKENS: Final = 512
"""Sum of their contexts at most."""
GROUP_SPREAD: Final = 16
"""Difference of their lengths at most: the longer ones step through what they have more, one token at a time."""


@dataclass(frozen=True)
class EngineUse:
    """What the engine has done since it was loaded."""

    tokens: int = 0
    """Sampled, also those that were no longer wanted."""
    seconds: float = 0.0
    """Of work, added up over the threads."""


Listener = Callable[[Sequence[Request], int], object]
"""Hears of a call in the thread that made it: the requests that shared it, and when it began (`perf_counter_ns`)."""


class Engine:
    """Shares one model between the requests of a process. Threads end in `close`."""

    def __init__(
        self,
        folder: Path,
        *,
        tokens: Sequence[str],
        eos: int,
        workers: int,
        compute_type: str = "default",
    ) -> None:
        """Load the model and start the threads.

        Raises:
            CheckpointError: CTranslate2 cannot load the model.
        """
        self._folder = folder
        self._tokens = tokens
        self._eos = eos
        self._compute_type = compute_type
        self._generator = self._load(workers)
        self._waiting: deque[Request] = deque()
        self._changed = threading.Condition()
        self._running = 0
        self._closed = threading.Event()
        self._use = EngineUse()
        self.listener: Listener | None = None
        self._seeding = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, name=f"cairn-engine-{n}", daemon=True) for n in range(workers)
        ]
        for thread in self._threads:
            thread.start()
        _ENGINES.add(self)

    def submit(self, request: Request) -> None:
        """Put a request into the queue.

        Raises:
            PolicyError: the engine was closed.
        """
        with self._changed:
            if self._closed.is_set():
                raise PolicyError("the embedded policy was closed")
            self._waiting.append(request)
            self._changed.notify()

    @property
    def use(self) -> EngineUse:
        return self._use

    @property
    def busy(self) -> int:
        """Requests that wait or are worked on; one that was given up counts until its slot is free."""
        with self._changed:
            return self._running + sum(not request.over for request in self._waiting)

    def stop(self) -> None:
        """End every request at its next token, and then the threads. It waits for nothing."""
        with self._changed:
            self._closed.set()
            self._changed.notify_all()

    def close(self) -> None:
        """Stop, and wait for the threads. It may be called twice."""
        self.stop()
        for thread in self._threads:
            thread.join()
        self._generator = None  # CTranslate2's own threads end here, not at some moment of the interpreter's end

    def _load(self, workers: int) -> Any:
        try:
            return _ctranslate2.Generator(
                str(self._folder),
                device="cpu",
                compute_type=self._compute_type,
                inter_threads=workers,
                intra_threads=1,
            )
        except (RuntimeError, ValueError) as error:
            raise CheckpointError(
                f"CTranslate2 cannot load {self._folder}: {error}; export the checkpoint again"
            ) from error

    def _work(self) -> None:
        while group := self._next_group():
            why = "the embedded policy was closed"
            began = time.perf_counter_ns()
            try:
                self._run(group)
                if self.listener:
                    self.listener(group, began)
            except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who waits, and the thread goes on
                why = f"the embedded engine failed: {error}"
            for request in group:
                request.finish(why)
            self._count(group, (time.perf_counter_ns() - began) / 1e9)
        for request in self._drain():
            request.finish("the embedded policy was closed")

    def _count(self, group: list[Request], seconds: float) -> None:
        with self._changed:
            tokens = self._use.tokens + sum(request.count for request in group)
            self._use = EngineUse(tokens, self._use.seconds + seconds)
            self._running -= len(group)

    def _next_group(self) -> list[Request]:
        """Wait for requests that go well together, oldest first; none says that the engine was closed."""
        with self._changed:
            while not self._closed.is_set():
                self._waiting = deque(request for request in self._waiting if not request.over)
                if self._waiting:
                    group = choose_group(self._waiting)
                    for request in group:
                        self._waiting.remove(request)
                    self._running += len(group)
                    return group
                self._changed.wait()
            return []

    def _drain(self) -> list[Request]:
        with self._changed:
            left = list(self._waiting)
            self._waiting.clear()
            return left

    def _run(self, group: list[Request]) -> None:
        sampling = group[0].sampling
        if sampling.temperature == 0:
            self._generate(self._generator, group, on_first=None)
        else:
            # CTranslate2 seeds a thread's random numbers once, at its first draw, from a number of the whole process.
            # A model of its own (some milliseconds) therefore makes a sampled turn repeatable.
            generator = self._load(1)
            self._seeding.acquire()
            seeding = _Once(self._seeding.release)
            try:
                _ctranslate2.set_random_seed((sampling.seed * 1_000_003 + len(group[0].prompt)) % 2**32)
                self._generate(generator, group, on_first=seeding)
            finally:
                seeding()

    def _generate(self, generator: Any, group: list[Request], *, on_first: "_Once | None") -> None:
        sampling, prompts = group[0].sampling, [request.prompt for request in group]
        live, closed = list(group), self._closed

        def on_token(step: Any) -> bool:
            if on_first is not None:
                on_first()
            return live[int(step.batch_id)].put(step.token_id, step.log_prob) or closed.is_set()

        try:
            generator.generate_batch(
                [[self._tokens[number] for number in prompt] for prompt in prompts],
                max_length=max(request.max_tokens for request in group),
                end_token=[self._tokens[self._eos]],
                beam_size=1,
                sampling_topk=1 if sampling.temperature == 0 else sampling.top_k,
                sampling_topp=1.0 if sampling.temperature == 0 else sampling.top_p,
                sampling_temperature=sampling.temperature or 1.0,
                include_prompt_in_result=False,
                return_scores=True,
                callback=on_token,
            )
        finally:
            # CTranslate2's thread lets go of the callback some time later. It must not be the last to hold a request,
            # or through it an engine: an engine that ends in its own thread ends the process.
            live.clear()


class _Once:
    """Calls a function the first time only."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._done = False

    def __call__(self) -> None:
        if not self._done:
            self._done = True
            self._call()


def _close_all() -> None:
    for engine in list(_ENGINES):
        engine.close()


_ENGINES: Final[weakref.WeakSet[Engine]] = weakref.WeakSet()
atexit.register(_close_all)  # a thread that samples while the interpreter ends would end the process


class Groupable(Protocol):
    """What a request's group depends on."""

    @property
    def prompt(self) -> Sequence[int]: ...

    @property
    def sampling(self) -> Sampling: ...


G = TypeVar("G", bound=Groupable)


def choose_group(waiting: Sequence[G]) -> list[G]:
    """The oldest request, and those that share a call with it at no cost to it."""
    first, *others = waiting
    group = [first]
    if first.sampling.temperature:
        return group
    size = len(first.prompt)
    for request in others:
        fits = size + len(request.prompt) <= GROUP_TOKENS
        alike = abs(len(request.prompt) - len(first.prompt)) <= GROUP_SPREAD
        if fits and alike and not request.sampling.temperature:
            group.append(request)
            size += len(request.prompt)
        if len(group) == GROUP:
            break
    return group
