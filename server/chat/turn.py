"""From a request to one rollout that can start: the agent with what was asked for, and the reply that reads it.

Chat completions and responses both begin here; neither's format is known.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

from agent.errors import QuestionError
from agent.loop.agent import Agent
from agent.loop.budgets import Control
from agent.loop.recorder import Emit
from agent.trace import Trace
from server.chat.options import Wishes, budgets_for
from server.chat.plain import PlainChat, plain_protocol
from server.chat.profiles import PROFILES, Profile
from server.chat.reply import Reply
from server.chat.request import Asked
from server.http.errors import ApiError, bad_request, sentence

if TYPE_CHECKING:
    from server.chat.service import Service

MODEL: Final = "cairn"
CHAT_MODEL: Final = "cairn-chat"


class Run(Protocol):
    """Drives one rollout; `control` is the user's hand on it."""

    def __call__(self, trace: Trace, emit: Emit, control: Control | None = None) -> Awaitable[Trace]: ...


@dataclass(frozen=True)
class Turn:
    """One question on its way: what runs, what it is written to, and how it is shown."""

    run: Run
    trace: Trace
    reply: Reply
    model: str
    profile: Profile
    include_usage: bool = False


def make_turn(
    service: "Service",
    request: Wishes,
    asked: Asked,
    *,
    include_usage: bool = False,
    keep: Callable[[Trace], None] | None = None,
) -> Turn:
    """A rollout that can start.

    Args:
        service: what answers.
        request: what is wished beside the question; its model is one that there is.
        asked: the question.
        include_usage: whether a stream is to tell of it.
        keep: takes the trace when the run has ended; by default the service's own.

    Raises:
        ApiError: the request cannot be answered; nothing was started.
    """
    chats = request.model == CHAT_MODEL
    plain = chats or (bool(request.disable_search) and service.agent.policy.instructed)
    if plain and len(asked.system) > service.question_chars:
        what = f"The instructions have {len(asked.system):,} characters"
        raise bad_request(f"{what}; at most {service.question_chars:,} are taken.", code="instructions_too_long")
    agent = _agent(service, request, system=asked.system, plain=plain)
    try:
        trace = agent.new_trace(asked.question, history=asked.history, seed=request.seed or 0)
    except QuestionError as error:
        raise bad_request(sentence(error)) from error
    profile = PROFILES[request.profile or service.profile]
    reply = Reply(
        agent.protocol,
        style="short" if chats else request.answer_style or service.answer_style,
        profile=profile,
        searchless=bool(request.disable_search) and not chats,
    )
    run = _kept(_runner(service, agent, plain=plain), keep or service.keep)
    return Turn(run, trace, reply, request.model, profile, include_usage)


def failure_of(trace: Trace) -> ApiError | None:
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


def _agent(service: "Service", request: Wishes, *, system: str, plain: bool) -> Agent:
    """The service's agent with what this request asks for."""
    agent = service.agent
    named = service.protocols.get(request.model.removeprefix(f"{MODEL}/"), agent.protocol)
    protocol = plain_protocol(system) if plain else named
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


def _runner(service: "Service", agent: Agent, *, plain: bool) -> Run:
    if plain:
        chat = PlainChat(agent.policy, agent.protocol, agent.sampling, agent.budgets)

        async def answer(trace: Trace, emit: Emit, control: Control | None = None) -> Trace:
            return await service.watch.run(lambda tell, hand: chat.run(trace, tell, hand), trace, emit, control)

        return answer

    async def run(trace: Trace, emit: Emit, control: Control | None = None) -> Trace:
        return await agent.run(trace, emit=emit, control=control)

    return run


def _kept(run: Run, keep: Callable[[Trace], None]) -> Run:
    """The run, whose trace is kept however it ends."""

    async def kept(trace: Trace, emit: Emit, control: Control | None = None) -> Trace:
        try:
            return await run(trace, emit, control)
        finally:
            keep(trace)

    return kept
