"""What follows from a model that is named by its folder: which policy reads it, and in which protocols it speaks.

It reads names and one JSON file, and loads nothing.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from agent.errors import CheckpointError, SetupError
from agent.policies.model_folder import ModelFolder, look_at


def of_checkpoint(folder: Path, *, said: Collection[str]) -> dict[str, Any]:
    """The settings that an exported checkpoint decides; nothing where it cannot be read, which its loading will report.

    Args:
        folder: what `checkpoint` names.
        said: settings that were given.
    """
    try:
        found = look_at(folder)
    except CheckpointError:
        return {}
    return _spoken(found, said=said)


def of_model(model: str, policy: str, *, said: Collection[str]) -> dict[str, Any]:
    """The settings that a model's folder decides: those that were not given. Nothing where it is no folder.

    Args:
        model: what `model` names.
        policy: what `policy` says, by default or by a setting.
        said: settings that were given.

    Raises:
        SetupError: the folder lacks what it must have; the sentence says the fix.
    """
    folder = Path(model).expanduser()
    if not folder.is_dir():
        return {}
    if "policy" in said and policy != "embedded":
        return _in_this_process(folder, said=said)
    found = look_at(folder)
    if found.exported is not None:
        return {"policy": "embedded", "checkpoint": found.exported, **_spoken(found, said=said)}
    if "policy" in said:
        raise CheckpointError(
            f"{found.hub} is in the hub's form, and the embedded policy reads the exported one: "
            f"cairn checkpoint export {found.hub} --out {folder / 'ct2'}"
        )
    if found.missing:
        raise CheckpointError(found.missing)
    if found.about is None and "protocol" not in said:
        raise SetupError(
            f"{folder} does not say which protocol its model was trained on: it has no cairn.json; "
            "name it with --protocol NAME (see `cairn protocol list`)"
        )
    return {"policy": "transformers", "model": str(found.hub), **_spoken(found, said=said)}


def _in_this_process(folder: Path, *, said: Collection[str]) -> dict[str, Any]:
    """For an engine that was named: where the hub's form stands. What is wrong with it, the engine reports."""
    try:
        found = look_at(folder)
    except CheckpointError:
        return {}
    if found.hub is None:
        raise CheckpointError(f"{folder} has only the exported form; use --policy embedded")
    return {"model": str(found.hub), **_spoken(found, said=said)}


def _spoken(found: ModelFolder, *, said: Collection[str]) -> dict[str, Any]:
    """The protocols that a checkpoint says it was trained on, where no setting names one."""
    if found.about is None:
        return {}
    protocols = [_named(found, name) for name in found.about.protocols]
    decided: dict[str, Any] = {"protocol": protocols[0], "protocols": tuple(protocols)}
    return {name: value for name, value in decided.items() if name not in said}


def _named(found: ModelFolder, name: str) -> str:
    """A protocol's name; or its file, where the checkpoint brings one of its own."""
    if Path(name).name != name:
        return name  # which is no protocol's; a checkpoint brings files of its own folder alone
    places = [path / f"{name}.toml" for path in (found.folder, found.hub, found.exported) if path is not None]
    return next((str(path) for path in places if path.is_file()), name)
