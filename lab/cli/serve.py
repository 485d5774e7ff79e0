"""`cairn bench serve`: many streams at once against a server."""

from pathlib import Path
from typing import Annotated, Final

import typer

from agent.cli.console import messages
from agent.cli.options import CheckpointOption, ConfigOption, JsonOption, PolicyOption, WorldOption
from lab.cli.bench import bench_app
from lab.report import print_report, write_report

REPORT: Final = Path("docs/bench/serve.md")
CODE: Final = (
    "server/app.py",
    "server/chat/service.py",
    "server/http/stream.py",
    "server/runs",
    "agent/loop/loop.py",
    "agent/policies/batching.py",
    "lab/benchmarks/serve.py",
)
"""What the figures depend on."""


@bench_app.command("serve")
def bench_serve(
    *,
    streams: Annotated[int, typer.Option(min=1, help="How many are open at the same time.")] = 64,
    questions: Annotated[int, typer.Option(min=1, help="In all.")] = 512,
    policy: PolicyOption = None,
    checkpoint: CheckpointOption = None,
    world: WorldOption = None,
    write: Annotated[bool, typer.Option("--write", help=f"Write the table to {REPORT}, too.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start a server and ask it with many streams at once: how fast, nothing lost, and whose time it is.

    Client and server share this machine's cores. The questions are those of
    the little world.

    Example: cairn bench serve --streams 64 --questions 512
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from agent.settings import load_settings
    from lab.benchmarks.serve import measure, report, table

    own = {"host": "127.0.0.1", "port": 0, "store": "memory", "max_runs": streams}
    settings = load_settings(config, policy=policy, checkpoint=checkpoint, world=world, **own)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=messages(), transient=True) as bar:
        task = bar.add_task("answers", total=questions)
        figures = measure(settings, streams=streams, questions=questions, progress=lambda: bar.advance(task))
    if write:
        write_report(REPORT, report(figures), code=CODE)
    print_report([table(figures)], figures.as_dict(), as_json=as_json)
    if figures.lost:
        raise typer.Exit(1)
