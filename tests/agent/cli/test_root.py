"""The root of the command: exit statuses, sentences and plug-ins."""

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import typer

import agent.cli
from agent import __version__
from agent.cli import make_app, run
from agent.errors import CorpusError


def plug_in(monkeypatch: pytest.MonkeyPatch, *entries: EntryPoint) -> None:
    def only_these(*, group: str) -> tuple[EntryPoint, ...]:
        return tuple(entry for entry in entries if entry.group == group)

    monkeypatch.setattr(agent.cli, "entry_points", only_these)


def broken(app: typer.Typer) -> None:
    """Commands that end in each kind of error."""

    @app.command()
    def refuse() -> None:
        raise CorpusError("the folder [x] is not an index; build one with cairn index build")

    @app.command()
    def crash() -> None:
        raise ZeroDivisionError("by zero")

    @app.command()
    def interrupt() -> None:
        raise KeyboardInterrupt

    @app.command()
    def torch() -> None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")


def more(app: typer.Typer) -> None:
    """What another package adds beside them."""

    @app.command()
    def extra() -> None:
        raise KeyboardInterrupt


def test_an_entry_point_adds_to_the_command_that_its_name_begins_with(monkeypatch: pytest.MonkeyPatch):
    names = {"broken": "broken", "broken.more": "more", "other": "none_such"}
    plug_in(monkeypatch, *(EntryPoint(name, f"{__name__}:{to}", agent.cli.COMMANDS) for name, to in names.items()))
    commands = {command.callback.__name__ for command in make_app("broken").registered_commands if command.callback}
    assert commands == {"refuse", "crash", "interrupt", "torch", "extra"}


@pytest.fixture
def with_broken_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(monkeypatch, EntryPoint("broken", f"{__name__}:broken", agent.cli.COMMANDS))


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"cairn {__version__}\n"


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]):
    assert run([]) == 2
    assert "cairn ask --help" in "".join(capsys.readouterr())


@pytest.mark.parametrize("arguments", [["nonsense"], ["ask", "--nonsense", "x"], ["ask"]])
def test_a_wrong_call_ends_with_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert captured.err.startswith("Usage: cairn")
    assert captured.err.splitlines()[-1].startswith("cairn: ")


def test_a_command_of_the_source_alone_says_where_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    plug_in(monkeypatch)
    assert run(["bench", "engines"]) == 2
    assert "run `make dev` there, and then `.venv-dev/bin/cairn bench`" in " ".join(capsys.readouterr().err.split())


def test_the_path_in_a_wrong_call_is_on_one_line_to_be_copied(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / ("long-" * 20) / ("name-" * 20) / "gone.toml"
    assert run(["protocol", "check", str(path)]) == 2
    assert str(path) in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.usefixtures("with_broken_commands")
def test_an_error_of_ours_is_one_sentence_and_status_1(capsys: pytest.CaptureFixture[str]):
    assert run(["refuse"]) == 1
    captured = capsys.readouterr()
    assert captured.err == "cairn: the folder [x] is not an index; build one with cairn index build\n"
    assert not captured.out


@pytest.mark.parametrize(
    "command",
    [["index", "build", "{}", "--out", "x"], ["index", "search", "{}", "owl"], ["ask", "owl", "--corpus", "{}"]],
)
def test_a_path_that_cannot_be_one_is_a_sentence(command: list[str], capsys: pytest.CaptureFixture[str]):
    long = "a" * 300
    assert run([word.format(long) for word in command]) == 1
    error = " ".join(capsys.readouterr().err.split())
    assert error.startswith("cairn: ")
    assert "File name too long" in error
    assert "bug in Cairn" not in error


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_what_cannot_be_printed_for_want_of_room_is_a_sentence():
    command = [sys.executable, "-m", "agent.cli", "protocol", "show", "cairn", "--json"]
    with open("/dev/full", "w", encoding="utf-8") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert ended.returncode == 1
    assert "No space left on device" in ended.stderr
    assert "bug in Cairn" not in ended.stderr


@pytest.mark.usefixtures("with_broken_commands")
def test_an_unexpected_error_asks_for_a_report_and_hides_its_traceback(capsys: pytest.CaptureFixture[str]):
    assert run(["crash"]) == 1
    printed = capsys.readouterr().err
    assert "ZeroDivisionError: by zero" in printed
    assert "report" in printed
    assert "Traceback" not in printed


@pytest.mark.usefixtures("with_broken_commands")
def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    assert run(["--debug", "crash"]) == 1
    assert "Traceback" in capsys.readouterr().err
    monkeypatch.setenv("CAIRN_DEBUG", "1")
    assert run(["crash"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.usefixtures("with_broken_commands")
def test_an_interrupt_ends_with_status_130():
    assert run(["interrupt"]) == 130


def interrupted(app: typer.Typer) -> None:
    raise KeyboardInterrupt


def test_an_interrupt_while_commands_are_found_ends_with_status_130(monkeypatch: pytest.MonkeyPatch):
    plug_in(monkeypatch, EntryPoint("slow", f"{__name__}:interrupted", agent.cli.COMMANDS))
    assert run(["--version"]) == 130


@pytest.mark.usefixtures("with_broken_commands")
def test_a_library_that_the_light_install_leaves_out_is_named_with_its_extra(capsys: pytest.CaptureFixture[str]):
    assert run(["torch"]) == 1
    assert "pip install 'cairn-search[train]'" in capsys.readouterr().err


def test_a_plug_in_that_cannot_be_loaded_costs_its_own_commands_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    plug_in(
        monkeypatch,
        EntryPoint("lost", "no_such_package.commands:register", agent.cli.COMMANDS),
        EntryPoint("broken", f"{__name__}:broken", agent.cli.COMMANDS),
    )
    assert run(["lost", "--with", "options"]) == 1
    assert "'lost' cannot be loaded: No module named 'no_such_package'" in capsys.readouterr().err
    assert run(["refuse"]) == 1
    assert "is not an index" in capsys.readouterr().err


def every_command(command: Any, path: str = "cairn") -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", {})
    for name, sub in below.items():
        yield from every_command(sub, f"{path} {name}")
    if not below:
        yield path, command


def test_every_command_teaches():
    commands = dict(every_command(typer.main.get_command(make_app())))
    assert {"cairn ask", "cairn serve", "cairn eval", "cairn index build", "cairn train sft"} <= set(commands)
    for path, command in commands.items():
        taught = f"{command.help or ''}{command.epilog or ''}"
        assert path in taught, f"{path} shows no example of itself"
        for parameter in command.params:
            assert parameter.help, f"{path} does not say what {parameter.name} is"


def test_help_loads_no_model_no_web_and_no_arrays():
    script = (
        "import sys; from agent.cli import run; run(['--help']); "
        "heavy = {'torch', 'transformers', 'fastapi', 'numpy', 'ctranslate2', 'openai', 'bm25s'} & set(sys.modules); "
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
