"""The `cairn` command: its root, how commands join it, and the one boundary where an error becomes a sentence."""

import errno
import gc
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Annotated, Any, Final

import typer
from rich.text import Text
from typer.core import TyperGroup

from agent import __version__
from agent.cli.console import complain, guard_logs, messages, output, print_traceback, printable
from agent.errors import AgentError, NotTrusted, SetupError

COMMANDS: Final = "cairn.commands"
_LAB: Final = ("bench", "reproduce")
"""What lab/ adds, which is no part of the package."""
DEBUG: Final = "--debug"
_UNUSABLE: Final = frozenset((errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP))
"""A path that may not be entered, or that is none."""
_FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT))


def main() -> None:
    """The `cairn` command. No Python that it starts, directly or in a library, imports from the current folder."""
    from agent.parallel.processes import GC_THRESHOLD, SAFE_PATH
    from agent.settings import default_environment

    default_environment(SAFE_PATH)
    guard_logs()
    gc.set_threshold(*GC_THRESHOLD)
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and give its exit status.

    Returns:
        0: done. 1: it could not be done, and a sentence on standard error says why. 2: it was called in a wrong way.
        130: the user interrupted it.
    """
    try:
        make_app(_command(arguments))(list(arguments), prog_name="cairn")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt:
        return 130
    except NotTrusted as error:
        complain(str(error))
        return 2
    except AgentError as error:
        complain(str(error))
    except ModuleNotFoundError as error:
        if not (why := _needs(" ".join(arguments[:2]), error.name)):
            return _unexpected(error, arguments)
        complain(why)
    except OSError as error:
        if error.errno not in _FULL and (error.errno not in _UNUSABLE or not error.filename):
            return _unexpected(error, arguments)
        where = error.filename or "what is printed"
        complain(f"{where} cannot be {'written' if error.errno in _FULL else 'used'}: {error.strerror}")
    except Exception as error:  # noqa: BLE001 - the boundary: a person reads a sentence, a bug report a traceback
        return _unexpected(error, arguments)
    return 1


def _command(arguments: Sequence[str]) -> str:
    return next((word for word in arguments if not word.startswith("-")), "")


def make_app(command: str = "") -> typer.Typer:
    """The root with every command that could be found.

    Args:
        command: where a module or entry points have this name, only those are loaded: a start is faster. An entry point
            that adds to another's command is called by that name, a dot, and its own: `train.lab`.
    """
    app = typer.Typer(
        cls=_Group,
        help="A search agent that you can serve, see and train. Start with: cairn ask --help",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    own = [info.name for info in iter_modules(__path__) if not info.name.startswith("_")]
    others = sorted(entry_points(group=COMMANDS), key=lambda entry: entry.name)
    known = command in own or any(_extended(entry) == command for entry in others)
    for name in own:
        if not known or name == command:
            _register_own(app, name)
    for entry in others:
        if not known or _extended(entry) == command:
            _join(app, entry)
    return app


class _Group(TyperGroup):
    """Commands whose wrong use is reported on plain lines: a box would break paths that users copy."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _plain_errors():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _plain_errors():
            return super().invoke(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        if found is None and cmd_name in _LAB:
            complain(
                f"`cairn {cmd_name}` comes with Cairn's source, not with the package: run `make dev` there, and then "
                f"`.venv-dev/bin/cairn {cmd_name}`"
            )
            raise SystemExit(2)
        return found


@contextmanager
def _plain_errors() -> Generator[None]:
    try:
        yield
    except Exception as error:  # Click's errors become plain lines; all others are raised again
        format_message: Callable[[], str] | None = getattr(error, "format_message", None)  # Click's errors have one
        if format_message is None or type(error).__name__ == "NoArgsIsHelpError":  # then the help is printed
            raise
        if context := getattr(error, "ctx", None):
            messages().print(Text(printable(context.get_usage())))
            messages().print(Text(f"Try '{context.command_path} {context.help_option_names[-1]}' for help."))
        complain(format_message())
        raise SystemExit(getattr(error, "exit_code", 2)) from error


def _print_version(wanted: bool) -> None:
    if wanted:
        output().print(f"cairn {__version__}")
        raise typer.Exit


def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option(DEBUG, help="Show the traceback of an unexpected error.")] = False,
) -> None:
    """What stands before a command. `--version` ends here; `--debug` is read where an error arrives."""


def _register_own(app: typer.Typer, name: str) -> None:
    """Let a module beside this one add its commands, where it has any."""
    module = import_module(f"{__name__}.{name}")
    if hasattr(module, "register"):
        module.register(app)


def _extended(entry: EntryPoint) -> str:
    return entry.name.partition(".")[0]


def _join(app: typer.Typer, entry: EntryPoint) -> None:
    """Let one plug-in add its commands; a broken one costs its own commands only."""
    try:
        entry.load()(app)
    except (ImportError, AttributeError) as error:
        module = error.name if isinstance(error, ImportError) else None
        why = _needs(entry.name, module) or f"{entry.name!r} cannot be loaded: {error}"
        app.command(entry.name, help=f"Not available: {why}", hidden=True, context_settings=_ANY)(_refusal(why))


_ANY = {"allow_extra_args": True, "ignore_unknown_options": True}


def _refusal(why: str) -> Callable[[], None]:
    def refuse() -> None:
        raise SetupError(why)

    return refuse


def _needs(command: str, module: str | None) -> str:
    """Which extra the command needs, as a sentence; empty where the module is of none."""
    from agent.doctor.local import EXTRAS

    extra = next((name for name, modules in EXTRAS.items() if module in modules), None)
    if extra is None:
        return ""
    return f"{command!r} needs {module}, which the light install leaves out: pip install 'cairn-search[{extra}]'"


def _unexpected(error: Exception, arguments: Sequence[str]) -> int:
    """A bug: one sentence, and the traceback where --debug requests it."""
    from agent.settings import wants_debug

    if DEBUG in arguments or wants_debug():
        print_traceback(error)
    complain(
        f"unexpected error: {type(error).__name__}: {error}\n"
        "This is a bug in Cairn. Please report it with the traceback, which `cairn --debug …` shows."
    )
    return 1
