"""`cairn bench load`, `cairn bench model` and `cairn bench baselines`. What they need is imported when they run."""

import json
from pathlib import Path
from typing import Annotated, Final

import typer

from agent.cli.console import messages
from agent.cli.options import CheckpointOption, ConfigOption, JsonOption, WorldOption
from lab.cli.bench import bench_app
from lab.report import print_report, write_report

REPORT: Final = Path("docs/bench/load.md")
CODE: Final = ("server", "agent/loop/loop.py", "agent/policies", "agent/loop/search_round.py")
"""What the figures of a load depend on."""
MODEL_REPORT: Final = Path("docs/bench/model.md")
BASELINES_REPORT: Final = Path("docs/bench/baselines.md")
BASELINES_PYTHON: Final = Path(".venv-baselines/bin/python")


@bench_app.command("load")
def bench_load(
    *,
    streams: Annotated[int, typer.Option(min=1, help="How many are open at the same time.")] = 200,
    seconds: Annotated[float, typer.Option(min=1, help="Seconds of each load.")] = 120,
    disconnects: Annotated[int, typer.Option(min=1, help="How many clients leave in the middle.")] = 100,
    embedded: Annotated[bool, typer.Option("--embedded/--no-embedded", help="Load the embedded policy, too.")] = True,
    thought: Annotated[int, typer.Option(min=1, help="Stamped tokens of a paced thought.")] = 200,
    answer: Annotated[int, typer.Option(min=1, help="Stamped tokens of a paced answer.")] = 100,
    checkpoint: CheckpointOption = None,
    world: WorldOption = None,
    write: Annotated[bool, typer.Option("--write", help=f"Write the tables to {REPORT}, too.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep many streams open for a while, leave in the middle of some, and send more than the server takes.

    A scripted policy writes 20 tokens a second and stream and stamps each
    with the time, so that what the server adds to a token is measured where
    the client reads it. Client and server share this machine's cores. The
    exit status is 1 if anything was lost; missed bounds of time and memory are
    printed.

    Example: cairn bench load --streams 200 --seconds 120
    """
    from rich.progress import BarColumn, Progress, TextColumn

    from agent.build.sources import with_world
    from agent.settings import load_settings
    from lab.benchmarks.load.measure import measure
    from lab.benchmarks.load.report import page, table

    settings = with_world(load_settings(config, checkpoint=checkpoint, world=world, host="127.0.0.1", port=0))
    columns = TextColumn("{task.description}"), BarColumn()
    with Progress(*columns, console=messages(), transient=True, disable=not messages().is_terminal) as bar:
        task = bar.add_task("starting", total=None)
        figures = measure(
            settings,
            streams=streams,
            seconds=seconds,
            disconnects=disconnects,
            with_embedded=embedded,
            tokens=(thought, answer),
            show=lambda what, done, total: bar.update(task, description=what, completed=done, total=total),
        )
    if write:
        write_report(REPORT, page(figures), code=CODE)
    print_report([table(figures)], figures.as_dict(), as_json=as_json)
    if not figures.holds:
        raise typer.Exit(1)


@bench_app.command("model")
def bench_model(
    *,
    fit: Annotated[int, typer.Option(min=2, help="Streams of the one load that the model is fitted with.")] = 16,
    streams: Annotated[str, typer.Option(metavar="N,N", help="Loads of the embedded policy to predict.")] = "4,64,200",
    paced: Annotated[str, typer.Option(metavar="N,N", help="Loads of the paced policy to predict.")] = "50,100,200",
    seconds: Annotated[float, typer.Option(min=1, help="Of each load, and of the one stream.")] = 60,
    thought: Annotated[int, typer.Option(min=1, help="Stamped tokens of a paced thought.")] = 200,
    answer: Annotated[int, typer.Option(min=1, help="Stamped tokens of a paced answer.")] = 100,
    checkpoint: CheckpointOption = None,
    world: WorldOption = None,
    write: Annotated[bool, typer.Option("--write", help=f"Write the table to {MODEL_REPORT}, too.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fit a model of rounds, searches and engine, predict loads with it, and measure them.

    It is fitted with one stream and with one load (the paced policy with one
    of eight times as many streams, too), and predicts answers/s and p95 of
    loads that were not used to fit it. The exit status is 1 where a
    prediction is off by more than 20 %.

    Example: cairn bench model --fit 16 --streams 4,64,200
    """
    from rich.progress import BarColumn, Progress, TextColumn

    from agent.build.sources import with_world
    from agent.errors import SetupError
    from agent.settings import load_settings

    try:
        from lab.benchmarks.load.model.compare import compare
        from lab.benchmarks.load.model.fit import MANY
        from lab.benchmarks.load.model.report import page, table
    except ModuleNotFoundError as error:
        raise SetupError("the model needs an extra: pip install 'cairn-search[bench]'") from error

    settings = with_world(load_settings(config, checkpoint=checkpoint, world=world, host="127.0.0.1", port=0))
    columns = TextColumn("{task.description}"), BarColumn()
    with Progress(*columns, console=messages(), transient=True, disable=not messages().is_terminal) as bar:
        task = bar.add_task("starting", total=None)
        figures = compare(
            settings,
            fit_streams=fit,
            streams=_counts(streams, "--streams", fit),
            paced_streams=_counts(paced, "--paced", fit, MANY * fit),
            seconds=seconds,
            tokens=(thought, answer),
            show=lambda what, done, total: bar.update(task, description=what, completed=done, total=total),
        )
    if write:
        write_report(MODEL_REPORT, page(figures), code=CODE)
    print_report([table(figures)], figures.as_dict(), as_json=as_json)
    if not figures.holds:
        raise typer.Exit(1)


def _counts(said: str, option: str, *fitted: int) -> list[int]:
    """Numbers of streams, as an option has them; none of them may be one that the model is fitted with."""
    words = [word.strip() for word in said.split(",") if word.strip()]
    if not all(word.isdigit() and int(word) for word in words):
        raise typer.BadParameter(f"{said!r} is not a list of numbers of streams, such as 4,64,200", param_hint=option)
    counts = [int(word) for word in words]
    if used := set(counts).intersection(fitted):
        raise typer.BadParameter(f"the model is fitted with {min(used)}; predict other loads", param_hint=option)
    return counts


@bench_app.command("baselines")
def bench_baselines(
    *,
    python: Annotated[
        Path, typer.Option("--python", help="Python of the environment with the group 'baselines'.")
    ] = BASELINES_PYTHON,
    times: Annotated[int, typer.Option(min=1, help="How often each question is sent alone.")] = 20,
    clients: Annotated[int, typer.Option(min=1, help="Clients at the same time.")] = 64,
    seconds: Annotated[float, typer.Option(min=0.1, help="Of each round of many clients.")] = 10,
    rounds: Annotated[int, typer.Option(min=1, help="Of each contender; the middle one counts.")] = 3,
    langgraph: Annotated[bool, typer.Option("--langgraph/--no-langgraph", help="Let it take part.")] = True,
    write: Annotated[bool, typer.Option("--write", help=f"Write {BASELINES_REPORT} and its figures, too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask Cairn, a plain tool loop and LangGraph's ReAct agent the same four questions.

    All have the same instant policy and the same search, which takes
    100 ms: what is measured is what is between the two.

    Example: cairn bench baselines --clients 64
    """
    from lab.benchmarks.load.baselines.contenders import NAMES, Name
    from lab.benchmarks.load.baselines.race import race
    from lab.benchmarks.load.baselines.report import page, tables

    names: list[Name] = [name for name in NAMES if langgraph or name != "langgraph"]
    with messages().status("starting") as status:
        found = race(
            python=python, names=names, times=times, clients=clients, seconds=seconds, rounds=rounds, show=status.update
        )
    if write:
        write_report(BASELINES_REPORT, page(found), code=CODE)
        write_report(BASELINES_REPORT.with_suffix(".json"), json.dumps(found.as_dict(), indent=1) + "\n")
    print_report(tables(found), found.as_dict(), as_json=as_json)
