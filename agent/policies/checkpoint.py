"""A checkpoint folder of the embedded engine: checked file by file before anything of it is loaded."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from agent.errors import CheckpointError
from agent.files.foreign import no_link, open_file, read_text
from agent.policies.model_folder import ABOUT, About
from agent.policies.tokens import Codec

MANIFEST: Final = ABOUT
NEEDED: Final = ("model.bin", "config.json", "vocabulary.json", "tokenizer.json")


class CheckpointManifest(About):
    """What cairn.json says."""

    files: dict[str, str]
    """File name → SHA-256 in hexadecimal."""


@dataclass(frozen=True)
class Checkpoint:
    """A folder whose files are what its manifest says."""

    folder: Path
    manifest: CheckpointManifest
    codec: Codec


def open_checkpoint(folder: Path) -> Checkpoint:
    """Check a checkpoint folder and read its tokenizer; the model's weights are only checked.

    Raises:
        CheckpointError: something is missing, cut short, changed, or does not belong together.
    """
    manifest = _read_manifest(folder)
    for name in dict.fromkeys((*NEEDED, *manifest.files)):
        _check_file(folder, name, manifest.files.get(name))
    try:
        codec = Codec(read_text(folder / "tokenizer.json"), ends=[manifest.eos])
        vocabulary: list[str] = json.loads(read_text(folder / "vocabulary.json"))
    except (ValueError, OSError) as error:
        raise CheckpointError(
            f"{folder / 'tokenizer.json'} cannot be used: {error}; export the checkpoint again"
        ) from error
    if vocabulary[: len(codec.tokens)] != codec.tokens:
        raise CheckpointError(
            f"{folder}: tokenizer.json and vocabulary.json are of different models; export the checkpoint again"
        )
    return Checkpoint(folder=folder, manifest=manifest, codec=codec)


def write_manifest(folder: Path, about: About) -> CheckpointManifest:
    """Put cairn.json beside the files of a checkpoint, with the hash of each of them."""
    files = {path.name: sha256_of(path) for path in sorted(folder.iterdir()) if path.name in NEEDED}
    manifest = CheckpointManifest(**dict(about), files=files)
    with open(folder / MANIFEST, "w", encoding="utf-8", opener=no_link) as file:
        file.write(manifest.model_dump_json(indent=2) + "\n")
    return manifest


def sha256_of(path: Path) -> str:
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_manifest(folder: Path) -> CheckpointManifest:
    path = folder / MANIFEST
    if not folder.is_dir():
        raise CheckpointError(f"there is no checkpoint folder {folder}; name one that `cairn checkpoint export` made")
    if not path.is_file():
        raise CheckpointError(
            f"{folder} is not a checkpoint of the embedded policy: it has no {MANIFEST}; "
            f"make one with `cairn checkpoint export`"
        )
    try:
        return CheckpointManifest.model_validate_json(read_text(path))
    except (ValidationError, OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}; export the checkpoint again") from error


def _check_file(folder: Path, name: str, expected: str | None) -> None:
    path = folder / name
    if Path(name).name != name or expected is None:
        raise CheckpointError(f"{folder / MANIFEST} has no valid entry for {name}; export the checkpoint again")
    try:
        found = sha256_of(path)
    except OSError as error:
        raise CheckpointError(
            f"the checkpoint file {path} cannot be read: {error.strerror}; copy the folder again"
        ) from error
    if found != expected:
        raise CheckpointError(
            f"the checkpoint file {path} is damaged ({path.stat().st_size} bytes, its SHA-256 is not the one in "
            f"{MANIFEST}); copy the folder again or export the checkpoint again"
        )
