"""Recipes and other tables are read here: TOML into a model of pydantic, with one sentence for whatever is wrong."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar, cast, get_args

from pydantic import BaseModel, ValidationError

from agent.errors import SetupError, wrong_fields
from agent.files.foreign import MIB, read_text

Model = TypeVar("Model", bound=BaseModel)

_RENAMED: Final[Mapping[str, Mapping[str, str]]] = {
    "optimizer": {"passes": "epochs", "pieces": "micro_batches"},
    "learning": {"critic_passes_first": "critic_epochs_first"},
    "safety": {"canary": "probes", "canary_every_steps": "probe_every_steps", "canary_seconds": "probe_seconds"},
}
"""Keys of RL and PPO recipes that had another name in earlier versions, by their table."""


def read_table(path: Path, *, what: str = "recipe") -> Mapping[str, Any]:
    """The table of a TOML file.

    Raises:
        SetupError: it is missing, or no TOML.
    """
    try:
        return tomllib.loads(read_text(path, most=MIB, pipe=True))
    except OSError as error:
        raise SetupError(f"the {what} {path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise SetupError(f"the {what} {path} cannot be read: {error}") from error


def read_model(path: Path, model: type[Model], *, what: str = "recipe", start: str | None = None) -> Model:
    """The same, as its model has it.

    Args:
        path: of the TOML file.
        model: that it must fit.
        what: a word for it, in the error.
        start: a checkpoint in the place of the file's own.

    Raises:
        SetupError: it is missing, no TOML, of another kind, or has a wrong or unknown key; the sentence names each.
    """
    return as_model(read_table(path, what=what), model, path, what=what, start=start)


def as_model(
    said: Mapping[str, Any], model: type[Model], path: Path, *, what: str = "recipe", start: str | None = None
) -> Model:
    """The table of a file, perhaps with changes, as its model has it; see `read_model`."""
    table = with_current_keys({**said, **({"start": start} if start else {})})
    kinds = get_args(model.model_fields["kind"].annotation) if "kind" in model.model_fields else ()
    if kinds and table.get("kind") not in kinds:
        raise SetupError(
            f"the {what} {path} is of kind {table.get('kind', '')!r}; this command needs the kind {kinds[0]!r}"
        )
    try:
        return model.model_validate(table)
    except ValidationError as error:
        raise SetupError(f"the {what} {path} cannot be used: {wrong_fields(error)}") from error


def with_current_keys(said: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe with the present names of its keys: recipes and runs of earlier versions have others."""
    if said.get("kind") == "distill":
        return _renamed(said, {"asked": "agent"})
    if said.get("kind") not in ("rl", "ppo"):
        return dict(said)
    renamed = {table: _renamed(content, _RENAMED.get(table, {})) for table, content in said.items()}
    safety = renamed.get("safety")
    if isinstance(safety, Mapping) and "rules" in safety:
        rules = [_renamed(rule, {"mend": "fix"}) for rule in cast(Mapping[str, Any], safety)["rules"]]
        renamed["safety"] = {**cast(Mapping[str, Any], safety), "rules": rules}
    return renamed


def same_run(recipe: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether a run goes on by either recipe: by the present names of their keys, and however many states are kept."""
    return _deciding(recipe) == _deciding(other)


def _deciding(recipe: Mapping[str, Any]) -> dict[str, Any]:
    current = with_current_keys(recipe)
    report = current.get("report")
    if current.get("kind") in ("rl", "ppo") and isinstance(report, Mapping):
        current["report"] = {**cast(Mapping[str, Any], report), "keep": None}
    return current


def _renamed(content: Any, names: Mapping[str, str]) -> Any:
    if not names or not isinstance(content, Mapping):
        return content
    table = cast(Mapping[str, Any], content)
    return {name if (new := names.get(name, name)) in table else new: value for name, value in table.items()}


def kind_of(path: Path) -> str:
    """Which kind of run a recipe is for, as its `kind` says.

    Raises:
        SetupError: the file is missing, or no TOML.
    """
    return str(read_table(path).get("kind", ""))
