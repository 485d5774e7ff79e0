"""A checkpoint in the hub's form, but for its weights: tokenizer, ends of a turn, length of the context.

A cairn.json in it names the policy, may shorten the context, and names the end of a turn where nothing else does.
"""

import importlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from agent.errors import CheckpointError
from agent.files.foreign import read_text
from agent.policies.model_folder import ABOUT, About, read_about
from agent.policies.tokens import Codec

_WEIGHTS: Final = ("*.safetensors",)
"""Those in other forms can run code."""
FILES: Final = ("*.json", *_WEIGHTS, "*.jinja", "merges.txt", "LICENSE*", "README.md")
"""What is fetched of a model that is named, not a folder."""


@dataclass(frozen=True)
class HubForm:
    """A folder with config.json, tokenizer.json and weights."""

    folder: Path
    name: str
    codec: Codec
    context_tokens: int
    layer_types: tuple[str, ...]
    """Kinds of attention that the layers use; nothing where the config does not say."""


def open_hub_form(model: str, *, weights: bool = True) -> HubForm:
    """Read all of a checkpoint but its weights.

    Args:
        model: a folder, or a name on the hub (which is fetched into the hub's cache, where it is not there).
        weights: whether they are fetched, too.

    Raises:
        CheckpointError: something is missing or cannot be used; the sentence says what to do.
    """
    folder = Path(model).expanduser()
    name = _name(folder) if folder.is_dir() else model
    folder = folder if folder.is_dir() else fetch(model, weights=weights)
    config = _read(folder / "config.json")
    text = cast(dict[str, Any], config.get("text_config") or config)
    length = text.get("max_position_embeddings")
    if not isinstance(length, int) or length < 1:
        raise CheckpointError(f"{folder / 'config.json'} has no max_position_embeddings; add it")
    about = read_about(folder) if (folder / ABOUT).is_file() else None
    ends = _ends(folder, text, about)
    path = folder / "tokenizer.json"
    try:
        codec = Codec(read_text(path), ends=ends)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read; save the model's tokenizer in the fast form there") from error
    except ValueError as error:
        raise CheckpointError(f"{path} cannot be used: {error}") from error
    length = min(length, about.context_tokens) if about else length
    name = about.name if about else name
    return HubForm(folder, name, codec, length, tuple(dict.fromkeys(text.get("layer_types") or ())))


def special_tokens_in(folder: str) -> tuple[str, ...]:
    """The tokens beside those of plain text that the tokenizer in a folder has; none where it cannot be read."""
    try:
        fields: dict[str, Any] = json.loads(read_text(Path(folder).expanduser() / "tokenizer.json"))
        return tuple(sorted({str(token["content"]) for token in fields["added_tokens"]}))
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return ()


def fetch(model: str, *, weights: bool = True) -> Path:
    """The folder of a model that is named, from the hub or its cache.

    Args:
        model: its name.
        weights: whether they are wanted, too.

    Raises:
        CheckpointError: there is no such model, or the hub cannot be reached.
    """
    if model.startswith((".", "/", "~")) or model.count("/") > 1:
        raise CheckpointError(f"there is no folder {model}; name a checkpoint in the hub's form")
    try:
        hub: Any = importlib.import_module("huggingface_hub")
        errors: Any = importlib.import_module("huggingface_hub.errors")
    except ImportError as error:
        raise CheckpointError(
            f"there is no folder {model}, and fetching models needs: pip install 'cairn-search[train]'"
        ) from error
    try:
        return Path(
            hub.snapshot_download(model, allow_patterns=[one for one in FILES if weights or one not in _WEIGHTS])
        )
    except (OSError, ValueError, errors.HfHubHTTPError) as error:  # the library's own are all among these
        why = str(error).strip().splitlines()[0]
        raise CheckpointError(
            f"{model} is not a folder, and cannot be fetched from the hub: {why}; check the name, and "
            "whether this machine reaches the hub, or name a folder"
        ) from error


def _ends(folder: Path, config: dict[str, Any], about: About | None) -> list[str | int]:
    """Tokens that end a turn, as ids or texts; the one that the tokenizer names first."""
    generation = _read(folder / "generation_config.json", missing_is_empty=True)
    tokenizer = _read(folder / "tokenizer_config.json", missing_is_empty=True)
    named = tokenizer.get("eos_token")
    named = cast(dict[str, Any], named).get("content") if isinstance(named, dict) else named
    ids = generation.get("eos_token_id", config.get("eos_token_id"))
    listed = cast(list[int], ids) if isinstance(ids, list) else [ids]
    ends = [*([named] if isinstance(named, str) else []), *(number for number in listed if number is not None)]
    if not ends and about:
        return [about.eos]
    if not ends:
        raise CheckpointError(f"{folder} names no eos_token; add it to tokenizer_config.json")
    return ends


def _name(folder: Path) -> str:
    above = folder.resolve()
    return above.parent.name if above.name == "hub" else above.name


def _read(path: Path, *, missing_is_empty: bool = False) -> dict[str, Any]:
    if missing_is_empty and not path.is_file():
        return {}
    try:
        found = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}); name a checkpoint in the hub's form") from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{path} is not a JSON object; name a checkpoint in the hub's form")
    return cast(dict[str, Any], found)
