"""`cairn reproduce`. Torch is imported only where something is trained or evaluated."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.table import Table
from rich.text import Text

from agent.cli.console import messages, note, output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.reproduce.design import Direction
    from lab.reproduce.findings import Findings
    from lab.reproduce.ledger import Ledger
    from lab.reproduce.study import Study

PAGE: Final = "reproduction.md"


def reproduce(
    paper: Annotated[str, typer.Argument(help="multisearch, dag, evidence, reflect, kg, or all.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of everything; to continue, run the same command again.")],
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="DIRECTION", help="Only this claim; may be repeated.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=0, help="Of each arm; 0: as many as the recipe says.")] = 0,
    steps: Annotated[int, typer.Option(min=0, help="Of a training; 0: as many as the recipe says.")] = 0,
    recipe: Annotated[Path | None, typer.Option(help="Instead of lab/recipes/reproduce.toml.")] = None,
    start: Annotated[
        Path | None, typer.Option("--start", metavar="HUB", help="A shared start that is there, in the hub's form.")
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Two builds of `cairn data build` to train on: DIR/pipeline, DIR/single."),
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="Jobs at the same time, each on one core.")] = 2,
    untrained: Annotated[
        bool, typer.Option("--untrained", help="Only what needs no training: claims about inference.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan, its minutes and what is done.")] = False,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Of a page whose verdicts are kept, if by this plan: docs.")
    ] = None,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="DIR", help="Write the page and its plots here, too: docs.")
    ] = None,
) -> None:
    """Test the claims of five papers in miniature: train the arms, evaluate them, and say which claims hold.

    Finished work is kept, also after a kill; interrupted trainings continue from
    their last state. Verdicts follow a rule that is fixed beforehand.

    Example: cairn reproduce all --out runs/papers --dry-run
    """
    from lab.reproduce.findings import read_findings
    from lab.reproduce.papers import all_arms, directions_of
    from lab.reproduce.study import SHIPPED_RECIPE, read_study

    chosen = directions_of(paper, only or ())
    if untrained:
        there = all_arms()
        chosen = [one for one in chosen if all(there[side.arm].policy == "shipped" for side in one.sides)]
    study = read_study(
        recipe or SHIPPED_RECIPE,
        out,
        seeds=range(1, seeds + 1),
        steps=steps,
        hub=start.resolve() if start else None,
        questions=questions.resolve() if questions else None,
    )
    earlier = read_findings(study, keep) if keep else None
    if earlier:
        chosen = [one for one in chosen if one.name not in earlier.rulings]
    if dry_run:
        output().print(_plan(study, chosen, processes))
        return
    _go(study, chosen, processes, earlier, write)


def _go(
    study: "Study", chosen: "Sequence[Direction]", processes: int, earlier: "Findings | None", write: Path | None
) -> None:
    from lab.reproduce.run import Unfinished
    from lab.reproduce.run import reproduce as go

    try:
        go(study, chosen, processes=processes, say=lambda sentence: messages().print(Text(sentence)))
    except Unfinished:  # what is done is reported; nothing of another plan's results is
        _report(study, earlier, write)
        raise
    _report(study, earlier, write)


def _report(study: "Study", earlier: "Findings | None", write: Path | None) -> None:
    """Write the page into the study's folder, and where the user wants it."""
    from lab.reproduce.findings import findings_of
    from lab.reproduce.report import write_report

    findings = findings_of(study, _ledger(study), earlier)
    for folder in (study.out, *([write] if write else [])):
        write_report(study, findings, folder)
    output().print(_verdicts(findings))
    note(f"written: {study.out / PAGE}" + (f", {write / PAGE}" if write else ""))


def _verdicts(findings: "Findings") -> Table:
    table = Table("claim", "verdict", "differences")
    for one in findings.rulings.values():
        differences = ", ".join(
            f"{judged.difference.value:+.3f} ({judged.difference.low:+.3f} to {judged.difference.high:+.3f})"
            for judged in one.judged
        )
        table.add_row(Text(one.direction.name), one.verdict, differences)
    return table


def _plan(study: "Study", chosen: "Sequence[Direction]", processes: int) -> Table:
    """Each arm with its jobs, those done, and minutes of one core."""
    from lab.reproduce.jobs import jobs_of, minutes_by_arm

    ledger, jobs = _ledger(study), jobs_of(study, chosen)
    table = Table("arm", title=Text(f"{study.recipe.name}: {len(chosen)} claims, {len(jobs)} jobs"))
    for name in ("jobs", "done", "minutes taken", "minutes left"):
        table.add_column(name, justify="right")
    taken = left = 0.0
    for arm, count, done, spent, ahead in minutes_by_arm(jobs, ledger):
        table.add_row(arm, str(count), str(done), f"{spent:.1f}", f"{ahead:.1f}")
        taken, left = taken + spent, left + ahead
    table.caption = f"{taken:.0f} core minutes taken, {left:.0f} left: about {left / processes:.0f} minutes"
    return table


def _ledger(study: "Study") -> "Ledger":
    from lab.reproduce.ledger import Ledger

    return Ledger(study.out)
