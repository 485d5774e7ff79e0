"""The report of one run as one HTML page: figures and plots are drawn here, the list of questions by its script."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Final

from agent.trace import Trace
from train.evaluation import plots
from train.evaluation.measure import METRICS
from train.evaluation.pack import LEVELS, Level, Packed, pack
from train.evaluation.page_shell import card, header, page, section, settings_list, table
from train.evaluation.report import (
    STOPPED,
    VERDICTS,
    Figures,
    between,
    label,
    natural,
    number,
    values,
    verdict,
)
from train.evaluation.result import FAILURES, QuestionResult
from train.evaluation.statistics import RESAMPLES

LIMIT: Final = 5_000_000
"""Bytes of a page. A run that is larger loses the ends of long texts first, then raw text, then traces."""
SCRIPTS: Final = ("common.js", "question.js", "report.js")
COLOURS: Final = {"right": "good", "wrong": "wrong", "abstained": "shy", "failed": "failed"}
GROUPS: Final = {
    "answer": "The answer",
    "abstention": "Saying that one does not know",
    "search": "Searching",
    "signal": "Signal in what was read",
    "evidence": "Evidence and citations",
    "ending": "How it ended",
    "cost": "What it took",
}
AGREE: Final = (
    "Where all questions of a group agree, the bootstrap's interval has no width; of few questions that proves little."
)
HISTOGRAMS: Final = (
    ("searches", "Searches a question", True),
    ("rounds", "Rounds a question", True),
    ("policy_tokens", "Policy tokens a question", True),
    ("seconds", "Seconds a question", False),
)

Traces = Callable[[], Iterable[Trace]]
"""Gives the traces of a run from the first; it may be called more than once."""


def report_page(
    figures: Figures,
    results: Sequence[QuestionResult],
    traces: Traces,
    *,
    title: str,
    measured: str,
    limit: int = LIMIT,
) -> str:
    """The page, of at most `limit` bytes where cutting long texts can make it so.

    Args:
        figures: of `train.evaluation.report.summarise`.
        results: of the questions, in any order.
        traces: theirs; a question without one shows its answer only.
        title: what was measured, in a line.
        measured: when, as a date; empty where that is unknown.
        limit: in bytes.
    """
    ordered = sorted(results, key=lambda result: natural(result.id))
    body = _body(figures, ordered, title=title, measured=measured)
    made = ""
    for level in LEVELS:
        made = page(title, body, scripts=SCRIPTS, data=_data(figures, ordered, traces(), level))
        if len(made.encode()) <= limit:
            break
    return made


def explained(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Label and meaning of each metric, for the script."""
    return {name: {"label": label(name), "definition": METRICS[name].definition} for name in names if name in METRICS}


def budgets_of(settings: Mapping[str, str]) -> dict[str, float]:
    """The budgets that a run had a limit for."""
    try:
        budgets = json.loads(settings.get("budgets", "{}"))
    except ValueError:
        return {}
    return {name: value for name, value in budgets.items() if isinstance(value, int | float)}


def facts(settings: Mapping[str, str], measured: str) -> list[tuple[str, str]]:
    """The line under the title: what was measured, on what, and when."""
    return [
        ("policy", settings.get("policy", "")),
        ("agent", " ".join(filter(None, (settings.get("model", ""), settings.get("endpoint", ""))))),
        ("protocol", settings.get("protocol", "")),
        ("baseline", settings.get("baseline", "")),
        ("guard", settings.get("guard", "")),
        ("judge", settings.get("judge", "")),
        ("questions", settings.get("questions", "")),
        ("searched", settings.get("searched", "")),
        ("measured", measured),
        ("Cairn", settings.get("cairn", "")),
    ]


def _data(figures: Figures, results: Sequence[QuestionResult], traces: Iterable[Trace], level: Level) -> Packed:
    return pack(results, traces, level, normalisation=figures["normalisation"]) | {
        "metrics": explained(figures["metrics"]),
        "failures": dict(FAILURES),
        "budgets": budgets_of(figures["settings"]),
    }


def _body(figures: Figures, results: Sequence[QuestionResult], *, title: str, measured: str) -> str:
    groups = [_groups(name, figures[key]) for name, key in (("type", "by_type"), ("hops", "by_hops"))]
    parts = [
        header(title, facts(figures["settings"], measured)),
        "<main>",
        _headline(figures),
        *groups,
        _distributions(figures, results),
        _ends(figures),
        section(
            "Questions",
            '<div id="questions"><p class="quiet">This list needs JavaScript, which does not run here.</p></div>',
            lead="Open a question to see its trace: what was thought, searched, shown, cited and answered.",
            class_="questions",
        ),
        _definitions(figures),
        "</main>",
        _footer(figures),
    ]
    return "\n".join(parts)


def _headline(figures: Figures) -> str:
    cards = [card("Exact match", f"{figures['em']:.3f}", _within(figures, "em"), first=True)]
    cards += [card("F1", f"{figures['f1']:.3f}", _within(figures, "f1"))]
    cards += [card("Cover", f"{figures['cover']:.3f}", _within(figures, "cover"))]
    if "gold_found" in figures:
        cards.append(card("Gold passages found", f"{figures['gold_found']:.3f}", _within(figures, "gold_found")))
    metrics = figures["metrics"]
    if "judged" in metrics:
        unjudged = sum(figures.get("judge_failures", {}).values())
        judged, (low, high) = metrics["judged"]["mean"], metrics["judged"]["interval"]
        beside = f"{unjudged:,} without a verdict" if unjudged else f"95 %: {low:.3f} – {high:.3f}"
        cards.insert(1, card("Judge", f"{judged:.3f}", beside))
    if "searches" in metrics:
        below = f"in {figures['rounds']:.2f} rounds" if "rounds" in metrics else ""
        cards.append(card("Searches a question", f"{figures['searches']:.2f}", below))
    if "policy_tokens" in metrics:
        cards.append(card("Policy tokens a question", f"{figures['policy_tokens']:,.0f}"))
    if "seconds" in metrics:
        cards.append(card("Seconds, median", f"{figures['seconds_p50']:.2f}", f"p95 {figures['seconds_p95']:.2f}"))
    failed = figures["infrastructure"]
    cards.append(
        card("Questions scored", f"{figures['n']:,}", f"{failed:,} failed, not scored" if failed else "none failed")
    )
    notice = (
        f'<p class="notice">{failed:,} of {figures["questions"]:,} questions failed for reasons outside of the agent. '
        f"They are in no figure; taken for wrong they would make EM {figures['em_strict']:.3f}.</p>"
        if failed
        else ""
    )
    return f'<dl class="cards">{"".join(cards)}</dl>{notice}'


def _within(figures: Figures, name: str) -> str:
    return f"95 %: {between(figures[f'{name}_interval'])}" if figures["n"] else ""


def _groups(name: str, groups: Mapping[str, Figures]) -> str:
    if not groups:
        return ""
    estimates = [
        plots.Estimate(group, figures["n"], figures["em"], *figures["em_interval"]) for group, figures in groups.items()
    ]
    head = [name, "n", "EM", "95 %", "F1", "95 %", "cover", "searches", "seconds"]
    lines = [
        [
            group,
            f"{f['n']:,}",
            f"{f['em']:.3f}",
            between(f["em_interval"]),
            f"{f['f1']:.3f}",
            between(f["f1_interval"]),
            *(number(f[key]) for key in ("cover", "searches", "seconds")),
        ]
        for group, f in groups.items()
    ]
    agree = any(low == high for low, high in (figures["em_interval"] for figures in groups.values()))
    return section(
        f"By {name}",
        f"<figure>{plots.estimates(estimates)}</figure>",
        f'<p class="quiet">{AGREE}</p>' if agree else "",
        f"<details><summary>All figures by {escape(name)}</summary>{table(head, lines, numbers=range(1, 9))}</details>",
    )


def _distributions(figures: Figures, results: Sequence[QuestionResult]) -> str:
    scored = [result for result in results if result.status == "scored"]
    by = figures["normalisation"]
    right = [result for result in scored if verdict(result, by) == "right"]
    others = [result for result in scored if verdict(result, by) != "right"]
    drawn = [
        plots.histogram(title, values(right, name), values(others, name), whole=whole)
        for name, title, whole in HISTOGRAMS
        if values(scored, name)
    ]
    key = '<p class="quiet"><span class="key good"></span>right<span class="key rest"></span>not right</p>'
    return section("What it took", key, f'<div class="plots">{"".join(drawn)}</div>') if drawn else ""


def _ends(figures: Figures) -> str:
    verdicts = [(name, count, COLOURS[name]) for name, count in figures["verdicts"].items()]
    stopped = [
        (STOPPED.get(name, name), count, "good" if name == "answered" else "rest")
        for name, count in figures["stopped"].items()
    ]
    failures = [(FAILURES.get(name, name), count, "failed") for name, count in figures["failures"].items()]
    meant = "".join(f"<li><b>{name}</b>: {escape(meaning)}</li>" for name, meaning in VERDICTS.items())
    shown = [("Verdicts", verdicts), ("How the scored rollouts ended", stopped), ("What failed", failures)]
    drawn = [f"<figure><figcaption>{title}</figcaption>{plots.bars(rows)}</figure>" for title, rows in shown if rows]
    return section("How they ended", f'<div class="plots">{"".join(drawn)}</div>', f'<ul class="quiet">{meant}</ul>')


def _definitions(figures: Figures) -> str:
    """Every metric with its meaning, in tables by what they are about; those of the answer are open."""
    groups: dict[str, list[str]] = {}
    for name in figures["metrics"]:
        groups.setdefault(METRICS[name].group if name in METRICS else "", []).append(name)
    drawn = [
        f"<details{' open' if group == 'answer' else ''}><summary><b>{escape(GROUPS.get(group, 'Others'))}</b> "
        f'<span class="quiet">{len(names)} metrics</span></summary>{_metric_table(figures, names)}</details>'
        for group, names in groups.items()
    ]
    return section(
        "Every metric, and what it means",
        *drawn,
        lead="Means over the questions that a metric applies to (n). Intervals are percentiles of "
        f"{RESAMPLES:,} bootstrap means over questions, with a fixed seed.",
    )


def _metric_table(figures: Figures, names: Sequence[str]) -> str:
    lines = [
        [label(name), number(figure["mean"]), between(figure["interval"]), f"{figure['n']:,}", _meaning(name)]
        for name in names
        for figure in (figures["metrics"][name],)
    ]
    return table(["metric", "mean", "95 %", "n", "what it is"], lines, numbers=(1, 2, 3))


def _meaning(name: str) -> str:
    if name not in METRICS:
        return ""
    better = {"higher": " Higher is better.", "lower": " Lower is better."}.get(METRICS[name].better, "")
    return f"{METRICS[name].definition}{better}"


def _footer(figures: Figures) -> str:
    return (
        f"<footer><details><summary>Settings of the run</summary>{settings_list(figures['settings'])}</details>"
        f"<p>Answers are compared after the normalisation “{escape(figures['normalisation'])}”; an empty answer is "
        "wrong. This page is one file and loads nothing.</p></footer>"
    )
