"""The figures of an evaluation, as one object, as a table and as Markdown.

What could not be scored is counted, by what failed, and is in no other figure; `em_strict` alone takes it for wrong.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from agent.sanitize.text import in_markdown
from train.evaluation.measure import METRICS
from train.evaluation.metrics import NORMALISATION, interval, mean, percentile
from train.evaluation.result import FAILURES, QuestionResult
from train.evaluation.statistics import RESAMPLES

if TYPE_CHECKING:
    from rich.table import Table

_DIGITS: Final = re.compile(r"(\d+)")

Figures = dict[str, Any]
Verdict = Literal["right", "wrong", "abstained", "failed"]

VERDICTS: Final[Mapping[Verdict, str]] = {
    "right": "the answer equals a gold answer (EM), or rightly says that there is none",
    "wrong": "another answer, or an empty one",
    "abstained": "it said that it does not know, though there is an answer",
    "failed": "an engine, a source or a server failed: counted apart, in no other figure",
}
STOPPED: Final[Mapping[str, str]] = {
    "answered": "answered",
    "forced": "forced by a budget",
    "bad_format": "bad format",
    "cancelled": "cancelled",
    "engine": "engine failed",
    "interrupted": "interrupted",
}
SCORES: Final = ("em", "f1", "cover")
USED: Final = ("rounds", "searches", "policy_tokens")
GOLD: Final = ("gold_found", "all_gold")
PLAIN: Final = (*SCORES, *USED, *GOLD)
"""Means that stand by their own name at the top of the figures; all others only under `metrics`."""


def under(name: str, normalisation: str) -> str:
    """The metric that a score is under a normalisation: `em` under `triviaqa` is `em_triviaqa`."""
    return name if normalisation == NORMALISATION or name not in SCORES else f"{name}_{normalisation}"


def verdict(result: QuestionResult, normalisation: str = NORMALISATION) -> Verdict:
    """What became of a question, in one word."""
    if result.status == "failed":
        return "failed"
    if result.metrics.get(under("em", normalisation)):
        return "right"
    return "abstained" if result.abstained else "wrong"


def values(results: Sequence[QuestionResult], name: str) -> list[float]:
    """A metric of the results that it applies to."""
    found = (result.metrics.get(name) for result in results)
    return [value for value in found if value is not None]


def summarise(results: Sequence[QuestionResult], settings: Mapping[str, str]) -> Figures:
    """Every figure of a run; the order of the results does not matter.

    `settings["normalisation"]` names the one for EM, F1 and cover; SQuAD's by default.
    """
    by = settings.get("normalisation") or NORMALISATION
    results = sorted(results, key=lambda result: result.id)
    scored = [result for result in results if result.status == "scored"]
    failed = Counter(result.failure or "engine" for result in results if result.status == "failed")
    seconds = values(scored, "seconds")
    named = dict.fromkeys([*METRICS, *(name for result in scored for name in result.metrics)])
    metrics = {name: _mean(found) for name in named if (found := values(scored, name))}
    figures: Figures = {"questions": len(results), "n": len(scored), **_plain(metrics, by)}
    figures |= {
        "em_strict": _round(sum(values(scored, under("em", by))) / len(results)) if results else 0.0,
        "seconds_p50": _round(percentile(seconds, 50)) if seconds else None,
        "seconds_p95": _round(percentile(seconds, 95)) if seconds else None,
        "abstained": sum(result.abstained for result in scored),
        "infrastructure": failed.total(),
        "engine": failed["engine"],
        **{name: sum(result.stopped == name for result in scored) for name in ("answered", "forced", "bad_format")},
        "stopped": dict(sorted(Counter(result.stopped or "answered" for result in scored).items())),
        "failures": dict(sorted(failed.items())),
        "verdicts": {name: sum(verdict(result, by) == name for result in results) for name in VERDICTS},
        "metrics": metrics,
        "by_type": _by(scored, lambda result: result.type, by),
        "by_hops": _by(scored, lambda result: "" if result.hops is None else str(result.hops), by),
        "normalisation": by,
        "settings": dict(settings),
    }
    return figures


def _plain(metrics: Mapping[str, Figures], by: str) -> Figures:
    """The main figures under their own names: None where no question has them, gold only where it is known."""
    plain: Figures = {}
    for name in SCORES:
        figure = metrics.get(under(name, by), {"mean": 0.0, "interval": [0.0, 0.0]})
        plain |= {name: figure["mean"], f"{name}_interval": figure["interval"]}
    plain |= {name: metrics[name]["mean"] if name in metrics else None for name in USED}
    for name in GOLD:
        if name in metrics:
            plain |= {name: metrics[name]["mean"], f"{name}_interval": metrics[name]["interval"]}
    return plain | ({"gold_n": metrics["gold_found"]["n"]} if "gold_found" in metrics else {})


def _mean(found: Sequence[float]) -> Figures:
    low, high = interval(found)
    return {"mean": _round(mean(found)), "interval": [_round(low), _round(high)], "n": len(found)}


def _by(results: Sequence[QuestionResult], key: Callable[[QuestionResult], str], by: str) -> dict[str, Figures]:
    groups: dict[str, list[QuestionResult]] = {}
    for result in results:
        if name := key(result):
            groups.setdefault(name, []).append(result)
    return {name: _group(groups[name], by) for name in sorted(groups, key=natural)}


def _group(results: Sequence[QuestionResult], by: str) -> Figures:
    figures: Figures = {"n": len(results)}
    for name in ("em", "f1"):
        figure = _mean(values(results, under(name, by)))
        figures |= {name: figure["mean"], f"{name}_interval": figure["interval"]}
    for name in ("cover", "searches", "seconds"):
        found = values(results, under(name, by))
        figures[name] = _round(mean(found)) if found else None
    return figures


def natural(name: str) -> tuple[str | int, ...]:
    """A key to sort by that puts q2 before q10."""
    return tuple(int(piece) if place % 2 else piece for place, piece in enumerate(_DIGITS.split(name)))


def _round(value: float) -> float:
    return round(value, 4)


_LABELS: Final = {
    "n": "questions scored",
    "em": "EM",
    "f1": "F1",
    "cover": "cover",
    "em_strict": "EM, failures as wrong",
    "gold_found": "gold passages found",
    "all_gold": "all gold found",
    "rounds": "rounds a question",
    "searches": "searches a question",
    "policy_tokens": "policy tokens a question",
    "seconds_p50": "seconds, p50",
    "seconds_p95": "seconds, p95",
    "abstained": "said that it does not know",
    "answered": "answered",
    "forced": "forced by a budget",
    "bad_format": "bad format",
    "infrastructure": "failures (not scored)",
}

BRIEF: Final = (
    "judged",
    "choice",
    "abstained_rightly",
    "abstained_wrongly",
    "answer_closed",
    "answer_grounded",
    "citation_precision",
    "citation_recall",
    "evidence_support",
    "snr_information",
    "snr_merge",
    "gold_in_corpus",
    "failed_searches",
    "duplicate_searches",
)
"""Metrics that a table for people has beside the main figures; the report has all."""

Row = tuple[str, str, str]


def rows(figures: Figures) -> list[Row]:
    """(figure, value, 95 % interval) as a person reads them: the main ones, failures by kind, others, groups."""
    return [*main_rows(figures), *metric_rows(figures, BRIEF), *group_rows(figures)]


def main_rows(figures: Figures) -> list[Row]:
    listed = [
        (label, number(figures[name]), between(figures.get(f"{name}_interval")))
        for name, label in _LABELS.items()
        if figures.get(name) is not None
    ]
    listed += [(f"  {FAILURES.get(kind, kind)}", number(n), "") for kind, n in figures["failures"].items()]
    unjudged = sum(figures.get("judge_failures", {}).values())
    return listed + ([("judge gave no verdict", number(unjudged), "")] if unjudged else [])


def metric_rows(figures: Figures, names: Iterable[str]) -> list[Row]:
    """Metrics by name, with the number of questions where it is not all; those of no question are left out."""
    metrics = figures["metrics"]
    return [
        (
            _counted(name, metrics[name]["n"], figures["n"]),
            number(metrics[name]["mean"]),
            between(metrics[name]["interval"]),
        )
        for name in names
        if name in metrics
    ]


def group_rows(figures: Figures) -> list[Row]:
    return [
        (
            f"EM, {title} {name}",
            f"{group['em']:.3f}  (F1 {group['f1']:.3f}, n {group['n']})",
            between(group["em_interval"]),
        )
        for title, groups in (("type", figures["by_type"]), ("hops", figures["by_hops"]))
        for name, group in groups.items()
    ]


def _counted(name: str, n: int, of: int) -> str:
    return label(name) if n == of else f"{label(name)} (n {n:,})"


def label(name: str) -> str:
    return METRICS[name].label if name in METRICS else name


def number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def between(bounds: Sequence[float] | None) -> str:
    return f"{bounds[0]:.3f} – {bounds[1]:.3f}" if bounds else ""


def table(figures: Figures, title: str) -> "Table":
    from rich.table import Table
    from rich.text import Text

    drawn = Table("figure", title=Text(title))
    drawn.add_column("value", justify="right")
    drawn.add_column("95 %", justify="right")
    for part in (main_rows(figures), metric_rows(figures, BRIEF), group_rows(figures)):
        for row in part:
            drawn.add_row(*map(Text, row))
        drawn.add_section()
    return drawn


def markdown(figures: Figures, title: str) -> str:
    """The same table, with what was run, and every metric with what it means."""
    settings = "\n".join(f"- {in_markdown(name)}: {in_markdown(value)}" for name, value in figures["settings"].items())
    lines = "\n".join(f"| {' | '.join(map(in_markdown, row))} |" for row in (*main_rows(figures), *group_rows(figures)))
    meant = "\n".join(
        f"| {' | '.join(map(in_markdown, (*row, METRICS[name].definition if name in METRICS else '')))} |"
        for name in figures["metrics"]
        for row in metric_rows(figures, [name])
    )
    return (
        f"# {in_markdown(title)}\n\n{settings}\n\n| figure | value | 95 % |\n|---|---:|---|\n{lines}\n\n"
        f"Answers are compared after the normalisation “{in_markdown(figures['normalisation'])}”; "
        "an empty answer is wrong. "
        f"Intervals are percentiles of {RESAMPLES:,} bootstrap means with a fixed seed.\n"
        + (
            f"\n## Every metric\n\n| metric | mean | 95 % | what it is |\n|---|---:|---|---|\n{meant}\n"
            if meant
            else ""
        )
    )
