"""Protocol files: finding and reading them, and the texts of other people that a profile needs."""

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import ValidationError

from agent.errors import SetupError, nearest
from agent.files.own import read_bounded
from agent.protocols.base import Role, TextProtocol

_HERE = Path(__file__).parent
_OWN: Final = ("cairn", "multisearch", "dag", "evidence", "reflect", "kg")
_FILES: Final = ("prompt", "system", "instructions")
"""Texts that a protocol file may keep in files beside it."""


def protocol_names() -> list[str]:
    """The built-in protocols, `cairn` first."""
    return list(_OWN)


def profile_names() -> list[str]:
    """The profiles of public checkpoints."""
    return sorted(path.stem for path in (_HERE / "profiles").glob("*.toml"))


@cache
def protocol_named(name: str) -> TextProtocol:
    """One built-in protocol, or the profile of a public checkpoint.

    Raises:
        SetupError: there is none of that name; the sentence names the nearest.
    """
    names = [*protocol_names(), *profile_names()]
    if name not in names:
        there = f"choose from: {', '.join(protocol_names())}; and the profiles {', '.join(profile_names())}"
        raise SetupError(f"there is no protocol {name!r}{nearest(name, names)}; {there}")
    return load_protocol(_HERE / f"{name}.toml" if name in _OWN else _HERE / "profiles" / f"{name}.toml")


def load_protocol(path: Path) -> TextProtocol:
    """Read a protocol file; `prompt_file`, `system_file` and `instructions_file` are found beside it.

    Raises:
        SetupError: the file is missing, no TOML, or has a wrong or unknown key; the sentence names it and the fix.
    """
    try:
        fields = tomllib.loads(read_bounded(path).decode("utf-8"))
        for key in _FILES:
            if beside := fields.pop(f"{key}_file", None):
                fields[key] = _read(_beside(path, str(beside), key=f"{key}_file"))
        return TextProtocol.model_validate(fields)
    except ValidationError as error:
        why = "; ".join(_sentence(detail) for detail in error.errors(include_input=False))
        raise SetupError(f"the protocol file {path} cannot be used: {why}") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise SetupError(f"the protocol file {path} cannot be used: {error}") from error


def with_texts(protocol: TextProtocol, path: Path) -> TextProtocol:
    """The protocol with the foreign texts of a file: TOML or JSON with their names, or the one text as it stands.

    Raises:
        SetupError: the file cannot be read, or holds what the protocol has no use for.
    """
    if not protocol.foreign:
        raise SetupError(f"the protocol {protocol.name!r} has all its texts; leave the prompt file out")
    try:
        text = _read(path)
        given = _named_texts(text, path, protocol)
    except (OSError, ValueError) as error:  # tomllib's and json's errors are ValueErrors
        raise SetupError(f"the prompt file {path} cannot be read: {error}") from error
    for name, value in given.items():
        if name not in protocol.foreign:
            there = ", ".join(protocol.foreign)
            raise SetupError(
                f"the prompt file {path} holds {name!r}, which {protocol.name!r} does not need"
                f"{nearest(name, protocol.foreign)}; it needs: {there}"
            )
        if not isinstance(value, str) or not value.strip():
            raise SetupError(f"the prompt file {path} must hold text under {name!r}")
    return protocol.model_copy(update=dict(given))


def whole(protocol: TextProtocol) -> TextProtocol:
    """The protocol, if nothing of it is missing.

    Raises:
        SetupError: it needs texts of other authors; the sentence says which, and where they are kept.
    """
    if not protocol.missing:
        return protocol
    missing, kept = " and ".join(map(repr, protocol.missing)), f" ({protocol.upstream})" if protocol.upstream else ""
    raise SetupError(
        f"the protocol {protocol.name!r} needs text that is not ours to ship: {missing}{kept}; write it to a file and"
        f" name that with --prompt-file FILE: TOML or JSON with the keys {', '.join(protocol.foreign)},"
        f" or plain text, which is the {protocol.foreign[0]} alone"
    )


def _read(path: Path) -> str:
    """The text as it stands, to the byte: a line break more or less is another prompt."""
    return read_bounded(path).decode("utf-8")


def _beside(protocol: Path, name: str, *, key: str) -> Path:
    """A file in the protocol's own folder: what it says is sent to the model, and only that may be.

    Raises:
        SetupError: it is elsewhere, or a link that leads out.
    """
    folder = protocol.parent.resolve()
    found = (folder / name).resolve()
    if Path(name).is_absolute() or ".." in Path(name).parts or not found.is_relative_to(folder):
        raise SetupError(
            f"the protocol file {protocol} cannot be used: {key} names {name!r}, which is not in its own folder; "
            "copy the file there"
        )
    return found


def _named_texts(text: str, path: Path, protocol: TextProtocol) -> Mapping[str, Any]:
    match path.suffix.casefold():
        case ".toml":
            return tomllib.loads(text)
        case ".json":
            given: Any = json.loads(text)
            if not isinstance(given, dict):
                raise ValueError("it is no JSON object")
            return given  # pyright: ignore[reportUnknownVariableType] - json
        case _:
            return {protocol.foreign[0]: text}


def _sentence(detail: Mapping[str, Any]) -> str:
    """What is wrong with one key, and the fix."""
    where = [str(part) for part in detail["loc"]]
    name = ".".join(where)
    match detail["type"]:
        case "missing":
            return f"the key {name!r} is missing; write it"
        case "extra_forbidden":
            return f"there is no key {name!r}{nearest(name, TextProtocol.model_fields)}"
        case "literal_error" if where[0] == "tags":
            roles = get_args(Role)
            return (
                f"the table 'tags' knows no role {where[1]!r}{nearest(where[1], roles)}; use one of {', '.join(roles)}"
            )
        case "literal_error":
            return f"the key {name!r} must be one of {detail['ctx']['expected']}"
        case _:
            said = str(detail["msg"]).removeprefix("Value error, ")
            return f"the key {name!r}: {said}" if name else said
