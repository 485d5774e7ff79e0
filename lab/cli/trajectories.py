"""`cairn bench trajectories`: how real outputs of other people's models are read."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from agent.cli.console import print_text
from lab.cli.bench import bench_app
from lab.report import ReportTable, print_report

if TYPE_CHECKING:
    from lab.benchmarks.trajectories import Fit

_COLUMNS: Final = (
    "format",
    "under",
    "rollouts",
    "well-formed",
    "repaired",
    "rejected",
    "plans",
    "of these rejected",
    "to the byte",
)


@bench_app.command("trajectories")
def trajectories(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Holds traj_*/cases.jsonl; left out, the setting data.")
    ] = None,
    *,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table for a page.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as one object.")] = False,
) -> None:
    """Read real outputs of public models under the profile that fits each of them, and count.

    Well-formed: as the profile wants it. Repaired: read without doubt, but not
    exactly so. Rejected: no answer, a plan that cannot run, or another order.
    To the byte: traces whose documents our renderer writes as they were.

    Example: cairn bench trajectories ../data
    """
    from agent.settings import load_settings
    from lab.benchmarks.trajectories import measure

    fits = measure(folder or load_settings().data)
    table = ReportTable(_COLUMNS, [_row(fit) for fit in fits])
    if markdown and not json:
        print_text(table.markdown())
    else:
        print_report([table], {"formats": [asdict(fit) for fit in fits]}, as_json=json)


def _row(fit: "Fit") -> tuple[str, ...]:
    under = fit.protocol if fit.fits else f"{fit.protocol} (not its own)"
    counts = (fit.verdicts.get(verdict, 0) for verdict in ("well-formed", "repaired", "rejected"))
    rendered = f"{fit.rendered} of {fit.documents}" if fit.documents else "–"
    return (fit.format, under, str(fit.rows), *map(str, counts), str(fit.plans), str(fit.rejected_plans), rendered)
