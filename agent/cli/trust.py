"""`cairn trust`: consent to the settings file of a folder, until it changes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent.cli.console import note, output, print_json
from agent.cli.options import JsonOption
from agent.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Mapping

_VALUE_CHARS: Final = 120


def register(app: typer.Typer) -> None:
    """Add `trust`."""
    app.command("trust")(trust)


def trust(
    where: Annotated[
        Path, typer.Argument(metavar="[FILE|FOLDER]", help="The settings file, or the folder of a cairn.toml.")
    ] = Path(),
    *,
    remove: Annotated[bool, typer.Option("--remove", help="Stop trusting it.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Show what is trusted, and what changed.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Consent to the settings file of a folder.

    A cairn.toml in the current folder may choose a protocol, budgets or
    sources. Addresses, paths, processes and everything else that could send
    your keys or run code need your consent. Consent is for this file with this
    content: it ends when the file changes. Once you consent, keys from the
    environment go to the addresses that the file names.

    Example: cairn trust ./cairn.toml
    """
    if listed:
        _list(as_json=as_json)
        return
    from agent.settings import CONFIG_FILE, needing_consent, settings_file
    from agent.settings.consent import give_consent, place_of, take_back

    path = where / CONFIG_FILE if where.is_dir() else where
    if remove:
        if not take_back(path):
            raise SetupError(f"{place_of(path)} is not trusted; see: cairn trust --list")
        _print({"file": place_of(path), "trusted": False}, f"{place_of(path)} is no longer trusted", as_json=as_json)
        return
    content, values = settings_file(path)
    wanted = needing_consent(values)
    give_consent(path, content)
    if wanted and not as_json:
        note("It sets:")
        for name in wanted:
            note(f"  {name} = {_value(values, name)}")
    facts = {"file": place_of(path), "trusted": True, "settings": wanted}
    _print(facts, f"{place_of(path)} is trusted until it changes", as_json=as_json)


def _list(*, as_json: bool) -> None:
    from agent.settings.consent import fingerprint, trusted_files

    def state(path: str, known: str) -> str:
        from agent.files.own import read_bounded

        try:
            return "trusted" if fingerprint(read_bounded(Path(path))) == known else "changed"
        except OSError:
            return "gone"

    files = {path: state(path, known) for path, known in trusted_files().items()}
    if as_json:
        print_json({"files": files})
        return
    for path, how in files.items():
        output().print(f"{how:8} {path}", markup=False)
    if not files:
        note("no settings file is trusted")


def _value(values: "Mapping[str, Any]", name: str) -> str:
    """What a setting is set to; a secret is not shown."""
    from agent.settings import CairnSettings

    table, _, inner = name.partition(".")
    field = CairnSettings.model_fields.get(table)
    value = values[table][inner] if inner else values[table]
    text = "(a secret)" if field and "Secret" in str(field.annotation) else repr(value)
    return text if len(text) <= _VALUE_CHARS else text[: _VALUE_CHARS - 1] + "…"


def _print(facts: "Mapping[str, Any]", sentence: str, *, as_json: bool) -> None:
    if as_json:
        print_json(dict(facts))
    else:
        output().print(sentence, markup=False)
