"""The comparison of two runs as one HTML page: differences with intervals, and what changed with both traces."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from train.evaluation import plots
from train.evaluation.compare import (
    HEAD,
    Figures,
    Pair,
    change,
    note,
    pairs_of,
    probability,
    row,
    rows,
    title_of,
    verdict_of,
)
from train.evaluation.pack import LEVELS, Level, Packed, pack
from train.evaluation.page_shell import card, header, page, section, table
from train.evaluation.report import label
from train.evaluation.report_files import StoredRun
from train.evaluation.report_html import LIMIT, budgets_of, explained
from train.evaluation.result import FAILURES

SCRIPTS: Final = ("common.js", "question.js", "compare.js")
CARDS: Final = ("em", "f1", "cover", "gold_found", "searches", "policy_tokens", "seconds")


def compare_page(figures: Figures, first: StoredRun, second: StoredRun, *, limit: int = LIMIT) -> str:
    """The page; long texts of the traces are cut so far that it stays under `limit` bytes."""
    by = figures["normalisation"]
    changed = [pair for pair in pairs_of(first, second) if change(*pair, by)]
    body = _body(figures, len(changed))
    made = ""
    for level in LEVELS:
        data = _data(figures, first, second, changed, level)
        made = page(title_of(figures), body, scripts=SCRIPTS, data=data)
        if len(made.encode()) <= limit:
            break
    return made


def _data(figures: Figures, first: StoredRun, second: StoredRun, changed: Sequence[Pair], level: Level) -> Packed:
    by = figures["normalisation"]
    sides = [
        pack(results, run.traces(results), level, normalisation=by)
        for run, results in ((first, [one for one, _ in changed]), (second, [two for _, two in changed]))
    ]
    pairs = [
        {
            "id": one.id,
            "question": one.question,
            "answers": list(one.answers),
            "type": one.type,
            "change": change(one, two, by),
            "first": before,
            "second": after,
        }
        for (one, two), before, after in zip(changed, sides[0]["questions"], sides[1]["questions"], strict=True)
    ]
    names = short_names(first, second)
    pools = [
        {"texts": side["texts"], "passages": side["passages"], "budgets": budgets_of(run.settings)}
        for side, run in zip(sides, (first, second), strict=True)
    ]
    return {
        "changed": pairs,
        "first": pools[0],
        "second": pools[1],
        "names": names,
        "note": sides[0]["note"] or sides[1]["note"],
        "metrics": explained(figures["metrics"]),
        "failures": dict(FAILURES),
    }


def short_names(first: StoredRun, second: StoredRun) -> list[str]:
    """The folders' names where they differ, else first and second."""
    names = [Path(run.folder).resolve().name for run in (first, second)]
    return names if names[0] != names[1] else ["first", "second"]


def _body(figures: Figures, changed: int) -> str:
    sides = [(side, _side(figures[side])) for side in ("first", "second")]
    return "\n".join(
        [
            header(title_of(figures), sides),
            "<main>",
            f"<p>{escape(verdict_of(figures))}</p>",
            _cards(figures["metrics"]),
            f'<p class="lead">{escape(note(figures))}</p>',
            *(_groups(name, figures[key]) for name, key in (("type", "by_type"), ("hops", "by_hops"))),
            section(
                "Questions that changed",
                '<div id="questions"><p class="quiet">This list needs JavaScript, which does not run here.</p></div>',
                lead=f"{changed:,} questions whose verdict differs. Open one to see both traces side by side.",
                class_="questions",
            ),
            section("Every figure that differs", table(HEAD, rows(figures), numbers=range(1, 7))),
            _settings(figures["settings"]),
            "</main>",
            "<footer><p>This page is one file and loads nothing.</p></footer>",
        ]
    )


def _side(run: Mapping[str, Any]) -> str:
    return ", ".join(filter(None, (run["policy"], run["protocol"], run["measured"]))) + f" ({Path(run['run']).name})"


def _cards(metrics: Mapping[str, Figures]) -> str:
    drawn = [
        card(
            label(name),
            f"{figure['difference']:+.3f}",
            f"{figure['first']:.3f} → {figure['second']:.3f}",
            f"95 %: {figure['interval'][0]:+.3f} – {figure['interval'][1]:+.3f}",
            f"p {probability(figure['p'])}",
            first=name == "em",
        )
        for name in CARDS
        if (figure := metrics.get(name))
    ]
    return f'<dl class="cards wide">{"".join(drawn)}</dl>'


def _groups(name: str, groups: Mapping[str, Figures]) -> str:
    if not groups:
        return ""
    reach = max(0.05, *(abs(bound) for figure in groups.values() for bound in figure["interval"]))
    estimates = [
        plots.Estimate(group, figure["n"], figure["difference"], *figure["interval"])
        for group, figure in groups.items()
    ]
    lines = [(*row(group, figure), probability(figure["p_holm"])) for group, figure in groups.items()]
    head = (name, *HEAD[1:], "p, Holm")
    return section(
        f"EM by {name}",
        f"<figure>{plots.estimates(estimates, low=-reach, high=reach, figure='difference in EM')}</figure>",
        f"<details><summary>As a table</summary>{table(head, lines, numbers=range(1, 8))}</details>",
    )


def _settings(settings: Mapping[str, Sequence[str]]) -> str:
    lines = [(name, first or "–", second or "–") for name, (first, second) in settings.items()]
    return section("Settings that differ", table(("setting", "first", "second"), lines)) if lines else ""
