"""`cairn bench`: how fast Cairn's own parts are. Other packages add theirs to `bench_app`."""

import asyncio
import platform
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from agent.cli.console import messages
from agent.cores import cores
from lab.report import ReportTable, print_report, write_report

if TYPE_CHECKING:
    from lab.benchmarks.executor import ExecutorFigures

bench_app = typer.Typer(no_args_is_help=True, help="Benchmarks of Cairn's own parts.")

REPORT: Final = Path("docs/bench/executor.md")
CODE: Final = (
    "agent/loop/execute.py",
    "agent/plan/plan.py",
    "agent/plan/graph.py",
    "lab/benchmarks/executor.py",
)
"""What the figures depend on."""


@bench_app.command("executor")
def executor(
    plans: Annotated[int, typer.Option(min=1, help="How many random plans of 2 to 12 searches.")] = 500,
    at_once: Annotated[int, typer.Option(min=1, help="How many run at the same time; they only sleep.")] = 8,
    seed: Annotated[int, typer.Option(help="The same seed gives the same plans.")] = 0,
    write: Annotated[bool, typer.Option("--write", help=f"Write the table to {REPORT}, too.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as one object.")] = False,
) -> None:
    """Run random plans with searches of 20 to 200 ms, and compare their wall time with their longest path.

    The same plans are run level by level and one search after the other, too. 1.00 is what no executor can beat.

    Example: cairn bench executor --plans 100
    """
    from lab.benchmarks.executor import measure

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=messages(), transient=True) as bar:
        task = bar.add_task("runs", total=3 * plans)

        def show(done: int) -> None:
            bar.update(task, completed=done)

        figures = asyncio.run(measure(plans=plans, at_once=at_once, seed=seed, progress=show))
    if write:
        write_report(REPORT, _report(figures), code=CODE)
    print_report([_table(figures)], asdict(figures) | {"holds": figures.holds}, as_json=json)


def _table(figures: "ExecutorFigures") -> ReportTable:
    from lab.benchmarks.executor import BOUND_P50, BOUND_P99

    verdict = "met" if figures.holds else "not met"
    rows = [
        ("each node when its parents are done", f"{figures.ratio_p50:.3f}", f"{figures.ratio_p99:.3f}"),
        ("level by level", f"{figures.levels_p50:.3f}", f"{figures.levels_p99:.3f}"),
        ("one after the other", f"{figures.serial_p50:.3f}", f"{figures.serial_p99:.3f}"),
    ]
    return ReportTable(
        ("wall time / longest path", "median", "p99"),
        rows,
        title=f"{figures.plans} random plans, {figures.at_once} at once",
        caption=f"bounds {BOUND_P50} and {BOUND_P99}: {verdict}; {figures.seconds:.0f} s",
    )


def _report(figures: "ExecutorFigures") -> str:
    from lab.benchmarks.executor import BOUND_P50, BOUND_P99

    return f"""# The executor

`cairn bench executor --plans {figures.plans} --at-once {figures.at_once} --write`; \
Python {platform.python_version()}, {cores()} cores.

Random plans of 2 to 12 searches that take 20 to 200 ms each; the median plan's longest path is \
{figures.longest_path_ms_p50:.0f} ms. The figures are wall time divided by the longest path: 1.000 is what no executor \
can beat. The searches only sleep, so {figures.at_once} plans run at once without being in each other's way; every run \
is real, none is computed.

{_table(figures).markdown()}

Bounds for the first row: {BOUND_P50:.2f} at the median and {BOUND_P99:.2f} at p99, which are \
{"met" if figures.holds else "not met"}; the largest ratio of all is {figures.ratio_max:.3f}.
"""
