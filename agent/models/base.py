"""A model that is at hand in one of its two forms: one GGUF file, or a folder in the hub's form."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from agent.errors import CheckpointError
from agent.files.foreign import open_file, read_text
from agent.models.gguf_file import open_gguf
from agent.models.tokenizer import TokenizerFiles, tokenizer_of_gguf
from agent.models.weights import ModelWeights, gguf_weights, hub_weights
from agent.policies.hub_form import open_hub_form

HUB_FILES: Final = (
    *("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"),
    *(
        "special_tokens_map.json",
        "added_tokens.json",
        "vocab.json",
        "merges.txt",
        "*.safetensors",
        "*.safetensors.index.json",
    ),
)
"""What is kept of a folder in the hub's form."""


@dataclass(frozen=True)
class Base:
    """A model to convert. Its weights are read when they are needed."""

    path: Path
    weights: ModelWeights
    tokenizer: TokenizerFiles


def open_base(path: Path) -> Base:
    """Read all of a model but its weights, which are only looked for.

    Args:
        path: a GGUF file, or a folder in the hub's form.

    Raises:
        CheckpointError: it is missing, damaged, or of a kind that is not converted.
    """
    if path.is_dir():
        return Base(path, hub_weights(path), _hub_tokenizer(path))
    file = open_gguf(path)
    return Base(path, gguf_weights(file), tokenizer_of_gguf(file))


def hash_of(path: Path) -> str:
    """SHA-256 of a file; of a folder in the hub's form, that of its files with their names.

    Raises:
        CheckpointError: something cannot be read.
    """
    try:
        if not path.is_dir():
            with open_file(path) as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        found = hashlib.sha256()
        for name in sorted({part for pattern in HUB_FILES for part in path.glob(pattern)}):
            with open_file(name) as file:
                found.update(f"{name.name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
        return found.hexdigest()
    except OSError as error:
        raise CheckpointError(f"{error.filename or path} cannot be read: {error.strerror or error}") from error


def _hub_tokenizer(folder: Path) -> TokenizerFiles:
    form = open_hub_form(str(folder))
    said = _object(folder / "tokenizer_config.json")
    template = said.get("chat_template")
    path = folder / "chat_template.jinja"
    if path.is_file():
        template = _text(path)
    return TokenizerFiles(
        json=_text(folder / "tokenizer.json"),
        end=form.codec.tokens[form.codec.eos],
        begin=_token(said.get("bos_token")),
        unknown=_token(said.get("unk_token")),
        padding=_token(said.get("pad_token")),
        chat_template=template if isinstance(template, str) else None,
    )


def _token(said: Any) -> str | None:
    """A token as tokenizer_config.json says it: its text, or an object that holds it."""
    if isinstance(said, dict):
        said = cast(dict[str, Any], said).get("content")
    return said if isinstance(said, str) else None


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}; name a checkpoint in the hub's form") from error


def _object(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        said: Any = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not valid JSON; name a checkpoint in the hub's form") from error
    return cast(dict[str, Any], said) if isinstance(said, dict) else {}
