"""A question that follows up a kept run: what it changes, which of the run's searches are used again, and what the
policy is given of it.
"""  # noqa: D205 - one sentence over two lines

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from agent.checks.claims import cited_by, claims_of
from agent.loop.agent import Agent
from agent.loop.follow_up import read_follow_up
from agent.loop.recheck import Recheck
from agent.plan import Filter
from agent.sources.base import SearchRequest, SearchResult, Source, credits_of, keep_seconds_of
from agent.sources.filters import DAYS, joined, read_filters
from agent.trace import Claim, FollowedUp, Planned, Searched, Trace
from server.chat.service import ConversationTurn
from server.http.errors import bad_request

Key = tuple[str, str, frozenset[tuple[str, str]]]
"""Source, query and filters."""

Context = Literal["summary", "evidence", "all"]
_CONTEXT_CHARS: Final = 6_000
"""Of claims and passages that stand behind an earlier answer."""
_DAY_SECONDS: Final = 24 * 3600.0


class EarlierSearch(NamedTuple):
    """A search of the run before."""

    at: float
    """Seconds since 1970."""
    result: SearchResult


def following_up(turn: ConversationTurn, before: Trace, *, began: float, context: Context) -> ConversationTurn:
    """The turn as one that follows up a run.

    Args:
        turn: that can start; its question may have been read with the turns before it already.
        before: the trace of the run.
        began: when the run did, in seconds since 1970.
        context: what the policy is given of it.

    Raises:
        ApiError: it names a claim that the run does not have.
    """
    trace, rollout = turn.trace, turn.rollout
    if not isinstance(rollout, Agent):
        return turn
    written = trace.follow_up.text if trace.follow_up else trace.question
    sent = trace.follow_up.history if trace.follow_up else trace.history
    trace.follow_up = FollowedUp(text=written, history=sent, run=before.id, context=context)
    trace.libraries = tuple(dict.fromkeys((*trace.libraries, *before.libraries)))
    read = read_follow_up(written, before=before.question, today=rollout.today())
    if read and read.claim is not None:
        claim = _claim(before, read.claim)
        trace.follow_up = trace.follow_up.model_copy(update={"claim": claim.text})
        trace.question, trace.history = claim.text, ()
        cited = cited_by(claim, claims_of(before)[1])
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
    if (trace.library_state, {*trace.only}) != (before.library_state, {*before.only}):
        return turn  # it searched other files or sources than are searched now
    found = searches_of(before, began=began)
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


def searches_of(trace: Trace, *, began: float) -> dict[Key, EarlierSearch]:
    """What each search of a run found; those that found nothing are searched again.

    So are those that a cache or an earlier run answered: what they found is older than the run.
    """
    filters: dict[tuple[int, str], tuple[Filter, ...]] = {}
    found: dict[Key, EarlierSearch] = {}
    for step in trace.steps:
        if isinstance(step, Planned):
            filters |= {(step.round, node.id): node.filters for node in step.plan.nodes}
        elif isinstance(step, Searched) and step.passages and not step.cached:
            wanted = joined(filters.get((step.round, step.node), ()), trace.filters)
            passages = tuple(passage.model_copy(update={"number": 0, "node": ""}) for passage in step.passages)
            result = SearchResult(passages, backend=step.backend, cached="reused", credits=0.0)
            found[_key(step.source, step.query, wanted)] = EarlierSearch(began + step.seconds, result)
    return found


@dataclass(frozen=True)
class ReusedSource:
    """A source that is not searched again for what an earlier run found, while that holds. It does not own the source.

    It holds as long as the source's answers are kept, and no longer than the period whose news a search is for.
    """

    name: str
    source: Source
    found: Mapping[Key, EarlierSearch]
    now: Callable[[], float] = time.time
    """Seconds since 1970."""

    @property
    def credits_per_search(self) -> float:
        return credits_of(self.source)

    async def search(self, request: SearchRequest) -> SearchResult:
        known = self.found.get(_key(self.name, request.query, request.filters))
        if known and len(known.result.passages) <= request.limit and self.now() - known.at < self._holds(request):
            return known.result
        return await self.source.search(request)

    def _holds(self, request: SearchRequest) -> float:
        """For how many seconds an earlier answer may be used again."""
        kept, recent = keep_seconds_of(self.source), read_filters(request.filters).recent
        return min(kept, DAYS[recent] * _DAY_SECONDS) if recent else kept


def _key(source: str, query: str, filters: tuple[Filter, ...]) -> Key:
    return source, " ".join(query.casefold().split()), frozenset((one.name, one.value) for one in filters)
