"""`cairn report`: an outline, each section researched under one budget, and a file of checked sentences."""

import asyncio
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer
from rich.live import Live
from rich.text import Text

from agent.cli.console import complain, messages, note, print_text, printable
from agent.cli.options import JsonOption, Load, with_agent_options
from agent.errors import SetupError
from agent.sanitize.text import shortened

if TYPE_CHECKING:
    from agent.report import Report, ReportBudget, ReportEvent, ReportPlan, Research
    from agent.report.export import Format
    from agent.settings import CairnSettings

_EXAMPLES = """
[bold]Examples[/bold]

cairn report "How does Cairn check claims?"

cairn report "Storm Eunice" --corpus ./articles --out eunice.docx

cairn report "Storm Eunice" --corpus ./articles --section Germany --section "Who was killed?" --out eunice.pdf

cairn report "…" --base-url http://127.0.0.1:11434/v1 --model qwen3:8b --sections 8 --seconds 600 --out report.html

cairn report "…" --json | jq '.sections[].sentences[].text'
"""
_BUDGET = "What it may use"


def register(app: typer.Typer) -> None:
    """Add `report` to the root."""
    app.command("report", epilog=_EXAMPLES)(with_agent_options(report))


def report(
    question: Annotated[str, typer.Argument(help="What the report is about; - reads it from standard input.")],
    *,
    section: Annotated[
        list[str] | None,
        typer.Option(
            "--section",
            metavar="TEXT",
            help="A section of your own: a heading or a question; repeat it for more. Without any, Cairn makes them.",
        ),
    ] = None,
    sections: Annotated[int, typer.Option(min=1, max=12, help="The most sections of an outline that Cairn makes.")] = 6,
    seconds: Annotated[float, typer.Option(min=1, help="For the whole report.", rich_help_panel=_BUDGET)] = 300.0,
    searches: Annotated[int, typer.Option(min=1, help="Over all sections.", rich_help_panel=_BUDGET)] = 48,
    tokens: Annotated[
        int, typer.Option(min=1, help="That the model may write, over all sections.", rich_help_panel=_BUDGET)
    ] = 24_000,
    credits: Annotated[
        float | None,
        typer.Option(min=0, help="For paid searches.", show_default="the setting", rich_help_panel=_BUDGET),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write it here: .md, .html, .docx, .pdf or .json.",
            show_default="Markdown on stdout",
        ),
    ] = None,
    as_json: JsonOption = False,
    load: Load,
) -> None:
    """Research a question section by section and write a report.

    Cairn makes an outline, lets the search agent research each section, several
    at once under one budget, and keeps only sentences that a check calls
    supported by the sources that they cite. With small-v1, which cannot write
    prose, they are quoted from the sources. What could not be verified, what
    contradicts, and which sections are left out is said at the end. Ctrl-C
    has it written with what was found until then.
    """
    from agent.cli.ask import read_question
    from agent.cli.model import ready
    from agent.report import ReportBudget, ReportPlan

    form = _format(out)
    settings = ready(load())
    text = read_question(question, max_chars=settings.max_question_chars)
    budget = ReportBudget(seconds=seconds, searches=searches, tokens=tokens)
    plan = ReportPlan(text, headings=tuple(section or ()), sections=sections, budget=budget)
    made = _researched(settings, plan, credits)
    if as_json:
        print_text(made.model_dump_json(), json=True)
    _write(made, out, form, quiet=as_json)
    if not made.sentences:
        complain(_nothing(made))
        raise typer.Exit(1)


def _researched(settings: "CairnSettings", plan: "ReportPlan", credits: float | None) -> "Report":
    from agent.build.agent import notices

    for sentence in notices(settings):
        note(sentence)
    try:
        return asyncio.run(_research(settings, plan, credits))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _research(settings: "CairnSettings", plan: "ReportPlan", credits: float | None) -> "Report":
    """Research it, with its progress on standard error."""
    from dataclasses import replace

    from agent.build.agent import build_agent
    from agent.report import Research

    agent = build_agent(settings)
    budget = plan.budget.model_copy(update={"credits": agent.budgets.credits if credits is None else credits})
    try:
        with _Progress(budget) as progress:
            research = Research(agent, replace(plan, budget=budget), emit=progress.show)
            with _written_on_interrupt(research):
                return await research.run()
    finally:
        await agent.aclose()


@contextmanager
def _written_on_interrupt(research: "Research") -> Generator[None]:
    """The first Ctrl-C has the report written with what was found; the next one ends without it."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def write_now() -> None:
        loop.add_signal_handler(signal.SIGINT, task.cancel)
        note("The report is written with what was found; Ctrl-C again ends without it.")
        research.answer_now()

    try:
        loop.add_signal_handler(signal.SIGINT, write_now)
    except NotImplementedError:  # asyncio's own, on Windows: there, Ctrl-C ends without a report
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _format(out: Path | None) -> "Format | None":
    """The format of the file, known to work before anything is researched.

    Raises:
        SetupError: it cannot be written.
    """
    if out is None:
        return None
    from agent.report.export import check_format, format_of

    form = format_of(out)
    check_format(form)
    if not out.absolute().parent.is_dir():
        raise SetupError(f"there is no folder {out.absolute().parent}; make it, or name another file")
    if out.is_dir() or not os.access(out if out.exists() else out.absolute().parent, os.W_OK):
        raise SetupError(f"{out} is a folder, or you may not write it; name another file")
    return form


def _write(made: "Report", out: Path | None, form: "Format | None", *, quiet: bool) -> None:
    from agent.report.export import export

    if out is None or form is None:
        if not quiet:
            print_text(export(made, "md").data.decode(), end="")
        return
    try:
        out.write_bytes(export(made, form).data)
    except OSError as error:
        if not quiet:
            print_text(export(made, "md").data.decode(), end="")
        raise SetupError(f"{out} cannot be written: {error}; the report is on standard output") from error
    note(f"{out}: {_count(len(made.sentences), 'sentence')} from {_count(len(made.sources), 'source')}.")


def _nothing(made: "Report") -> str:
    why = next((section.why for section in made.sections if section.why), "nothing was found")
    return f"the report says nothing: {why}"


class _Progress:
    """Sections and what is used: live on a terminal, and one line for each section elsewhere."""

    def __init__(self, budget: "ReportBudget") -> None:
        self._budget = budget
        self._headings: list[str] = []
        self._states: list[str] = []
        self._used = ""
        shown = messages().is_terminal
        self._live = Live(console=messages(), transient=True, refresh_per_second=4) if shown else None

    def show(self, event: "ReportEvent") -> None:
        """Show what happened."""
        from agent.report.export.blocks import used_text

        if event.kind == "outline":
            self._headings, self._states = list(event.headings), ["waiting"] * len(event.headings)
        if event.section is not None:
            self._states[event.section] = _state(event)
        if event.used:
            self._used = used_text(event.used, self._budget)
        if self._live:
            self._live.update(self._drawn())
        elif event.kind == "section_ended":
            messages().print(Text(printable(f"{event.heading}: {_state(event)} · {self._used}")))

    def _drawn(self) -> Text:
        lines = [f"  {_MARKS.get(state, '✓')} {shortened(heading, 60)}: {state}" for heading, state in self._pairs()]
        return Text(printable("\n".join([*(lines or ["  making the outline"]), f"  {self._used}"])))

    def _pairs(self) -> Any:
        return zip(self._headings, self._states, strict=True)

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live:
            self._live.stop()


_MARKS = {"waiting": "·", "researching": "…"}


def _state(event: "ReportEvent") -> str:
    """Where a section is, in words."""
    if event.kind == "section_started":
        return "researching"
    if event.state == "researched":
        return _count(event.sentences, "sentence")
    return f"{event.state.replace('_', ' ')} ({event.why})"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else f'{noun}s'}"
