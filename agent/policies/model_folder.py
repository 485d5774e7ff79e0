"""What a folder that is named as a model holds: the hub's form, the exported one, or both; and what it says of itself.

It reads names and one JSON file; `hub_form` and `checkpoint` open what is there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError

from agent.errors import CheckpointError
from agent.evidence import Frozen
from agent.files.foreign import no_link, read_text
from agent.protocols.base import TextProtocol

ABOUT: Final = "cairn.json"
EXPORTED: Final = "ct2"
"""Name of the folder beside the hub's form where an exported one is looked for."""
HUB: Final = "hub"


def _is_empty(value: Mapping[str, int]) -> bool:
    return not value


class About(Frozen):
    """What cairn.json says of a checkpoint, in whichever form it stands beside it."""

    name: str
    protocols: tuple[str, ...] = Field(min_length=1)
    """The protocols that the policy was trained on, the default one first."""
    context_tokens: int
    eos: str
    passages: dict[str, int] = Field(default_factory=dict[str, int], exclude_if=_is_empty)
    """By protocol: how many a search showed in training, where it was another number than the protocol's."""
    dates: bool = Field(default=True, exclude_if=bool)
    """Whether passages had dates in training; one that never saw any takes a date for a title, and is shown none."""


@dataclass(frozen=True)
class ModelFolder:
    """The forms that a folder holds, and what it says of itself; None for what is not there."""

    folder: Path
    hub: Path | None
    exported: Path | None
    about: About | None

    @property
    def missing(self) -> str:
        """What the hub's form lacks, with the fix; empty where it is whole."""
        if self.hub is None:
            return f"{self.folder} has only the exported form, not the hub's"
        there = {path.name for path in self.hub.iterdir()}
        lacks = [name for name in ("config.json", "tokenizer.json") if name not in there]
        if not any(name.endswith(".safetensors") for name in there):
            lacks.append("weights (*.safetensors)")
        again = "copy the folder again, or write model and tokenizer there with save_pretrained"
        if any(name.startswith("pytorch_model") for name in there):
            again = "its pytorch_model files can run code and are not read; save_pretrained writes safe ones"
        return f"{self.hub} lacks {', '.join(lacks)}; {again}" if lacks else ""


def look_at(folder: Path) -> ModelFolder:
    """Find what a folder holds: in itself, or in the folders `hub` and `ct2` in it.

    Raises:
        CheckpointError: it holds no form of a model, or its cairn.json cannot be read.
    """
    exported = next((path for path in (folder, folder / EXPORTED) if _is_exported(path)), None)
    hub = next((path for path in (folder, folder / HUB) if _is_hub(path)), None)
    if exported is None and hub is None:
        raise CheckpointError(
            f"{folder} holds no model: neither config.json, tokenizer.json and *.safetensors (the hub's form) nor what "
            "`cairn checkpoint export` makes; name the folder of a checkpoint"
        )
    beside = hub.parent / EXPORTED if hub is not None and hub.name == HUB else None
    places = [folder, *(path for path in (hub, exported, beside) if path is not None)]
    about = next((read_about(path) for path in places if (path / ABOUT).is_file()), None)
    return ModelFolder(folder, hub, exported, about)


def read_about(folder: Path) -> About:
    """Read the cairn.json of a folder.

    Raises:
        CheckpointError: it is not there, or does not say what it should.
    """
    path = folder / ABOUT
    try:
        return About.model_validate_json(read_text(path), extra="ignore")
    except (ValidationError, OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}; write it again with `cairn checkpoint card`") from error


def trained_with(folder: Path) -> dict[str, int]:
    """Passages that a search showed in training, by protocol; nothing where the folder does not say.

    Raises:
        CheckpointError: its cairn.json cannot be read.
    """
    return read_about(folder).passages if (folder / ABOUT).is_file() else {}


def with_passages(protocol: TextProtocol, passages: Mapping[str, int]) -> TextProtocol:
    """The protocol with the number of passages per search that the folder gives under its name."""
    most = passages.get(protocol.name, protocol.passages)
    return protocol if most == protocol.passages else protocol.model_copy(update={"passages": most})


def dates_shown(folder: Path) -> bool:
    """Whether passages are shown with their dates to the policy of this folder.

    Raises:
        CheckpointError: its cairn.json cannot be read.
    """
    return not (folder / ABOUT).is_file() or read_about(folder).dates


def without_dates(protocol: TextProtocol) -> TextProtocol:
    """The protocol with passages that do not say their dates."""
    return protocol.model_copy(update={"dated": ""})


def as_in_training(protocol: TextProtocol, folder: Path) -> TextProtocol:
    """The protocol with as many passages a search, and with or without dates, as the folder's policy saw in training.

    Raises:
        CheckpointError: its cairn.json cannot be read.
    """
    protocol = with_passages(protocol, trained_with(folder))
    return protocol if dates_shown(folder) else without_dates(protocol)


def write_about(folder: Path, about: About) -> Path:
    """Put cairn.json into a folder; gives its path."""
    path = folder / ABOUT
    with open(path, "w", encoding="utf-8", opener=no_link) as file:
        file.write(about.model_dump_json(indent=2) + "\n")
    return path


def _is_exported(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("model.bin", "vocabulary.json"))


def _is_hub(folder: Path) -> bool:
    marks = ("config.json", "tokenizer_config.json", "*.safetensors", "pytorch_model*")
    return folder.is_dir() and not _is_exported(folder) and any(any(folder.glob(mark)) for mark in marks)
