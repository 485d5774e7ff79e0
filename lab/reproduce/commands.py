"""`cairn reproduce`. Torch is imported only where something is trained or evaluated."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.table import Table
from rich.text import Text

from agent.cli.console import messages, note, output
from agent.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.reproduce.findings import Findings
    from lab.reproduce.jobs import Job
    from lab.reproduce.ledger import Ledger
    from lab.reproduce.study import Study

PAGE: Final = "reproduction.md"
STARTS: Final = "starts"
REAL: Final = "real"


def reproduce(
    paper: Annotated[
        str,
        typer.Argument(
            help="multisearch, dag, evidence, reflect, kg, or all; starts: measure the start; real: real questions."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder of everything; to continue, run the same command again.")],
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="DIRECTION", help="Only this claim; may be repeated.")
    ] = None,
    recipe: Annotated[Path | None, typer.Option(help="Instead of lab/recipes/reproduce.toml.")] = None,
    start: Annotated[
        Path | None, typer.Option("--start", metavar="HUB", help="A shared start that is there, in the hub's form.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Real questions, too: the folder that --real-recipe's files are in."),
    ] = None,
    real_recipe: Annotated[Path | None, typer.Option(help="Instead of lab/recipes/reproduce_real.toml.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="Real questions of each set; 0: as many as the recipe says.")] = 0,
    processes: Annotated[int, typer.Option(min=1, help="Jobs at the same time, each on one core.")] = 2,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan, its hours and what is done.")] = False,
    write: Annotated[
        Path | None,
        typer.Option(
            "--write",
            metavar="DIR",
            help="Write the page, its plots and the answers here, too: docs. Answers of this plan that are there are "
            "taken, not made again.",
        ),
    ] = None,
) -> None:
    """Test the claims of five papers in miniature: train the arms, evaluate them, and say which claims hold.

    It runs the plan of docs/reproduction_design.md. Finished work is kept, also
    after a kill; interrupted trainings continue from their last state.

    Example: cairn reproduce all --out runs/papers --dry-run

    Example: cairn reproduce starts --out runs/papers

    Example: cairn reproduce real --data data --limit 20 --out runs/papers
    """
    from lab.reproduce.jobs import jobs_for, jobs_of, real_jobs
    from lab.reproduce.papers import directions_of
    from lab.reproduce.real import RECIPE
    from lab.reproduce.real_run import RealStudy
    from lab.reproduce.starts import start_arms
    from lab.reproduce.study import SHIPPED_RECIPE, read_study

    _refuse_what_has_no_use(paper, only, data, real_recipe, limit)
    if write and data is None:
        _refuse_to_drop_real_questions(write)
    real = RealStudy(real_recipe or RECIPE, data, limit=limit) if data else None
    study = read_study(recipe or SHIPPED_RECIPE, out, hub=start.resolve() if start else None, real=real)
    match paper:
        case "starts":
            jobs = jobs_for(study, start_arms())
        case "real":
            jobs = real_jobs(study)
        case _:
            jobs = [*jobs_of(study, directions_of(paper, only or ())), *(real_jobs(study) if paper == "all" else ())]
    if dry_run:
        output().print(_plan(study, jobs, processes))
        return
    if write:
        note(_taken(study, write))
    note(_estimate(study, jobs, processes))
    _go(study, jobs, processes, write, starts=paper == STARTS)


def _refuse_what_has_no_use(
    paper: str, only: "Sequence[str] | None", data: Path | None, real_recipe: Path | None, limit: int
) -> None:
    """Refuse options that would change nothing.

    Raises:
        SetupError: there is one.
    """
    if paper == REAL and data is None:
        raise SetupError("real questions are not part of Cairn: name the folder of their files with --data DIR")
    if only and paper in (STARTS, REAL):
        raise SetupError(f"--only chooses claims of a paper, and `{paper}` is run as a whole: leave it out")
    if data is None and (limit or real_recipe):
        name = "--limit" if limit else "--real-recipe"
        raise SetupError(f"{name} is about real questions: name the folder of their files with --data DIR")


def _refuse_to_drop_real_questions(folder: Path) -> None:
    """A page is written as a whole, and without their data the answers to real questions cannot be held against a plan.

    Raises:
        SetupError: the page that is there has them.
    """
    from lab.reproduce.real_report import has_real_part

    if has_real_part(page := folder / PAGE):
        raise SetupError(
            f"{page} has a part on real questions, which would be lost: name the folder of their files with "
            "--data DIR, or write to another folder"
        )


def _go(study: "Study", jobs: "Sequence[Job]", processes: int, write: Path | None, *, starts: bool) -> None:
    from lab.reproduce.run import Unfinished
    from lab.reproduce.run import reproduce as go

    try:
        go(study, jobs, processes=processes, say=lambda sentence: messages().print(Text(sentence)))
    except Unfinished:  # what is done is reported; nothing of another plan's results is
        _report(study, write, starts=starts)
        raise
    _report(study, write, starts=starts)


def _taken(study: "Study", folder: Path) -> str:
    """Take what is kept beside the page, of every claim: the page has all of them."""
    from lab.reproduce.jobs import all_jobs
    from lab.reproduce.kept import take
    from lab.reproduce.run import alone

    with alone(study):
        taken = take(study, all_jobs(study), _ledger(study), folder)
    return f"{taken} jobs taken from {folder}"


def _report(study: "Study", write: Path | None, *, starts: bool) -> None:
    """Write the page into the study's folder, and where the user wants it."""
    from lab.reproduce.findings import findings_of
    from lab.reproduce.jobs import all_jobs
    from lab.reproduce.kept import keep
    from lab.reproduce.report import write_report

    ledger = _ledger(study)
    findings = findings_of(study, ledger)
    for folder in (study.out, *([write] if write else [])):
        write_report(study, findings, folder)
    if write:
        keep(study, all_jobs(study), ledger, write)
    output().print(_measured(findings) if starts else _verdicts(findings))
    note(f"written: {study.out / PAGE}" + (f", {write / PAGE}" if write else ""))


def _verdicts(findings: "Findings") -> Table:
    from lab.reproduce.tables import with_bounds

    table = Table("claim", "verdict", "differences")
    named = [(one.direction.name, one) for one in findings.rulings.values()]
    named += [(f"{one.direction.name}, real questions", one) for one in findings.real.values()]
    for name, one in named:
        differences = ", ".join(with_bounds(judged.difference) for judged in one.judged)
        table.add_row(Text(name), one.verdict, differences)
    return table


def _measured(findings: "Findings") -> Table:
    """The start's behaviours: a claim about one that is certain cannot be seen."""
    from lab.reproduce.starts import start_rows
    from lab.reproduce.tables import with_bounds

    table = Table("start", "behaviour", "probability", "EM with", "EM without", "uncertain")
    for row in start_rows(findings.found):
        em = ["–" if value is None else f"{value:.3f}" for value in (row.em_with, row.em_without)]
        table.add_row(Text(row.arm), row.says, with_bounds(row.share, ""), *em, "yes" if row.uncertain else "no")
    return table


def _estimate(study: "Study", jobs: "Sequence[Job]", processes: int) -> str:
    from lab.reproduce.jobs import left_seconds

    left = left_seconds(jobs, _ledger(study)) / 3600
    return f"{len(jobs)} jobs; about {left / processes:.1f} hours left, with {processes} at the same time"


def _plan(study: "Study", jobs: "Sequence[Job]", processes: int) -> Table:
    """Each arm with its jobs, those done, and minutes of one core."""
    from lab.reproduce.jobs import minutes_by_arm
    from lab.reproduce.ledger import core_minutes

    ledger = _ledger(study)
    table = Table("arm", title=Text(f"{study.recipe.name}: {len(jobs)} jobs"))
    for name in ("jobs", "done", "minutes taken", "minutes left"):
        table.add_column(name, justify="right")
    left = 0.0
    for arm, count, done, spent, ahead in minutes_by_arm(jobs, ledger):
        table.add_row(arm, str(count), str(done), f"{spent:.1f}", f"{ahead:.1f}")
        left += ahead
    ended = [ledger.kept.jobs[job.name] for job in jobs if ledger.seconds(job.name) is not None]
    table.caption = f"{core_minutes(ended)} taken, {left:.0f} left: about {left / processes / 60:.1f} hours"
    return table


def _ledger(study: "Study") -> "Ledger":
    from lab.reproduce.ledger import Ledger

    return Ledger(study.out)
