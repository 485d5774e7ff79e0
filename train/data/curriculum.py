"""The order in which questions are learned: from few sources to many, from few documents to many, then by chance."""

import random
from collections.abc import Sequence

from agent.sources.questions import GoldQuestion
from train.data.records import Candidate, Doc


def ordered(candidates: Sequence[Candidate], *, seed: int) -> list[Candidate]:
    """From easy to hard; the seed decides among those that are alike."""
    rng = random.Random(f"cairn data order {seed}")
    drawn = [(len(one.sources), len(one.supporting), _steps(one), rng.random(), one) for one in candidates]
    return [one for *_, one in sorted(drawn, key=lambda row: row[:4])]


def _steps(candidate: Candidate) -> int:
    """Rounds of the gold plan; of what a model wrote, what asks for a fact comes before what asks why."""
    return candidate.plan.hops if candidate.plan else ("factual", "choice", "causal").index(candidate.type)


def as_question(candidate: Candidate, docs: dict[str, Doc]) -> dict[str, object]:
    """A line of a question list, with `sources` beside what every list has."""
    question = GoldQuestion(
        id=candidate.id,
        question=candidate.question,
        answers=candidate.answers,
        supporting=candidate.supporting,
        titles=tuple(docs[key].title for key in candidate.supporting),
        hops=candidate.plan.hops if candidate.plan else len(candidate.supporting),
        type=candidate.type,
        options=candidate.options,
        dataset="cairn-data",
    )
    held: dict[str, object] = question.model_dump(mode="json", exclude_defaults=True)
    return held | {"sources": list(candidate.sources)}
