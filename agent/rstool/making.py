"""From a finished trace to a bundle: claims with quotes, sources numbered again, as many claims as the budget holds."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence

from agent.checks.claims import cited_by, claims_of
from agent.evidence import Passage
from agent.rstool.budget import Size, SizeBudget, estimate_tokens
from agent.rstool.bundle import Attempt, CitedSource, Ending, EvidenceBundle, EvidenceClaim, Outcome, Quotation
from agent.trace import Claim, Restated, Searched, SearchFailed, Trace

Shown = Mapping[int, tuple[Passage, ...]]
"""From the number that a claim cites to the passages that had it then."""
Numbers = Mapping[tuple[str, str], int]
"""From a passage's identity to its number in the bundle."""


def bundle_of(trace: Trace, *, budget: SizeBudget | None = None) -> EvidenceBundle:
    """The evidence of a rollout that has ended.

    Args:
        trace: of the rollout.
        budget: what the text form may weigh; left out, 8,000 characters.
    """
    budget = budget or SizeBudget()
    claims, shown = claims_of(trace)

    def of(kept: int) -> EvidenceBundle:
        return weighed(_bundle(trace, claims[:kept], shown, budget=budget, dropped=len(claims) - kept))

    return of(most_that_fit(len(claims), lambda kept: budget.holds(of(kept).to_prompt())))


def most_that_fit(count: int, fits: Callable[[int], bool]) -> int:
    """How many of `count` things fit, where fewer always fit better; 0 where not even one does."""
    if not count or fits(count):
        return count
    return bisect_left(range(1, count), True, key=lambda kept: not fits(kept))


def weighed(bundle: EvidenceBundle) -> EvidenceBundle:
    """The bundle with what its text form weighs."""
    text = bundle.to_prompt()
    size = bundle.size.model_copy(update={"chars": len(text), "tokens": estimate_tokens(text)})
    return bundle.model_copy(update={"size": size})


def _bundle(trace: Trace, claims: Sequence[Claim], shown: Shown, *, budget: SizeBudget, dropped: int) -> EvidenceBundle:
    sources: dict[tuple[str, str], Passage] = {}
    for claim in claims:
        for passage in cited_by(claim, shown):
            sources.setdefault(passage.identity, passage)
    numbers = {identity: place for place, identity in enumerate(sources, start=1)}
    stopped = trace.stopped
    return EvidenceBundle(
        question=trace.question,
        history=trace.history,
        restated=next((step.text for step in reversed(trace.steps) if isinstance(step, Restated)), ""),
        outcome="found" if dropped else _outcome(trace, claims),
        claims=tuple(_claim(claim, shown, numbers) for claim in claims),
        sources=tuple(_source(passage, place) for place, passage in enumerate(sources.values(), start=1)),
        tried=tuple(_tried(trace)),
        answer=trace.answer,
        ended=Ending(reason=stopped.reason, budget=stopped.budget, detail=stopped.detail)
        if stopped
        else Ending(reason="interrupted"),
        size=Size(max_chars=budget.chars, max_tokens=budget.tokens, dropped_claims=dropped),
        usage=trace.usage,
        seconds=trace.timings.total,
        trace_id=trace.id,
        protocol=trace.protocol,
        policy=trace.policy,
        versions=trace.versions,
    )


def _outcome(trace: Trace, claims: Sequence[Claim]) -> Outcome:
    """Without a claim, a rollout has failed that was cut off, or of whose searches none was answered.

    One that ended otherwise has honestly found nothing.
    """
    if claims:
        return "found"
    cut_off = trace.stopped is None or trace.stopped.reason in ("engine", "interrupted", "cancelled")
    searches = [step for step in trace.steps if isinstance(step, Searched | SearchFailed)]
    unanswered = bool(searches) and not any(isinstance(step, Searched) for step in searches)
    return "failed" if cut_off or unanswered else "empty"


def _claim(claim: Claim, shown: Shown, numbers: Numbers) -> EvidenceClaim:
    cited = cited_by(claim, shown)
    quotes = [
        Quotation(source=numbers[passage.identity], start=quote.start, end=quote.end, text=quote.text)
        for quote in claim.quotes
        for passage in [passage for passage in cited if quote.is_of(passage)][:1]
    ]
    if claim.check == "unchecked":  # the words that it rests on are unknown
        whole = {numbers[passage.identity]: passage.text for passage in cited}
        quotes = [Quotation(source=number, start=0, end=len(text), text=text) for number, text in whole.items()]
    return EvidenceClaim(
        text=claim.text,
        check=claim.check,
        derived=claim.derived,
        sources=tuple(dict.fromkeys(numbers[passage.identity] for passage in cited)),
        quotes=tuple(quotes),
    )


def _source(passage: Passage, number: int) -> CitedSource:
    return CitedSource(
        number=number,
        source=passage.source,
        id=passage.id,
        title=passage.title,
        url=passage.url,
        date=passage.date,
    )


def _tried(trace: Trace) -> Iterator[Attempt]:
    for step in trace.steps:
        match step:
            case Searched():
                yield Attempt(
                    round=step.round, source=step.source, query=step.query, found=len(step.passages), lost=step.lost
                )
            case SearchFailed():
                yield Attempt(
                    round=step.round,
                    source=step.source,
                    query=step.query,
                    found=0,
                    failure=step.why,
                    kind=step.error,
                )
            case _:
                pass
