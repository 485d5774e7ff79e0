"""`cairn trace`: the runs that a server kept, from its store: listed, drawn, replayed, and exported."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from pydantic import SecretStr

from agent.cli.console import messages, output, print_json, print_text, printable
from agent.cli.options import ConfigOption, JsonOption

if TYPE_CHECKING:
    from agent.trace import Step, Trace
    from server.store import RunRow, RunStore

T = TypeVar("T")

trace_app = typer.Typer(no_args_is_help=True, help="The runs that a server kept: list, show, replay and export them.")

StoreOption = Annotated[
    str | None,
    typer.Option("--store", metavar="FILE|URL", help="The server's store.", show_default="from the settings"),
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The run's id, the start of one, or last.")]


def register(app: typer.Typer) -> None:
    """Add the `trace` commands."""
    app.add_typer(trace_app, name="trace")


@trace_app.command("list")
def list_traces(
    *,
    search: Annotated[str, typer.Option(metavar="WORDS", help="Only runs with words that start like this.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many, newest first.")] = 20,
    store: StoreOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the runs, newest first.

    Example: cairn trace list --search "aurora falls"
    """
    from server.runs.card import RunCard
    from server.store.reading import RunQuery

    async def read(opened: "RunStore") -> "list[RunRow]":
        return await opened.reads.list(RunQuery(words=search), limit=limit)

    rows = _with_store(store, config, read)
    if as_json:
        print_json({"runs": [RunCard.of(row).model_dump(mode="json") for row in rows]})
        return
    for row in rows:
        card = RunCard.of(row)
        answer = " ".join(printable(row.answer or "").split())
        question = " ".join(printable(row.question).split())
        output().print(
            f"{row.id[:12]}  {card.created.astimezone():%Y-%m-%d %H:%M}  {row.state:<11}  {question[:60]}"
            + (f" → {answer[:40]}" if answer else ""),
            markup=False,
        )
    if not rows:
        messages().print("no runs yet; cairn serve keeps the ones that it answers")


@trace_app.command("show")
def show(
    id: IdArgument, *, store: StoreOption = None, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """Draw a run as cairn ask draws it.

    Example: cairn trace show last
    """
    trace = _trace(id, store, config)
    if as_json:
        print_text(trace.model_dump_json(), json=True)
        return
    from agent.cli.draw import TraceView

    with TraceView(output(), moving=False) as view:
        for step in trace.steps:
            view.show(step)
        view.finish(trace)


@trace_app.command("replay")
def replay(
    id: IdArgument,
    *,
    speed: Annotated[float, typer.Option(min=0, help="2 is twice as fast as the run was; 0 does not wait.")] = 1.0,
    store: StoreOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replay the steps of a run, with their original timing.

    With --json each step is printed at its time, as part of one object.

    Example: cairn trace replay last --speed 4
    """
    from agent.cli.draw import TraceView

    trace = _trace(id, store, config)
    steps = sorted(trace.steps, key=lambda step: step.seconds)
    if as_json:
        print_text(f'{{"id": "{trace.id}", "steps": [', json=True, end="")
        _replay(steps, speed, _printer())
        print_text("]}")
        return
    with TraceView(output()) as view:
        _replay(steps, speed, view.show)
        view.finish(trace)


@trace_app.command("export")
def export_trace(
    id: IdArgument,
    *,
    format: Annotated[str, typer.Option("--format", help="json, markdown, html or bibtex.")] = "json",
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Default: standard output.")] = None,
    store: StoreOption = None,
    config: ConfigOption = None,
) -> None:
    """Write a run as JSON, as a page of Markdown or HTML, or its sources as BibTeX.

    Example: cairn trace export last --format html --out run.html
    """
    from typing import get_args

    from server.runs.export import Format, export

    if format not in get_args(Format):
        raise typer.BadParameter(f"there is no format {format!r}; use {', '.join(get_args(Format))}")
    chosen: Format = format  # pyright: ignore[reportAssignmentType]
    text = export(_trace(id, store, config), chosen).text
    if out is None:
        print_text(text, json=chosen == "json", end="" if text.endswith("\n") else "\n")
    else:
        out.write_text(text, encoding="utf-8", errors="replace")


def _printer() -> "Callable[[Step], None]":
    first = True

    def show(step: "Step") -> None:
        nonlocal first
        print_text(("" if first else ", ") + step.model_dump_json(), json=True, end="")
        first = False

    return show


def _replay(steps: "Iterable[Step]", speed: float, show: "Callable[[Step], None]") -> None:
    """Show each step when its time has come."""
    from time import monotonic, sleep

    began = monotonic()
    for step in steps:
        if speed:
            sleep(max(0.0, step.seconds / speed - (monotonic() - began)))
        show(step)


def _trace(id: str, store: str | None, config: Path | None) -> "Trace":
    """The trace that is meant.

    Raises:
        SetupError: there is none, or more than one.
    """
    from agent.errors import SetupError
    from server.runs.restore import read_trace, restored
    from server.store.reading import RunQuery

    async def read(opened: "RunStore") -> "Trace":
        if id == "last":
            found = [row.id for row in await opened.reads.list(RunQuery(), limit=1)]
        else:
            found = await opened.reads.beginning_with(id)
        if not found:
            raise SetupError(f"there is no run {id!r} in {opened.database.name}; list the runs with: cairn trace list")
        if len(found) > 1 and id not in found:
            raise SetupError(f"several runs start with {id!r}; give more of the id")
        run = id if id in found else found[0]
        look, stored = await opened.reads.look(run), await opened.reads.trace(run)
        begun = stored or ""
        if look is not None and look.row.running:
            return restored(begun, await opened.reads.grown(run), look.open_block, ends=False)[0]
        return read_trace(begun)

    return _with_store(store, config, read)


def _with_store(store: str | None, config: Path | None, read: "Callable[[RunStore], Awaitable[T]]") -> T:
    """Open the store, read from it, and close it.

    Raises:
        SetupError: it is not there, or cannot be read.
    """
    from agent.errors import SetupError
    from agent.settings import load_settings
    from server.runs.opening import store_of
    from server.store import StoreError

    flags: dict[str, Any] = {"store": SecretStr(store)} if store else {}
    opened = store_of(load_settings(config, **flags))

    async def main() -> T:
        try:
            return await read(opened)
        except StoreError as error:
            raise SetupError(f"{error}: {opened.database.name}") from error
        finally:
            await opened.aclose()

    if opened.database.file is not None and not opened.database.file.exists():
        raise SetupError(f"there is no store at {opened.database.file} yet; cairn serve creates one")
    return asyncio.run(main())
