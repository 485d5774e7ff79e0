"""The agent: one question in, one trace out. Serving, evaluation and training all run this."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Final
from uuid import uuid4

from agent import __version__
from agent.errors import ContextFull, PolicyError, QuestionError
from agent.loop.budgets import Budgets, BudgetTracker, Control
from agent.loop.context import ContextWriter
from agent.loop.loop import run_loop
from agent.loop.recorder import Emit, Recorder
from agent.loop.state import RolloutState
from agent.plan import Filter
from agent.policies.base import OnRungs, Policy, Sampling, prepared, special_tokens_of
from agent.protocols.base import TextProtocol
from agent.sources.base import LibrarySource, Source, close_sources
from agent.sources.fuse import fused
from agent.sources.select import selected
from agent.trace import Event, Stopped, Trace

__all__ = ["MAX_QUESTION_CHARS", "Agent", "Budgets", "Control", "record_end"]

MAX_QUESTION_CHARS: Final = 20_000
_LIBRARIES: Final = "the libraries"
"""Their name beside sources: no plan can write it, so no source has it."""
FindLibraries = Callable[[Sequence[str], Sequence[str]], Awaitable[tuple[tuple[str, ...], LibrarySource]]]
"""From ids of libraries and of files, or none of either for all, to the libraries' ids and what searches them."""


def _ignore(event: Event) -> None:
    """Drop an event."""


async def record_end(recorder: Recorder, drive: Awaitable[Stopped]) -> Trace:
    """Wait for the end of a rollout and record it, also where its engine failed or it was cancelled."""
    trace = recorder.trace
    try:
        stopped = await drive
    except ContextFull as error:
        stopped = Stopped(reason="forced", budget="context", detail=str(error))
    except PolicyError as error:
        trace.infrastructure = True
        stopped = Stopped(reason="engine", detail=str(error))
    except asyncio.CancelledError:
        recorder.stop(Stopped(reason="cancelled"))
        raise
    recorder.stop(stopped)
    return trace


@dataclass(frozen=True)
class Agent:
    """A policy with its protocol, its sources and what it may use."""

    policy: Policy
    protocol: TextProtocol
    sources: Mapping[str, Source]
    budgets: Budgets = field(default_factory=Budgets)
    sampling: Sampling = field(default_factory=Sampling)
    filters: tuple[Filter, ...] = ()
    """Of every search, beside what a plan says; the policy reads nothing of them."""
    only: tuple[str, ...] = ()
    """Names of the sources that may be searched; empty: each. A plan may name the others, and these answer."""
    libraries: tuple[str, ...] = ()
    """Ids of the libraries among the sources, for the trace."""
    files: tuple[str, ...] = ()
    """Ids of the files that alone are searched of them, for the trace; empty: each."""
    library_state: str = ""
    """What is searched of them, as a hash, for the trace."""
    find_libraries: FindLibraries | None = None
    """Finds those that a request may name; it raises what it cannot give. None: there are none."""
    scope: Callable[[str, Sequence[tuple[str, str]]], str | None] | None = None
    """Gives a sentence where a question, with the turns before it, is outside of what the policy knows: then that is
    the answer."""
    today: Callable[[], date] = date.today
    """Today, for protocols whose prompt says it."""

    async def with_libraries(
        self, libraries: Sequence[str], files: Sequence[str] = (), *, beside_sources: bool = False
    ) -> "Agent":
        """The agent that searches libraries.

        Args:
            libraries: their ids; nothing named here nor in `files`: the agent as it is.
            files: ids of files: only these are searched.
            beside_sources: whether its own sources are searched, too.

        Raises:
            QuestionError: there are no libraries here. Whatever `find_libraries` raises.
        """
        if not libraries and not files:
            return self
        if self.find_libraries is None:
            raise QuestionError("there are no libraries here; leave 'libraries' and 'files' out", about="libraries")
        ids, library = await self.find_libraries(libraries, files)
        sources: dict[str, Source] = dict.fromkeys(self.sources, library)
        state = library.state
        if beside_sources:
            sources = {
                name: fused({_LIBRARIES: library, name: source}, (_LIBRARIES, name))
                for name, source in self.sources.items()
            }
            state += " and sources"
        return replace(self, sources=sources, libraries=ids, files=tuple(files), library_state=state, scope=None)

    def new_trace(
        self,
        question: str,
        *,
        history: Sequence[tuple[str, str]] = (),
        conversation: str = "",
        seed: int = 0,
        id: str | None = None,
    ) -> Trace:
        """Start the record of one user turn.

        Args:
            question: the user's.
            history: earlier turns as (question, answer).
            conversation: id of the conversation, if there is one.
            seed: for sampling.
            id: of the trace; a new one by default.

        Raises:
            QuestionError: the question is empty or too long.
        """
        text = question.strip()
        if not text:
            raise QuestionError("the question is empty; write what you want to know")
        if len(text) > MAX_QUESTION_CHARS:
            raise QuestionError(
                f"the question has {len(text):,} characters; at most {MAX_QUESTION_CHARS:,} are allowed"
            )
        return Trace(
            id=id or uuid4().hex,
            conversation=conversation,
            history=tuple(history),
            question=text,
            filters=self.filters,
            only=self.only,
            libraries=self.libraries,
            files=self.files,
            library_state=self.library_state,
            protocol=self.protocol.name,
            policy=self.policy.name,
            seed=seed,
            versions={"cairn": __version__, "protocol": str(self.protocol.version)},
        )

    async def run(self, trace: Trace, *, emit: Emit = _ignore, control: Control | None = None) -> Trace:
        """Run one rollout: write every step and segment into `trace`, and call `emit` with each event as it happens.

        What goes wrong in a source or an engine is in the trace, never raised. Cancelling it is recorded too.
        """
        recorder = Recorder(trace, emit, numbered=self.protocol.numbered)
        return await record_end(recorder, self._drive(recorder, control or Control()))

    async def stream(self, trace: Trace, *, control: Control | None = None) -> AsyncGenerator[Event]:
        """The same rollout as a stream of events. Closing the stream cancels the rollout and waits for its end."""
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        rollout = asyncio.create_task(self.run(trace, emit=events.put_nowait, control=control))
        rollout.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            await rollout
        finally:
            rollout.cancel()
            await asyncio.gather(rollout, return_exceptions=True)

    async def aclose(self) -> None:
        """Let go of the engine and of what the sources hold."""
        await self.policy.aclose()
        await close_sources(self.sources.values())

    async def _drive(self, recorder: Recorder, control: Control) -> Stopped:
        trace = recorder.trace
        if sentence := self.scope(trace.question, trace.history) if self.scope else None:
            recorder.delta("answer", sentence)
            recorder.answer(sentence, by_loop=True)
            return Stopped(reason="answered", detail="outside the policy's world")
        return await run_loop(await self._open(recorder, control))

    async def _open(self, recorder: Recorder, control: Control) -> RolloutState:
        """Open a context with the prompt, and start the clock."""
        trace, today = recorder.trace, self.today().isoformat()
        policy = await prepared(self.policy, self.protocol)
        context = policy.open(self.protocol, trace.question, history=trace.history, date=today)
        protocol = context.protocol if isinstance(context, OnRungs) else self.protocol
        sources = selected(self.sources, only=trace.only, filters=trace.filters)
        budget = BudgetTracker(
            self.budgets, protocol=protocol, trace=trace, context_tokens=policy.context_tokens, control=control
        )
        templated = protocol.deliver == "user" and policy.continues and not policy.instructed
        writer = ContextWriter(
            context,
            protocol=protocol,
            sampling=replace(self.sampling, seed=trace.seed),
            recorder=recorder,
            limit=budget.limit,
            opened=None if policy.instructed else protocol.opened,
            template=protocol.chat if templated else None,
        )
        tokens = special_tokens_of(policy)
        return RolloutState(writer, protocol, sources, budget, recorder, policy.continues, policy.instructed, tokens)
