"""The protocols of a study: built-in ones, its own beside the recipes, and those that an arm changes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from agent.errors import SetupError
from agent.protocols import TextProtocol, load_protocol, protocol_named
from train.checkpoints.export import as_toml
from train.common.saving import as_a_whole

RECIPES: Final = Path(__file__).parent.parent / "recipes"


def protocol_name(name: str) -> str:
    """What settings and recipes call a protocol: its name, or the file of one of the study's own."""
    own = RECIPES / f"{name}.toml"
    return str(own) if own.is_file() else name


def protocol_of(name: str, changes: Mapping[str, Any]) -> TextProtocol:
    """A protocol with some of its fields changed."""
    there = protocol_name(name)
    found = load_protocol(Path(there)) if there.endswith(".toml") else protocol_named(there)
    return found.model_copy(update=dict(changes))


def changed_protocol(name: str, changes: Mapping[str, Any], *, label: str, folder: Path) -> str:
    """The same as `protocol_name`; where something is changed, a file that is written into the folder.

    Args:
        name: of the protocol.
        changes: of its fields.
        label: ends its new name, which keeps the number of passages that a checkpoint was trained with from being put
            in again.
        folder: of the file.

    Raises:
        SetupError: the folder cannot be used.
    """
    if not changes:
        return protocol_name(name)
    own = protocol_of(name, {**changes, "name": f"{name}-{label}"})
    path = folder / f"{own.name}.toml"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(f"{folder} cannot be used as a folder ({error.strerror}): name another --out") from error
    with as_a_whole(path) as made:
        made.write_text(as_toml(own), encoding="utf-8")
    return str(path)
