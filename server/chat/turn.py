"""From a request to one rollout that can start: the agent with the request's options, and the reply that reads it.

Chat completions and responses both begin here; neither's format is known.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from agent.errors import QuestionError
from agent.loop.agent import Agent
from agent.loop.budgets import Control
from agent.loop.recorder import Emit
from agent.trace import Trace
from server.chat.options import RunOptions, budgets_for
from server.chat.plain import PlainChat, plain_protocol
from server.chat.profiles import PROFILES, Profile
from server.chat.reply import RolloutReply
from server.chat.request import ChatQuestion
from server.http.errors import ApiError, bad_request, sentence
from server.telemetry.watch import Runnable

if TYPE_CHECKING:
    from server.chat.service import Service

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
        """Drive it to its end; `control` is the user's hand on it."""
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
        raise bad_request(f"{what}; at most {service.question_chars:,} are taken.", code="instructions_too_long")
    agent = _agent(service, request, system=question.system, plain=plain)
    try:
        trace = agent.new_trace(question.question, history=question.history, seed=request.seed or 0)
    except QuestionError as error:
        raise bad_request(sentence(error)) from error
    profile = PROFILES[request.profile or service.profile]
    reply = RolloutReply(
        agent.protocol,
        style="short" if chats else request.answer_style or service.answer_style,
        profile=profile,
        searchless=bool(request.disable_search) and not chats,
    )
    rollout = PlainChat(agent.policy, agent.protocol, agent.sampling, agent.budgets) if plain else agent
    return ConversationTurn(service, rollout, trace, reply, request.model, profile, include_usage, keep)


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


def _agent(service: "Service", request: RunOptions, *, system: str, plain: bool) -> Agent:
    """The service's agent with the options of this request."""
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
