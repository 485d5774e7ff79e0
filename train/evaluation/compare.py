"""Two runs over the same questions: what differs, by how much, and how sure that is.

Differences are second − first, of questions that both runs scored; each question stays paired with itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from agent.errors import SetupError
from agent.sanitize.text import in_markdown
from train.evaluation.measure import METRICS
from train.evaluation.metrics import NORMALISATION
from train.evaluation.report import BRIEF, GOLD, SCORES, USED, label, natural, number, under, verdict
from train.evaluation.report_files import StoredRun
from train.evaluation.result import QuestionResult
from train.evaluation.statistics import compare, holm

if TYPE_CHECKING:
    from rich.table import Table

Figures = dict[str, Any]
Pair = tuple[QuestionResult, QuestionResult]

ALPHA: Final = 0.05
LISTED: Final = 20
"""Changed questions of each direction in the Markdown; the JSON and the page have all."""


def pairs_of(first: StoredRun, second: StoredRun) -> list[Pair]:
    """The results of the questions of both runs, in their order.

    Raises:
        SetupError: they share none.
    """
    others = {result.id: result for result in second.results}
    pairs = [
        (one, two)
        for one in sorted(first.results, key=lambda result: natural(result.id))
        if (two := others.get(one.id)) and (two.question, two.answers) == (one.question, one.answers)
    ]
    if not pairs:
        raise SetupError(f"{first.folder} and {second.folder} share no question; compare runs over the same questions")
    return pairs


def compared(first: StoredRun, second: StoredRun) -> Figures:
    """Every figure of the comparison, as one object.

    Raises:
        SetupError: the runs share no question that both scored.
    """
    pairs = pairs_of(first, second)
    scored = [pair for pair in pairs if all(result.status == "scored" for result in pair)]
    if not scored:
        raise SetupError("no question was scored in both runs; every one failed in one of them")
    by = normalisation(first, second)
    names = dict.fromkeys([*METRICS, *(name for pair in scored for result in pair for name in result.metrics)])
    metrics = {name: found for name in names if (found := _paired(scored, name))}
    changes = [(one.id, change(one, two, by)) for one, two in scored]
    return {
        "first": _run_of(first),
        "second": _run_of(second),
        "shared": len(pairs),
        "n": len(scored),
        "only_first": len(first.results) - len(pairs),
        "only_second": len(second.results) - len(pairs),
        "failed_first": sum(one.status == "failed" for one, _ in pairs),
        "failed_second": sum(two.status == "failed" for _, two in pairs),
        "normalisation": by,
        **{name: metrics[under(name, by)] for name in SCORES if under(name, by) in metrics},
        "metrics": metrics,
        "by_type": _groups(scored, lambda result: result.type, by),
        "by_hops": _groups(scored, lambda result: "" if result.hops is None else str(result.hops), by),
        "now_right": [id_ for id_, what in changes if what == "now right"],
        "no_longer_right": [id_ for id_, what in changes if what == "no longer right"],
        "settings": _differing(first.settings, second.settings),
    }


def normalisation(first: StoredRun, second: StoredRun) -> str:
    """The one that both runs score under; the default where they differ."""
    said = {run.settings.get("normalisation") or NORMALISATION for run in (first, second)}
    return said.pop() if len(said) == 1 else NORMALISATION


def change(one: QuestionResult, two: QuestionResult, by: str = NORMALISATION) -> str:
    """What became of a question from the first run to the second; empty where its verdict stayed."""
    before, after = verdict(one, by), verdict(two, by)
    if before == after:
        return ""
    if "failed" not in (before, after) and "right" in (before, after):
        return "now right" if after == "right" else "no longer right"
    return "otherwise changed"


def _paired(pairs: Sequence[Pair], name: str) -> Figures | None:
    first, second = ({pair[side].id: pair[side].metrics.get(name) for pair in pairs} for side in (0, 1))
    found = compare(first, second)
    if found is None:
        return None
    return {
        "n": found.n,
        "first": _round(found.first),
        "second": _round(found.second),
        "difference": _round(found.difference.value),
        "interval": [_round(found.difference.low), _round(found.difference.high)],
        "p": _round(found.p),
        "p_mcnemar": None if found.p_mcnemar is None else _round(found.p_mcnemar),
        "better": found.better,
        "worse": found.worse,
    }


def _groups(pairs: Sequence[Pair], key: Callable[[QuestionResult], str], by: str) -> dict[str, Figures]:
    """EM by group; `p_holm` is p corrected for the number of groups."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        if name := key(pair[0]):
            groups.setdefault(name, []).append(pair)
    made = {name: _paired(groups[name], under("em", by)) for name in sorted(groups, key=natural)}
    figures = {name: figure for name, figure in made.items() if figure}
    corrected = holm({name: figure["p"] for name, figure in figures.items()})
    return {name: figure | {"p_holm": _round(corrected[name])} for name, figure in figures.items()}


def _run_of(run: StoredRun) -> Figures:
    settings = run.settings
    return {
        "run": str(run.folder),
        "title": run.title,
        "questions": len(run.results),
        "measured": run.measured,
        "policy": settings.get("policy") or settings.get("model", ""),
        "protocol": settings.get("protocol", ""),
    }


def _differing(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, list[str]]:
    names = sorted(first.keys() | second.keys())
    both = {name: [first.get(name, ""), second.get(name, "")] for name in names}
    return {name: values for name, values in both.items() if values[0] != values[1]}


def _round(value: float) -> float:
    return round(value, 5)


Row = tuple[str, str, str, str, str, str, str]
HEAD: Final = ("figure", "first", "second", "difference", "95 %", "p", "n")


def row(name: str, figure: Figures) -> Row:
    """A figure as a person reads it."""
    low, high = figure["interval"]
    return (
        name,
        number(float(figure["first"])),
        number(float(figure["second"])),
        f"{figure['difference']:+.3f}",
        f"{low:+.3f} – {high:+.3f}",
        probability(figure["p"]),
        f"{figure['n']:,}",
    )


def probability(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def rows(figures: Figures, names: Iterable[str] | None = None) -> list[Row]:
    """The scores, then what else differs (of `names`, if these are given), then EM by group."""
    by = figures["normalisation"]
    main = [under(name, by) for name in SCORES if under(name, by) in figures["metrics"]]
    differ = [name for name, f in figures["metrics"].items() if name not in main and (f["better"] or f["worse"])]
    others = [name for name in differ if names is None or name in names]
    listed = [row(label(name), figures["metrics"][name]) for name in (*main, *others)]
    for title, groups in (("type", figures["by_type"]), ("hops", figures["by_hops"])):
        listed += [row(f"EM, {title} {name}", figure) for name, figure in groups.items()]
    return listed


def verdict_of(figures: Figures) -> str:
    """The whole comparison in a sentence."""
    em = figures["em"]
    low, high = em["interval"]
    sure = "is unlikely to be chance alone" if em["p"] < ALPHA else "cannot be distinguished from chance"
    exact = "" if em["p_mcnemar"] is None else f", McNemar's exact p {probability(em['p_mcnemar'])}"
    now, no_longer = len(figures["now_right"]), len(figures["no_longer_right"])
    return (
        f"EM {em['first']:.3f} → {em['second']:.3f} over {em['n']:,} questions: {em['difference']:+.3f} "
        f"(95 % {low:+.3f} to {high:+.3f}; permutation p {probability(em['p'])}{exact}); this {sure}. "
        f"{now:,} became right, {no_longer:,} are no longer."
    )


def table(figures: Figures) -> "Table":
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=Text(title_of(figures)), caption=Text(verdict_of(figures), style="default"))
    for place, name in enumerate(HEAD):
        drawn.add_column(name, justify="right" if place else "left", no_wrap=place > 0)
    for line in rows(figures, (*BRIEF, *USED, *GOLD, "seconds", "usd")):
        drawn.add_row(*map(Text, line))
    return drawn


def title_of(figures: Figures) -> str:
    return f"{figures['first']['title']} → {figures['second']['title']}"


def markdown(figures: Figures) -> str:
    lines = "\n".join(f"| {' | '.join(map(in_markdown, line))} |" for line in rows(figures))
    settings = "\n".join(
        f"- {in_markdown(name)}: {in_markdown(a) or '(nothing)'} → {in_markdown(b) or '(nothing)'}"
        for name, (a, b) in figures["settings"].items()
    )
    changed = "\n".join(
        f"- {title}: {in_markdown(_few(figures[key]))}"
        for title, key in (("now right", "now_right"), ("no longer right", "no_longer_right"))
    )
    return (
        f"# {in_markdown(title_of(figures))}\n\n{verdict_of(figures)}\n\n{note(figures)}\n\n"
        f"| {' | '.join(HEAD)} |\n|---|{'---:|' * 6}\n{lines}\n\n## Changed\n\n{changed}\n"
        + (f"\n## Settings that differ\n\n{settings}\n" if settings else "")
    )


def note(figures: Figures) -> str:
    """What was compared, and what was not."""
    apart = [
        f"{figures[key]:,} {said}"
        for key, said in (
            ("only_first", "are only in the first run"),
            ("only_second", "are only in the second"),
            ("failed_first", "failed in the first"),
            ("failed_second", "failed in the second"),
        )
        if figures[key]
    ]
    left = f" Left out: {'; '.join(apart)}." if apart else ""
    return (
        f"Differences are second − first over the {figures['n']:,} questions that both runs scored.{left} "
        "Intervals: paired bootstrap; p: paired permutation test, two-sided, not corrected for the number of figures."
    )


def _few(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - LISTED:,} more" if len(ids) > LISTED else ""
    return (", ".join(ids[:LISTED]) or "none") + more
