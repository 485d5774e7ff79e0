"""Protocols of one's own, put beside the checkpoint that was trained on them, so that its folder alone serves it.

A protocol that this package brings needs no file; its name is enough.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.errors import SetupError
from agent.protocols import TextProtocol, load_protocol


def put_beside(folder: Path, protocols: Sequence[str]) -> tuple[str, ...]:
    """Write each protocol that is named by its file into a folder, as NAME.toml with all its texts; gives the names.

    Args:
        folder: of the checkpoint.
        protocols: names, or files.

    Raises:
        SetupError: a file cannot be used, or its protocol has no name that a file can have.
    """
    return tuple(_put(folder, Path(said)) if said.endswith(".toml") else said for said in protocols)


def as_toml(protocol: TextProtocol) -> str:
    """What `load_protocol` reads as the same protocol."""
    fields: dict[str, Any] = protocol.model_dump(mode="json", exclude_unset=True)
    return "".join(f"{name} = {_value(value)}\n" for name, value in fields.items() if value is not None)


def _put(folder: Path, file: Path) -> str:
    protocol = load_protocol(file)
    if Path(protocol.name).name != protocol.name:
        raise SetupError(f"the protocol of {file} is called {protocol.name!r}, which no file can be; rename it")
    (folder / f"{protocol.name}.toml").write_text(as_toml(protocol), encoding="utf-8")
    return protocol.name


def _value(value: Any) -> str:
    """JSON's strings are TOML's, but for one control character."""
    if isinstance(value, Mapping):
        inner = (f"{_value(name)} = {_value(kept)}" for name, kept in value.items() if kept is not None)
        return f"{{ {', '.join(inner)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
