"""`cairn bench libraries`: its command, its table and its page."""

import asyncio
import platform
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from agent.cli.console import messages
from agent.cli.options import JsonOption
from agent.cores import cores
from lab.cli.bench import bench_app
from lab.report import ReportTable, print_report, write_report

if TYPE_CHECKING:
    from lab.benchmarks.libraries import LibraryFigures

REPORT: Final = Path("docs/bench/libraries.md")
CODE: Final = ("server/libraries", "agent/sources/corpus/shards.py", "lab/benchmarks/libraries.py")
"""What the figures depend on."""


@bench_app.command("libraries")
def libraries(
    *,
    documents: Annotated[int, typer.Option(min=1, help="How many documents.")] = 10_000,
    megabytes: Annotated[float, typer.Option(min=0.001, help="Of all of them together.")] = 1000.0,
    queries: Annotated[int, typer.Option(min=1, help="How many searches, one after the other.")] = 500,
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="On the disk to use; else a temporary one.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help=f"Write the table to {REPORT}, too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Fill a library with documents, kill its indexing half way, and search it.

    Example: cairn bench libraries --documents 1000 --megabytes 100
    """
    from lab.benchmarks.libraries import measure

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=messages(), transient=True) as bar:
        task = bar.add_task("uploading", total=documents)

        def show(stage: str, done: int, total: int) -> None:
            bar.update(task, description=stage, completed=done, total=total)

        work = measure(documents=documents, megabytes=megabytes, queries=queries, folder=folder, progress=show)
        figures = asyncio.run(work)
    if write:
        write_report(REPORT, page(figures), code=CODE)
    print_report([_table(figures)], asdict(figures), as_json=as_json)


def _table(figures: "LibraryFigures") -> ReportTable:
    rows = [
        ("documents", f"{figures.documents:,}"),
        ("their size, MB", f"{figures.megabytes:,.0f}"),
        ("passages", f"{figures.passages:,}"),
        ("written to disk, s", f"{figures.upload_seconds:,.0f}"),
        ("indexed, the kill included, s", f"{figures.index_seconds:,.0f}"),
        ("indexed before the kill, and not read again", f"{figures.kept_after_kill:,}"),
        ("most memory of the process that indexes, MB", f"{figures.indexing_peak_mb:,.0f}"),
        ("memory of the process that searches, MB", f"{figures.server_mb:,.0f}"),
        ("index on disk, MB", f"{figures.index_mb:,.0f}"),
        ("a search, median, ms", f"{figures.search_ms_p50:.1f}"),
        ("a search, p99, ms", f"{figures.search_ms_p99:.1f}"),
    ]
    return ReportTable(("a library", "figure"), rows)


def page(figures: "LibraryFigures") -> str:
    """What `--write` keeps."""
    size = f"--documents {figures.documents} --megabytes {figures.megabytes:.0f}"
    return f"""# Libraries

`cairn bench libraries {size} --write`; Python {platform.python_version()}, {cores()} cores.

Documents of pseudo-words with the frequencies of a language go into one library; the process that indexes is killed \
when half of them can be found. Then queries of two to six words are searched, one after the other. HTTP is left out.

{_table(figures).markdown()}
"""
