"""The page of a study: of each claim what came out. It is written again from what is kept."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from agent.errors import SetupError
from lab.report import dated
from lab.reproduce.design import Arm, Paper
from lab.reproduce.findings import KEPT, MEANS, ArmResult, Findings, as_figures
from lab.reproduce.kept import ANSWERS_FILE
from lab.reproduce.ledger import Entry, core_minutes
from lab.reproduce.papers import PAPERS, all_arms
from lab.reproduce.plots import curves, forest
from lab.reproduce.real_report import real_part
from lab.reproduce.starts import start_rows
from lab.reproduce.study import EVALUATED, Study
from lab.reproduce.tables import LABELS, MARKS, checked, looked, row, verdict_of, with_bounds
from lab.reproduce.verdict import Ruling, curve

PAGE: Final = "reproduction.md"
DESIGN: Final = "reproduction_design.md"
_CODE: Final = ("lab/reproduce", "lab/recipes", "train/rl", "train/rewards", "train/reader", "agent/protocols")
PLOTS: Final = "reproduction"
"""Folder of the plots and of the figures, beside the page."""


def write_report(study: Study, findings: Findings, folder: Path) -> None:
    """Write the page, and plots and figures beside it.

    Raises:
        SetupError: the folder cannot be written.
    """
    try:
        (folder / PLOTS).mkdir(parents=True, exist_ok=True)
        for paper in PAPERS.values():
            for name, drawn in _plots(study, findings, paper).items():
                (folder / PLOTS / name).write_text(drawn, encoding="utf-8")
        (folder / KEPT).write_text(as_figures(study, findings), encoding="utf-8")
        (folder / PAGE).write_text(page(study, findings), encoding="utf-8")
    except OSError as error:
        raise SetupError(f"the page cannot be written to {folder}: {error.strerror or error}") from error


def page(study: Study, findings: Findings) -> str:
    """The whole page as Markdown."""
    papers = [_paper(study, findings, paper) for paper in PAPERS.values()]
    text = "\n".join([*_opening(findings), *_starts(findings), *real_part(findings), *papers]).rstrip() + "\n"
    return dated(text, _CODE) if findings.arms or findings.real_arms else text


def _plots(study: Study, findings: Findings, paper: Paper) -> dict[str, str]:
    """File → what is drawn of a paper; nothing where nothing ran."""
    own = _own(findings, paper)
    drawn: dict[str, str] = {}
    if any(one.judged for one in own):
        drawn[f"{paper.name}.svg"] = forest(own, f"{paper.title}: differences with their intervals")
    if lines := _courses(study, findings, paper):
        title = f"{paper.title}: EM over the training, with intervals over seeds"
        steps = study.recipe.steps // study.recipe.points
        drawn[f"{paper.name}-curves.svg"] = curves(lines, title, every=steps)
    return drawn


def _courses(study: Study, findings: Findings, paper: Paper) -> dict[str, list[tuple[float, float, float]]]:
    """Trained arm → value and bounds at each point."""
    made: dict[str, list[tuple[float, float, float]]] = {}
    for training in paper.trainings:
        points = curve(training.name, findings.found, points=study.recipe.points)
        if points:
            made[training.name] = [(one.value, one.low, one.high) for one in points]
    return made


def _own(findings: Findings, paper: Paper) -> list[Ruling]:
    return [one for one in findings.rulings.values() if one.direction.paper == paper.name]


def _opening(findings: Findings) -> list[str]:
    ruled = findings.rulings.values()
    counts = {name: sum(one.verdict == name for one in ruled) for name in MARKS}
    ended = [one for one in ruled if one.verdict != "not run"]
    passed = sum(bool(one.checked) and all(check.passed for check in one.checked) for one in ended)
    rows = [
        f"| [{one.direction.name}](#{_anchor(one)}) | {one.direction.claim} | {verdict_of(one)} | {_left_out(one)} | "
        f"{_on_real(findings, name)} |"
        for name, one in findings.rulings.items()
    ]
    rows += [
        f"| {name} | {one.direction.claim} | not tested | – | {_on_real(findings, name)} |"
        for name, one in findings.real.items()
        if name not in findings.rulings
    ]
    return [
        "# Five papers in miniature",
        "",
        "`cairn reproduce all --data DIR --out runs/papers --write docs` writes this page. It tests what five papers "
        "claim on policies of four million parameters in little worlds, by a [design](reproduction_design.md) that was "
        "fixed before: starts, margins, checks, seeds, and the rule for verdicts. A verdict says whether a claim shows "
        "at this size, where it could be seen at all; it says nothing against a paper. Every answer behind it is in "
        f"`{ANSWERS_FILE}`, beside it.",
        "",
        f"{len(ruled)} claims: {', '.join(f'{count} {name}' for name, count in counts.items())}. The checks of "
        f"{passed} passed. {findings.machine.cores} cores, {core_minutes(findings.jobs.values())} so far. "
        f"{findings.made_at(f'{EVALUATED}/')}".rstrip(),
        "",
        "| claim | in a sentence | in little worlds | without one seed | on real questions |",
        "|---|---|---|---|---|",
        *rows,
        "",
    ]


def _on_real(findings: Findings, name: str) -> str:
    one = findings.real.get(name)
    return "–" if one is None else f"[{verdict_of(one)}](#on-real-questions)"


def _left_out(one: Ruling) -> str:
    """Which verdicts change when a seed is left out."""
    if one.verdict == "not run":
        return "–"
    return "; ".join(f"{seed}: {MARKS[verdict]}" for seed, verdict in one.left_out.items()) or "the same"


def _starts(findings: Findings) -> list[str]:
    """The start's behaviours, each as probable as it was, and what it pays."""
    rows = [
        f"| `{row.arm}` | {row.says} | {with_bounds(row.share, '')} | {_em(row.em_with)} | {_em(row.em_without)} |"
        for row in start_rows(findings.found)
    ]
    if not rows:
        return []
    return [
        "## The start's behaviours",
        "",
        "At temperature 1, before any training; EM of the rollouts that show a behaviour, and of those that don't.",
        "",
        "| start | behaviour | probability (95 %) | EM with | EM without |",
        "|---|---|---|---|---|",
        *rows,
        "",
    ]


def _em(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _paper(study: Study, findings: Findings, paper: Paper) -> str:
    lines = [f"## {paper.title}", ""]
    for name in _plots(study, findings, paper):
        what = "EM over the trainings" if name.endswith("-curves.svg") else "Differences of shares"
        lines += [f"![{what}, {paper.title}]({PLOTS}/{name})", ""]
    for one in _own(findings, paper):
        lines += _direction(one)
    return "\n".join([*lines, *_arms(study, findings, paper)])


def _direction(ruling: Ruling) -> list[str]:
    direction = ruling.direction
    judged = {id(one.expected): one for one in ruling.judged}
    seen = {id(one.check): one for one in ruling.checked}
    return [
        f"### {direction.name}",
        "",
        f"{direction.claim} In the paper: {direction.figures} ({direction.place}). Here: {verdict_of(ruling)}.",
        "",
        "| inequality | first | second | difference (95 %) | margin | questions, seeds | |",
        "|---|---|---|---|---|---|---|",
        *(row(expected, judged.get(id(expected)), ruling.seeds) for expected in direction.expected),
        "",
        "| check | found (95 %) | |",
        "|---|---|---|",
        *(f"| {checked(check)} | {looked(seen.get(id(check)))} |" for check in direction.checks),
        "",
    ]


def _arms(study: Study, findings: Findings, paper: Paper) -> list[str]:
    """Every arm of the paper with its means over the seeds."""
    names = [*(one.name for one in paper.trainings), *(one.name for one in paper.arms)]
    listed, none = all_arms(), ArmResult(seeds=0, means={})
    heads = " | ".join(LABELS.get(metric, metric) for metric in MEANS)
    lines = [
        "### Arms",
        "",
        f"| arm | what it is | protocol, worlds | seeds | {heads} | EM over the course | reward |",
        f"|---|---|---|---|{'---|' * len(MEANS)}---|---|",
    ]
    for name in names:
        arm, result = listed[name], findings.arms.get(name, none)
        means = [f"{result.means[metric]:.3f}" if metric in result.means else "–" for metric in MEANS]
        cells = [f"`{name}`", arm.says, f"{arm.protocol}, {arm.world}", f"{result.seeds or '–'}", *means]
        lines.append(f"| {' | '.join([*cells, *_course(study, findings, arm)])} |")
    return [*lines, ""]


def _course(study: Study, findings: Findings, arm: Arm) -> tuple[str, str]:
    """EM at each point of a training, and its rewards from the first step to the last."""
    if not arm.has_curve:
        return "–", "–"
    points = curve(arm.name, findings.found, points=study.recipe.points)
    return " → ".join(f"{one.value:.3f}" for one in points) or "–", _rewards(findings.jobs, arm.name, study.seeds)


def _rewards(jobs: Mapping[str, Entry], name: str, seeds: Sequence[int]) -> str:
    kept = [entry.figures for seed in seeds if (entry := jobs.get(f"trained/{name}/{seed}")) is not None]
    ends = [(one["reward_first"], one["reward_last"]) for one in kept if "reward_first" in one]
    stopped = sum("stopped" in one for one in kept)
    numbers = [(float(first), float(last)) for first, last in ends]
    moved = " → ".join(f"{sum(column) / len(column):.2f}" for column in zip(*numbers, strict=True))
    return "; ".join([*([moved] if moved else []), *([f"{stopped} stopped themselves"] if stopped else [])]) or "–"


def _anchor(one: Ruling) -> str:
    return one.direction.name.replace(".", "")
