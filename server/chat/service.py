"""`/v1/chat/completions`: from a request to one rollout, and from the rollout to a stream or to one object."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from agent.errors import QuestionError
from agent.loop.agent import Agent
from agent.loop.budgets import Budgets, Control
from agent.loop.budgets import Effort as Level
from agent.loop.follow_up import resolved
from agent.loop.plain import PlainChat, plain_protocol
from agent.loop.recorder import Emit
from agent.policies.local_servers import LocalServer
from agent.protocols import TextProtocol
from agent.sources.filters import joined
from agent.trace import Event, FollowedUp, Trace
from server.auth.admission import Admission, Slot
from server.auth.keys import Keys
from server.chat.chunks import ChunkFrames, completion, error_frame
from server.chat.profiles import PROFILES, Profile, ProfileName
from server.chat.reply import Reasoning, RolloutReply
from server.chat.request import AnswerStyle, BudgetOptions, ChatQuestion, ChatRequest, Effort, RunOptions, read_request
from server.http.errors import ApiError, bad_request, internal_error, sentence, server_stops
from server.http.stream import EventStream, LastWords, Put, Runs
from server.telemetry.watch import Observer, Runnable, Watch

if TYPE_CHECKING:
    from server.evidence.answering import Answering
    from server.libraries.manager import LibraryManager
    from server.runs.manager import RunManager
    from server.ui.settings import SettingsEditor

logger = logging.getLogger(__name__)

FindServers = Callable[[], Awaitable[Sequence[LocalServer]]]
_MEANT: Final[Mapping[Effort, Level]] = {
    **dict.fromkeys(("none", "minimal", "low"), "low"),
    "medium": "medium",
    **dict.fromkeys(("high", "xhigh", "max"), "high"),
}


def _keep_nothing(trace: Trace) -> None:
    """Without a store, or where a request says so, nothing is kept."""


async def no_local_servers() -> Sequence[LocalServer]:
    """None: nothing is looked for."""
    return []


@dataclass(frozen=True)
class Service:
    """What answers, and how it presents itself."""

    agent: Agent
    protocols: Mapping[str, TextProtocol]
    """By name; each one is a model id, and the agent's own protocol answers to `cairn`."""
    answer_style: AnswerStyle = "short"
    profile: ProfileName = "default"
    """For which client answers are made where a request does not say it."""
    question_chars: int = 20_000
    heartbeat_seconds: float = 10.0
    runs: Runs = field(default_factory=Runs)
    notices: tuple[str, ...] = ()
    """What a person should know before believing an answer."""
    examples: tuple[str, ...] = ()
    """Questions that the page offers to begin with."""
    local_models: FindServers = no_local_servers
    """Finds the model servers of this machine that the page offers."""
    far: bool = False
    """The sources are reached over the network."""
    keep: Callable[[Trace], None] = _keep_nothing
    """Called with the trace of every run of `/v1` that ended, also of one whose client left. Never waits or raises."""
    answering: "Answering | None" = None
    """Who answers from evidence, where the operator named a model for that."""
    admission: Admission = field(default_factory=Admission)
    """Slots for runs; the access middleware takes one for each request that starts a run."""
    keys: Keys = field(default_factory=Keys)
    """Whose runs these are, and what each key may use."""
    watch: Watch = field(default_factory=Watch)
    """The runs that go on."""
    observers: tuple[Observer, ...] = ()
    """They see every run."""
    run_manager: "RunManager | None" = None
    """Of runs that outlive their clients; without one there are no such runs."""
    editor: "SettingsEditor | None" = None
    """Of the settings on the page; without one they are not shown."""
    libraries: "LibraryManager | None" = None
    """Of files that clients upload; without one there are none. The app opens and closes it."""

    @property
    def models(self) -> list[str]:
        chat = [CHAT_MODEL] if self.agent.policy.instructed else []
        return [MODEL, *(f"{MODEL}/{name}" for name in self.protocols), *chat]

    def require(self, model: str) -> None:
        """Refuse a model that is not there.

        Raises:
            ApiError: with the names of those that are.
        """
        if model not in self.models:
            message = f"There is no model {model!r} here; choose from: {', '.join(self.models)}."
            raise ApiError(HTTPStatus.NOT_FOUND, message, param="model", code="model_not_found")

    async def searching(self, request: RunOptions) -> "Service":
        """The service with the libraries that a request names, in the place of its sources or beside them.

        Raises:
            ApiError: a library is not there. StoreError: it could not be looked for.
        """
        if not request.libraries and not request.files:
            return self
        if self.libraries is None:
            raise bad_request("There are no libraries here; leave 'libraries' and 'files' out.", param="libraries")
        agent = replace(self.agent, find_libraries=partial(self.libraries.chosen, filters=request.file_filters))
        named = request.libraries or (), request.files or ()
        return replace(self, agent=await agent.with_libraries(*named, beside_sources=bool(request.sources)))

    def streams(self, produce: Callable[[Put], Awaitable[None]], *, last_words: LastWords | None = None) -> EventStream:
        """A response that sends what `produce` puts; when the server stops `last_words`, or else an error frame."""
        words = last_words or error_frame(server_stops().body)
        return EventStream(produce, runs=self.runs, last_words=words, heartbeat_seconds=self.heartbeat_seconds)

    async def enter(self) -> Slot:
        """Wait for a slot for a run of the caller's.

        Raises:
            ApiError: there is none, or none for this key.
        """
        return await self.admission.enter(self.keys.limit)

    async def run(
        self,
        rollout: Runnable,
        trace: Trace,
        emit: Emit,
        control: Control | None = None,
        *,
        keep: Callable[[Trace], None] | None = None,
    ) -> Trace:
        """Drive one rollout; its trace is kept however it ends.

        Args:
            rollout: what runs.
            trace: that it writes.
            emit: called with each of its events.
            control: lets the user stop it.
            keep: takes the trace instead of the service's own.
        """
        try:
            return await self.watch.run(rollout, trace, emit, control, observers=self.observers)
        finally:
            (keep or self.keep)(trace)

    async def aclose(self) -> None:
        """Let go of the agent, of the observers and of what answers from evidence, each once."""
        async with AsyncExitStack() as stack:
            for observer in self.observers:
                stack.push_async_callback(observer.aclose)
            if self.answering is not None:
                stack.push_async_callback(self.answering.aclose)
            await self.agent.aclose()


MODEL: Final = "cairn"
CHAT_MODEL: Final = "cairn-chat"


@dataclass(frozen=True)
class ConversationTurn:
    """One question on its way: what runs, what it is written to, and how it is shown."""

    service: "Service"
    rollout: Runnable
    trace: Trace
    reply: RolloutReply
    model: str
    profile: Profile
    include_usage: bool = False
    keep: Callable[[Trace], None] | None = None
    """Takes the trace when the run has ended; by default the service's own."""

    async def run(self, emit: Emit, control: Control | None = None) -> Trace:
        """Drive it to its end; `control` lets the user stop it."""
        return await self.service.run(self.rollout, self.trace, emit, control, keep=self.keep)


def make_turn(
    service: "Service",
    request: RunOptions,
    question: ChatQuestion,
    *,
    include_usage: bool = False,
    keep: Callable[[Trace], None] | None = None,
) -> ConversationTurn:
    """A rollout that can start.

    Args:
        service: what answers.
        request: the options beside the question; its model is one that there is.
        question: with the turns before it.
        include_usage: whether a stream shows it.
        keep: takes the trace when the run has ended; by default the service's own.

    Raises:
        ApiError: the request cannot be answered; nothing was started.
    """
    chats = request.model == CHAT_MODEL
    plain = chats or (bool(request.disable_search) and service.agent.policy.instructed)
    if plain and len(question.system) > service.question_chars:
        what = f"The instructions have {len(question.system):,} characters"
        raise bad_request(f"{what}; at most {service.question_chars:,} are allowed.", code="instructions_too_long")
    agent = agent_of(service, request, system=question.system, plain=plain)
    try:
        trace = agent.new_trace(question.question, history=question.history, seed=request.seed or 0)
    except QuestionError as error:
        raise bad_request(sentence(error)) from error
    if not plain:
        change_question(trace, today=agent.today())
    profile = PROFILES[request.profile or service.profile]
    reply = RolloutReply(
        agent.protocol,
        style="short" if chats else request.answer_style or service.answer_style,
        profile=profile,
        searchless=bool(request.disable_search) and not chats,
    )
    rollout = PlainChat(agent.policy, agent.protocol, agent.sampling, agent.budgets) if plain else agent
    return ConversationTurn(service, rollout, trace, reply, request.model, profile, include_usage, keep)


def change_question(trace: Trace, *, today: date) -> None:
    """Where a question only changes the one before it, research what it means; it needs no turn before it then."""
    read = resolved(trace.question, trace.history, today=today)
    if read is None or read.claim is not None:
        return
    trace.follow_up = FollowedUp(text=trace.question, history=trace.history)
    trace.question, trace.history = read.question, ()
    trace.filters = joined(trace.filters, read.filters)


def failure_of(trace: Trace) -> ApiError | None:
    """What no answer can be made from."""
    stopped = trace.stopped
    if stopped is None or stopped.reason in ("cancelled", "interrupted"):
        return ApiError(HTTPStatus.SERVICE_UNAVAILABLE, "The rollout was interrupted; try again.", code="interrupted")
    if stopped.reason == "engine":
        return ApiError(
            HTTPStatus.BAD_GATEWAY,
            f"The engine behind the policy failed: {stopped.detail}. Check that it is running, then try again.",
            code="engine_failed",
        )
    return None


def agent_of(service: "Service", request: RunOptions, *, system: str = "", plain: bool = False) -> Agent:
    """The service's agent with the options of this request."""
    agent = service.agent
    named = request.model.removeprefix(f"{MODEL}/") if request.model != MODEL else ""  # one protocol has its name, too
    protocol = plain_protocol(system) if plain else service.protocols.get(named, agent.protocol)
    wanted = {"temperature": request.temperature, "top_p": request.top_p}
    sampling = replace(agent.sampling, **{name: value for name, value in wanted.items() if value is not None})
    return replace(
        agent,
        protocol=protocol,
        sampling=sampling,
        budgets=budgets_for(request, agent.budgets, protocol),
        filters=request.filters(agent.sources),
        only=request.only(agent.sources),
    )


def level_of(request: RunOptions) -> Level:
    """The effort that was requested, as one of the three that there are here."""
    return _MEANT[request.effort or "medium"]


def budgets_for(request: RunOptions, budgets: Budgets, protocol: TextProtocol) -> Budgets:
    """What the effort allows, and never more of anything than the request does."""
    budgets = budgets.for_effort(level_of(request), rounds=protocol.max_rounds)
    wanted = request.budgets or BudgetOptions()
    tokens = _least(budgets.policy_tokens, request.most_tokens, wanted.tokens)
    return replace(
        budgets.with_tokens(tokens),
        rounds=0 if request.disable_search else _least(budgets.rounds or 0, wanted.rounds),
        searches=_least(budgets.searches, wanted.searches),
        passages=_least(budgets.passages, wanted.passages),
        seconds=min(budgets.seconds, wanted.seconds or budgets.seconds),
        credits=budgets.credits if wanted.credits is None else min(budgets.credits, wanted.credits),
        answer_seconds=min(budgets.answer_seconds, wanted.seconds or budgets.answer_seconds),
    )


def _least(own: int, *wanted: int | None) -> int:
    return min([own, *(number for number in wanted if number is not None)])


def open_turn(service: Service, request: ChatRequest) -> ConversationTurn:
    """Read a request into a rollout that can start.

    Raises:
        ApiError: the request cannot be answered; nothing was started.
    """
    service.require(request.model)
    question = read_request(request, most_chars=service.question_chars)
    keep = None if request.kept else _keep_nothing
    return make_turn(service, request, question, include_usage=request.include_usage, keep=keep)


async def stream_turn(turn: ConversationTurn, put: Put) -> None:
    """Run it and put every frame as it comes, down to `[DONE]` or to the error that ended it."""
    frames = ChunkFrames(trace=turn.trace, model=turn.model, profile=turn.profile)
    put(frames.role())

    def emit(event: Event) -> None:
        for part in turn.reply.feed(event):
            put(frames.part(part))

    try:
        await turn.run(emit)
        failure = failure_of(turn.trace)
    except Exception:  # the boundary: the answer has begun, so the error goes into the stream
        logger.exception("the rollout %s failed", turn.trace.id)
        failure = internal_error()
    if failure:
        put(error_frame(failure.body))
    else:
        put(frames.ending(turn.reply, turn.trace, include_usage=turn.include_usage))


async def whole_turn(turn: ConversationTurn) -> dict[str, Any]:
    """Run it to its end and give the completion.

    Raises:
        ApiError: the engine failed.
    """
    reasoning: list[str] = []

    def emit(event: Event) -> None:
        reasoning.extend(part.text for part in turn.reply.feed(event) if isinstance(part, Reasoning))

    await turn.run(emit)
    if failure := failure_of(turn.trace):
        raise failure
    return completion(turn.reply, turn.trace, model=turn.model, reasoning="".join(reasoning))
