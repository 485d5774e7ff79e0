"""A question that follows up a kept run: what it changes, which of the run's searches are used again, and what the
policy is given of it.
"""  # noqa: D205 - one sentence over two lines

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

from agent.loop.agent import Agent
from agent.loop.follow_up import read_follow_up
from agent.loop.recheck import Recheck
from agent.sources.filters import joined
from agent.sources.reused import ReusedSource, searches_of
from agent.trace import Claim, FollowedUp, Trace
from server.chat.service import ConversationTurn
from server.http.errors import bad_request

Context = Literal["summary", "evidence", "all"]
_CONTEXT_CHARS: Final = 6_000
"""Of claims and passages that stand behind an earlier answer."""


def following_up(turn: ConversationTurn, before: Trace, *, context: Context) -> ConversationTurn:
    """The turn as one that follows up a run.

    Args:
        turn: that can start; its question may have been read with the turns before it already.
        before: the trace of the run.
        context: what the policy is given of it.

    Raises:
        ApiError: it names a claim that the run does not have.
    """
    trace, rollout = turn.trace, turn.rollout
    if not isinstance(rollout, Agent):
        return turn
    written = trace.follow_up.text if trace.follow_up else trace.question
    trace.follow_up = FollowedUp(text=written, run=before.id, context=context)
    trace.libraries = tuple(dict.fromkeys((*trace.libraries, *before.libraries)))
    read = read_follow_up(written, before=before.question, today=rollout.today())
    if read and read.claim is not None:
        claim = _claim(before, read.claim)
        trace.follow_up = trace.follow_up.model_copy(update={"claim": claim.text})
        trace.question, trace.history = claim.text, ()
        cited = [passage for passage in before.passages if passage.number in claim.cites]
        return replace(turn, rollout=Recheck(rollout, claim, cited, before.question))
    if read:
        names = {condition.name for condition in read.filters}
        kept = (condition for condition in before.filters if condition.name not in names)
        trace.question, trace.history = read.question, ()
        trace.filters = joined(trace.filters, (*kept, *read.filters))
    if context != "summary":
        trace.history = (*trace.history[:-1], (before.question, _said(before, context)))
    elif not read and not trace.history:
        trace.history = ((before.question, before.answer or ""),)
    if trace.library_state != before.library_state:  # it searched other files than are searched now
        return turn
    found = searches_of(before)
    sources = {name: ReusedSource(name, source, found) for name, source in rollout.sources.items()}
    return replace(turn, rollout=replace(rollout, sources=sources))


def _claim(before: Trace, number: int) -> Claim:
    """The claim that a text names; 0 is the last one."""
    claims = before.claims
    if not 0 <= number <= len(claims) or not claims:
        there = f"it has {len(claims)}" if claims else "it has none"
        raise bad_request(f"The answer before has no claim {number}; {there}.", param="messages", code="no_such_claim")
    return claims[number - 1]


def _said(before: Trace, context: Context) -> str:
    """The answer of a run with its claims, and on request with the passages that it was shown."""
    lines: list[str] = [before.answer or ""]
    lines += _cut([f"- {claim.text}" for claim in before.claims])
    if context == "all":
        lines += _cut([f"[{passage.number}] {passage.title}: {passage.text}" for passage in before.passages])
    return "\n".join(lines)


def _cut(lines: Sequence[str]) -> list[str]:
    """As many of them as there is room for."""
    kept: list[str] = []
    room = _CONTEXT_CHARS
    for line in lines:
        room -= len(line)
        if room < 0:
            break
        kept.append(line)
    return kept
