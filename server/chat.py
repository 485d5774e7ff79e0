"""`/v1/chat/completions`: from a request to one rollout, and from the rollout to a stream or to one object."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final

from agent.budgets import Budgets
from agent.errors import QuestionError
from agent.policies.base import Policy
from agent.protocols import TextProtocol
from agent.recorder import Emit
from agent.rollout import Agent
from agent.trace import Event, Trace
from server.asked import AnswerStyle, ChatRequest, Effort, read_question
from server.errors import ApiError, bad_request, internal_error
from server.evidence.answering import Answering
from server.frames import Frames, completion, error_frame
from server.guard.admission import Admission
from server.plain import PlainChat, plain_protocol
from server.reply import Reasoning, Reply
from server.stream import Put, Runs
from server.telemetry.watch import Watch

logger = logging.getLogger(__name__)

MODEL: Final = "cairn"
CHAT_MODEL: Final = "cairn-chat"
_EFFORT: Final[Mapping[Effort, float]] = {"none": 0.5, "minimal": 0.5, "low": 0.5, "high": 2, "xhigh": 2, "max": 2}


def _keep_nothing(trace: Trace) -> None:
    """Without a store nothing is kept."""


@dataclass(frozen=True)
class Service:
    """What answers, and how it presents itself."""

    agent: Agent
    protocols: Mapping[str, TextProtocol]
    """By name; each one is a model id, and the agent's own protocol answers to `cairn`."""
    policies: Mapping[str, Policy] = field(default_factory=dict[str, Policy])
    """By protocol, where another one than the agent's speaks it."""
    answer_style: AnswerStyle = "short"
    question_chars: int = 20_000
    heartbeat_seconds: float = 10.0
    runs: Runs = field(default_factory=Runs)
    notices: tuple[str, ...] = ()
    """What a person should know before believing an answer."""
    far: bool = False
    """The sources are asked over the network."""
    keep: Callable[[Trace], None] = _keep_nothing
    """Called with the trace of every run of `/v1` that ended, also of one whose client left. Never waits or raises."""
    answering: Answering | None = None
    """Who answers from evidence, where the operator named a model for that."""
    admission: Admission = field(default_factory=Admission)
    """Slots for runs; the gate takes one for each request that starts a run."""
    watch: Watch = field(default_factory=Watch)
    """Sees every run of the agent, whoever starts it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "agent", self.watch.agent(self.agent))

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
            message = f"There is no model {model!r} here; there are: {', '.join(self.models)}."
            raise ApiError(HTTPStatus.NOT_FOUND, message, param="model", code="model_not_found")

    async def aclose(self) -> None:
        """Let go of the agent and of every policy, each once."""
        others = {id(policy): policy for policy in self.policies.values() if policy is not self.agent.policy}
        async with AsyncExitStack() as stack:
            for policy in others.values():
                stack.push_async_callback(policy.aclose)
            if self.answering is not None:
                stack.push_async_callback(self.answering.aclose)
            await self.agent.aclose()


@dataclass(frozen=True)
class Turn:
    """One question on its way: what runs, what it is written to, and how it is shown."""

    run: Callable[[Trace, Emit], Awaitable[Trace]]
    trace: Trace
    reply: Reply
    model: str
    include_usage: bool


def open_turn(service: Service, request: ChatRequest) -> Turn:
    """Read a request into a rollout that can start.

    Raises:
        ApiError: the request cannot be answered; nothing was started.
    """
    service.require(request.model)
    asked = read_question(request, most_chars=service.question_chars)
    agent = _agent(service, request)
    try:
        trace = agent.new_trace(asked.question, history=asked.history, seed=request.seed or 0)
    except QuestionError as error:
        raise bad_request(f"{error}.", param="messages") from error
    style = request.answer_style or service.answer_style
    reply = Reply(agent.protocol, style="short" if request.model == CHAT_MODEL else style)
    run = _kept(_runner(agent, request, service.watch), service.keep)
    return Turn(run, trace, reply, request.model, request.include_usage)


async def stream_turn(turn: Turn, put: Put) -> None:
    """Run it and put every frame as it comes, down to `[DONE]` or to the error that ended it."""
    frames = Frames(trace=turn.trace, model=turn.model)
    put(frames.role())

    def emit(event: Event) -> None:
        for part in turn.reply.feed(event):
            put(frames.part(part))

    try:
        await turn.run(turn.trace, emit)
        failure = _failure(turn.trace)
    except Exception:  # the boundary: the answer has begun, so whatever broke is told in the stream
        logger.exception("the rollout %s broke", turn.trace.id)
        failure = internal_error()
    if failure:
        put(error_frame(failure.body))
    else:
        put(frames.ending(turn.reply, turn.trace, include_usage=turn.include_usage))


async def whole_turn(turn: Turn) -> dict[str, Any]:
    """Run it to its end and give the completion.

    Raises:
        ApiError: the engine failed.
    """
    reasoning: list[str] = []

    def emit(event: Event) -> None:
        reasoning.extend(part.text for part in turn.reply.feed(event) if isinstance(part, Reasoning))

    await turn.run(turn.trace, emit)
    if failure := _failure(turn.trace):
        raise failure
    return completion(turn.reply, turn.trace, model=turn.model, reasoning="".join(reasoning))


def _agent(service: Service, request: ChatRequest) -> Agent:
    """The service's agent with what this request asks for."""
    agent = service.agent
    if request.model == CHAT_MODEL:
        said = "\n\n".join(m.text for m in request.messages if m.role in ("system", "developer"))
        protocol = plain_protocol(said)
    else:
        protocol = service.protocols.get(request.model.removeprefix(f"{MODEL}/"), agent.protocol)
    wanted = {"temperature": request.temperature, "top_p": request.top_p}
    sampling = replace(agent.sampling, **{name: value for name, value in wanted.items() if value is not None})
    return replace(
        agent,
        policy=service.policies.get(protocol.name, agent.policy),
        protocol=protocol,
        sampling=sampling,
        budgets=budgets_for(request, agent.budgets, protocol),
    )


def _runner(agent: Agent, request: ChatRequest, watch: Watch) -> Callable[[Trace, Emit], Awaitable[Trace]]:
    if request.model == CHAT_MODEL:
        plain = PlainChat(agent.policy, agent.protocol, agent.sampling, most_tokens=agent.budgets.policy_tokens)

        async def chat(trace: Trace, emit: Emit) -> Trace:
            return await watch.run(lambda tell, _: plain.run(trace, tell), trace, emit, None)

        return chat

    async def run(trace: Trace, emit: Emit) -> Trace:
        return await agent.run(trace, emit=emit)

    return run


def _kept(
    run: Callable[[Trace, Emit], Awaitable[Trace]], keep: Callable[[Trace], None]
) -> Callable[[Trace, Emit], Awaitable[Trace]]:
    """The run, whose trace is kept however it ends."""

    async def kept(trace: Trace, emit: Emit) -> Trace:
        try:
            return await run(trace, emit)
        finally:
            keep(trace)

    return kept


def budgets_for(request: ChatRequest, budgets: Budgets, protocol: TextProtocol) -> Budgets:
    """Half or twice of everything by `reasoning_effort`; and never more policy tokens than the request allows."""
    factor = _EFFORT.get(request.reasoning_effort or "medium", 1)
    rounds = protocol.max_rounds if budgets.rounds is None else budgets.rounds
    tokens = int(budgets.policy_tokens * factor)
    tokens = min(tokens, request.most_tokens or tokens)
    return replace(
        budgets,
        rounds=min(rounds, max(1, int(rounds * factor))) if factor < 1 else int(rounds * factor),
        searches=int(budgets.searches * factor),
        passages=int(budgets.passages * factor),
        seconds=budgets.seconds * factor,
        policy_tokens=tokens,
        answer_tokens=min(budgets.answer_tokens, tokens),
    )


def _failure(trace: Trace) -> ApiError | None:
    """What no answer can be made from."""
    stopped = trace.stopped
    if stopped is None or stopped.reason in ("cancelled", "interrupted"):
        return ApiError(HTTPStatus.SERVICE_UNAVAILABLE, "The rollout was ended; ask again.", code="interrupted")
    if stopped.reason == "engine":
        return ApiError(
            HTTPStatus.BAD_GATEWAY,
            f"The engine behind the policy failed: {stopped.detail}. Check that it runs, then ask again.",
            code="engine_failed",
        )
    return None
