"""`cairn doctor`: look at everything that is configured, and say what is wrong and how to fix it."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text

from agent.cli.console import messages, note, output, print_json, printable
from agent.cli.options import ConfigOption, JsonOption, Load, with_agent_options

if TYPE_CHECKING:
    from agent.doctor import Diagnosis, DoctorCheck

_MARKS: Final = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "bad": ("✗", "bold red"), "skip": ("·", "dim")}


def register(app: typer.Typer) -> None:
    """Add `doctor`."""
    app.command("doctor")(with_agent_options(doctor))


def doctor(
    *,
    host: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Where the server would listen.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Its port.")] = None,
    probe: Annotated[
        bool, typer.Option("--probe", help="Send each paid backend one question; its cost is shown first.")
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    load: Load,
) -> None:
    """Check every source, index, engine and place that is configured.

    Each one gets a mark, a sentence, and a fix if something is wrong: keys
    and what is left of their quotas, unreachable addresses, damaged files, a
    port in use, a full disk. It costs nothing, except with --probe. The exit
    status is 1 if something does not work.

    Example: cairn doctor --corpus my-index --base-url http://127.0.0.1:11434/v1 --model qwen3:8b
    """
    from agent.doctor import Diagnosis, checks_of, paid_probes
    from agent.errors import SetupError

    try:
        settings = load(host=host, port=port)
    except SetupError as error:
        _print([Diagnosis("settings", "bad", str(error))], as_json=as_json)
        raise typer.Exit(1) from error
    if probe and (costs := paid_probes(settings)):
        each = ", ".join(f"{name} {credits:g}" for name, credits in costs.items())
        note(f"--probe sends each paid backend one question; credits: {each}")
    found = [_of_settings(config), *_watched(checks_of(settings, probe=probe))]
    _print(found, as_json=as_json)
    if any(finding.state == "bad" for finding in found):
        raise typer.Exit(1)


def _of_settings(config: Path | None) -> "Diagnosis":
    from agent.doctor import Diagnosis
    from agent.settings import CONFIG_FILE

    file = config or (CONFIG_FILE if CONFIG_FILE.exists() else None)
    return Diagnosis("settings", "ok", f"{file} can be read" if file else f"the defaults; no {CONFIG_FILE} here")


def _watched(checks: "list[DoctorCheck]") -> "list[Diagnosis]":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from agent.doctor import diagnose

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=messages(), transient=True, disable=not messages().is_terminal) as bar:
        task = bar.add_task("looking", total=len(checks))
        return diagnose(checks, report=lambda _: bar.advance(task))


def _print(found: "list[Diagnosis]", *, as_json: bool) -> None:
    if as_json:
        ok = all(finding.state != "bad" for finding in found)
        print_json({"ok": ok, "checks": [asdict(finding) for finding in found]})
        return
    width = max(len(finding.name) for finding in found)
    for finding in found:
        mark, style = _MARKS[finding.state]
        name = finding.name.ljust(width)
        output().print(Text.assemble((mark, style), f" {name}  ", printable(finding.says)))
        if finding.fix:
            output().print(Text(f"  {' ' * width}  → {printable(finding.fix)}", style=style))
