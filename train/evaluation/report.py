"""The figures of an evaluation, as one object, as a table and as Markdown."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from train.evaluation.metrics import NORMALISATION, interval, mean, percentile
from train.evaluation.run import Result

if TYPE_CHECKING:
    from rich.table import Table

Figures = dict[str, Any]


def summarise(results: Sequence[Result], settings: Mapping[str, str]) -> Figures:
    """Every figure of a run.

    Rollouts that an engine or a source failed are counted as `infrastructure` and are in no other figure but
    `em_strict`, which takes them for wrong.
    """
    scored = [r for r in results if not r.infrastructure]
    strict = [float(r.em and not r.infrastructure) for r in results]
    seconds = [r.seconds for r in scored]
    figures: Figures = {
        "asked": len(results),
        **_scores(scored),
        "cover": _round(mean([r.cover for r in scored])),
        "em_strict": _round(mean(strict)),
        "infrastructure": len(results) - len(scored),
        "engine": sum(r.stopped == "engine" for r in results),
        "answered": sum(r.stopped == "answered" for r in scored),
        "forced": sum(r.stopped == "forced" for r in scored),
        "bad_format": sum(r.stopped == "bad_format" for r in scored),
        "rounds": _round(mean([r.rounds for r in scored])),
        "searches": _round(mean([r.searches for r in scored])),
        "policy_tokens": _round(mean([r.policy_tokens for r in scored])),
        "seconds_p50": _round(percentile(seconds, 50)),
        "seconds_p95": _round(percentile(seconds, 95)),
    }
    figures |= _gold([r for r in scored if r.gold])
    figures["by_type"] = _by(scored, lambda r: r.type)
    figures["by_hops"] = _by(scored, lambda r: "" if r.hops is None else str(r.hops))
    figures["normalisation"] = NORMALISATION
    figures["settings"] = dict(settings)
    return figures


def _scores(results: Sequence[Result]) -> Figures:
    exact, overlap = [float(r.em) for r in results], [r.f1 for r in results]
    return {
        "n": len(results),
        "em": _round(mean(exact)),
        "em_interval": [_round(bound) for bound in interval(exact)],
        "f1": _round(mean(overlap)),
        "f1_interval": [_round(bound) for bound in interval(overlap)],
    }


def _gold(results: Sequence[Result]) -> Figures:
    """Retrieval, over the questions whose gold passages are known."""
    if not results:
        return {}
    shares = [r.gold_found / r.gold for r in results]
    complete = [float(r.gold_found == r.gold) for r in results]
    return {
        "gold_n": len(results),
        "gold_found": _round(mean(shares)),
        "gold_found_interval": [_round(bound) for bound in interval(shares)],
        "all_gold": _round(mean(complete)),
        "all_gold_interval": [_round(bound) for bound in interval(complete)],
    }


def _by(results: Sequence[Result], key: Callable[[Result], str]) -> dict[str, Figures]:
    groups: dict[str, list[Result]] = {}
    for result in results:
        if name := key(result):
            groups.setdefault(name, []).append(result)
    return {name: _scores(groups[name]) for name in sorted(groups)}


def _round(value: float) -> float:
    return round(value, 4)


def rows(figures: Figures) -> list[tuple[str, str, str]]:
    """(figure, value, 95 % interval) as a person reads them."""
    listed = [
        (label, _number(figures[name]), _interval(figures.get(f"{name}_interval")))
        for name, label in _LABELS.items()
        if name in figures
    ]
    for title, groups in (("type", figures["by_type"]), ("hops", figures["by_hops"])):
        for name, group in groups.items():
            value = f"{group['em']:.3f}  (F1 {group['f1']:.3f}, n {group['n']})"
            listed.append((f"EM, {title} {name}", value, _interval(group["em_interval"])))
    return listed


_LABELS = {
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
    "answered": "answered",
    "forced": "forced by a budget",
    "bad_format": "bad format",
    "infrastructure": "infrastructure failures (not scored)",
    "engine": "of these, the engine's",
}


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def _interval(bounds: Sequence[float] | None) -> str:
    return f"{bounds[0]:.3f} – {bounds[1]:.3f}" if bounds else ""


def table(figures: Figures, title: str) -> "Table":
    from rich.table import Table

    drawn = Table("figure", "value", "95 %", title=title)
    for row in rows(figures):
        drawn.add_row(*row)
    return drawn


def markdown(figures: Figures, title: str) -> str:
    """The same table, with what was run."""
    settings = "\n".join(f"- {name}: {value}" for name, value in figures["settings"].items())
    lines = "\n".join(f"| {' | '.join(row)} |" for row in rows(figures))
    return (
        f"# {title}\n\n{settings}\n\n| figure | value | 95 % |\n|---|---:|---|\n{lines}\n\n"
        f"Answers are compared after the normalisation “{figures['normalisation']}”; an empty answer is wrong. "
        "Intervals are percentiles of 2,000 bootstrap means with a fixed seed.\n"
    )
