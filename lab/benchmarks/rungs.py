"""What a general model reaches over one question list: closed book, in plain RAG, and as an agent on each rung.

Every way asks the same model and, where it searches, the same corpus; the differences are paired by question.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent.policies.ladder.plain import reduced
from train.evaluation.metrics import exact_match, f1, interval, mean, percentile
from train.evaluation.result import QuestionResult
from train.evaluation.statistics import compare

CLOSED: Final = "closed-book"
RAG: Final = "plain-rag"
CUT: Final = "plain-rag, cut"
"""Plain RAG whose replies are cut to the short answer by the same rules as those of Cairn's lowest rung."""


@dataclass(frozen=True)
class RungRow:
    """One way to answer, summed up. Shares are of all questions, also of those that failed."""

    way: str
    n: int
    failed: int
    em: float
    em_interval: tuple[float, float]
    f1: float
    searches: float
    searched: float
    kept_format: float
    no_answer: float
    seconds: float
    """The median."""
    over_rag: tuple[float, float, float] | None = None
    """EM less that of plain RAG, with its 95 % interval."""
    over_cut: tuple[float, float, float] | None = None


def rows_of(runs: Mapping[str, Sequence[QuestionResult]]) -> list[RungRow]:
    """The ways in their order, with plain RAG's replies cut as one more."""
    known = dict(runs)
    if RAG in known:
        known = {CLOSED: known.get(CLOSED, ()), RAG: known[RAG], CUT: [cut(each) for each in known[RAG]]} | known
    return [_row(way, results, known) for way, results in known.items() if results]


def cut(result: QuestionResult) -> QuestionResult:
    """The same reply, cut to its short answer and scored again."""
    said = reduced(result.prediction, result.question)
    scored = {"em": float(exact_match(said, result.answers)), "f1": f1(said, result.answers)}
    return result.model_copy(update={"prediction": said, "metrics": result.metrics | scored})


def _row(way: str, results: Sequence[QuestionResult], runs: Mapping[str, Sequence[QuestionResult]]) -> RungRow:
    scored = [result for result in results if result.status == "scored"]
    right = list(_shares(results, "em").values())
    searches = _values(scored, "searches")
    kept = sum(result.stopped != "bad_format" for result in scored)
    silent = sum(not result.prediction.strip() for result in scored) + len(results) - len(scored)
    others = (RAG, CUT) if way not in (RAG, CUT) else ()
    over = [_over(results, runs[other]) for other in others if runs.get(other)]
    return RungRow(
        way=way,
        n=len(results),
        failed=len(results) - len(scored),
        em=mean(right),
        em_interval=interval(right),
        f1=mean(list(_shares(results, "f1").values())),
        searches=mean(searches),
        searched=sum(count > 0 for count in searches) / len(results),
        kept_format=kept / len(results),
        no_answer=silent / len(results),
        seconds=percentile(_values(scored, "seconds"), 50),
        over_rag=over[0] if over else None,
        over_cut=over[1] if over else None,
    )


def _over(results: Sequence[QuestionResult], others: Sequence[QuestionResult]) -> tuple[float, float, float] | None:
    found = compare(_shares(others, "em"), _shares(results, "em"))
    return (found.difference.value, found.difference.low, found.difference.high) if found else None


def _shares(results: Sequence[QuestionResult], name: str) -> dict[str, float]:
    """Question → its figure; 0 where it failed."""
    return {each.id: (each.metrics.get(name) or 0.0) if each.status == "scored" else 0.0 for each in results}


def _values(results: Sequence[QuestionResult], name: str) -> list[float]:
    return [value for result in results if (value := result.metrics.get(name)) is not None]
