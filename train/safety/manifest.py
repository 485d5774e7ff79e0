"""The manifest of a run: what it was made from, on what, when, and what came out. It reads no model and no log.

It is written when the run begins and completed when it ends, each time as a whole; one that says "running" belongs to
a run that goes on, or that was killed. A run that is resumed adds a session to it.
"""

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from agent import __version__
from agent.cores import cores
from agent.errors import AgentError, SetupError
from agent.files.foreign import WHOLE_BYTES, open_file, read_file
from train.common.recipe_files import same_run
from train.common.saving import replacing

MANIFEST: Final = "manifest.json"
PACKAGES: Final = (
    *("torch", "transformers", "tokenizers", "trl", "accelerate", "ctranslate2", "vllm", "numpy", "bm25s"),
    *("sentence-transformers", "umap-learn", "scikit-learn", "datasketch"),
)
_DECIDES: Final = (".safetensors", "config.json", "tokenizer.json")
"""Files of a start that decide what a run goes on with."""
_GIT_SECONDS: Final = 10
_CURVES: Final = "tensorboard"
"""Folder of curves, which has a file as soon as a run begins."""

State = Literal["running", "done", "interrupted", "stopped", "failed"]


class Machine(BaseModel):
    """The kind of a machine, in plain figures; not which one it is."""

    system: str
    architecture: str
    cores: int
    memory_gib: float | None = None
    gpus: tuple[str, ...] = ()
    """Name and memory of each."""


class RunSession(BaseModel):
    """One process of the run, from its beginning to its end."""

    began: str
    ended: str = ""
    state: State = "running"
    why: str = ""
    """The sentence that ended it, where it did not come to its end."""
    machine: Machine
    versions: dict[str, str]
    commit: str = ""
    """Of the source tree, where it is one; with "+" where files of it were changed."""


class RunManifest(BaseModel):
    """What a run leaves beside its weights. `figures` may be filled in until the run ends."""

    model_config = ConfigDict(extra="forbid")

    version: Literal[1] = 1
    kind: str
    name: str
    recipe: dict[str, Any]
    recipe_hash: str
    seeds: dict[str, int]
    data: dict[str, str] = Field(default_factory=dict)
    """Name of a file, folder or list → SHA-256."""
    start: dict[str, str] = Field(default_factory=dict)
    """Files of the checkpoint that it began from → SHA-256."""
    sessions: list[RunSession] = Field(
        default_factory=list[RunSession], validation_alias=AliasChoices("sessions", "sittings")
    )
    """One for each process of the run; earlier manifests have the second name."""
    figures: dict[str, float] = Field(default_factory=dict)
    """The last ones: steps, tokens, seconds, rewards, losses."""

    @property
    def state(self) -> State:
        return self.sessions[-1].state

    def interrupted(self) -> None:
        """The run ends early because its user stopped it; it can go on later."""
        self.sessions[-1].state = "interrupted"


@contextmanager
def kept_manifest(
    folder: Path,
    *,
    recipe: BaseModel,
    seeds: Mapping[str, int],
    data: Mapping[str, str] | None = None,
    start: Path | None = None,
) -> Iterator[RunManifest]:
    """Keep `manifest.json` in a run's folder, from the run's beginning to its end.

    Args:
        folder: of the run; a manifest that is there is gone on with.
        recipe: with the fields `kind` and `name`.
        seeds: by what they decide.
        data: name → hash, from `hash_of` or `fingerprint`.
        start: folder of the checkpoint that the run begins from.

    Yields:
        The manifest, whose `figures` the run fills in.

    Raises:
        SetupError: a manifest that is there cannot be read, or is another recipe's; data or weights have changed since
            its run began; or none can be written.
    """
    manifest = _begun(folder, recipe, dict(seeds), dict(data or {}), hashes_of(start) if start else {})
    _write(folder, manifest)
    session = manifest.sessions[-1]
    try:
        yield manifest
        session.state = "done" if session.state == "running" else session.state
    except KeyboardInterrupt:
        session.state = "interrupted"
        raise
    except AgentError as error:
        session.state, session.why = "stopped", str(error)
        raise
    except Exception as error:
        session.why = f"{type(error).__name__}: {error}"
        raise
    finally:
        session.state = "failed" if session.state == "running" else session.state
        session.ended = _now()
        _write(folder, manifest)


def read_manifest(folder: Path) -> RunManifest:
    """The manifest of a run.

    Raises:
        SetupError: there is none, or it cannot be read.
    """
    path = folder / MANIFEST
    try:
        return RunManifest.model_validate_json(read_file(path, most=WHOLE_BYTES))
    except (OSError, ValidationError) as error:
        raise SetupError(f"the manifest {path} cannot be read ({error}): is {folder} the folder of a run?") from error


def hash_of(path: Path) -> str:
    """SHA-256 of a file, or of a folder's files with their names."""
    if path.is_file():
        with open_file(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    return hashlib.sha256(json.dumps(hashes_of(path)).encode()).hexdigest()


def hashes_of(folder: Path) -> dict[str, str]:
    """Every file of a folder → SHA-256, in the order of their names."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hash_of(path) for path in files}


def machine() -> Machine:
    """What this process runs on."""
    return Machine(
        system=platform.system(),
        architecture=platform.machine(),
        cores=cores(),
        memory_gib=_memory(),
        gpus=_gpus(),
    )


def _begun(
    folder: Path, recipe: BaseModel, seeds: dict[str, int], data: dict[str, str], start: dict[str, str]
) -> RunManifest:
    said: dict[str, Any] = recipe.model_dump(mode="json")
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
    manifest = read_manifest(folder) if (folder / MANIFEST).exists() else None
    if manifest is not None and manifest.recipe_hash != digest and not same_run(manifest.recipe, said):
        if not _nothing_made(folder, manifest):
            raise SetupError(f"{folder / MANIFEST} is of another recipe: use that one, or another --out")
        manifest = None
    if manifest is None:
        manifest = RunManifest(
            kind=str(said.get("kind", "")),
            name=str(said.get("name", "")),
            recipe=said,
            recipe_hash=digest,
            seeds=seeds,
            data=data,
            start=start,
        )
    else:
        _refuse_changed(manifest, data, start)
    manifest.sessions.append(RunSession(began=_now(), machine=machine(), versions=_versions(), commit=_commit()))
    return manifest


def _refuse_changed(manifest: RunManifest, data: Mapping[str, str], start: Mapping[str, str]) -> None:
    """Refuse to go on with other data or weights than the run began with; what describes a model may change.

    Raises:
        SetupError: something of it has changed.
    """
    weights = {name: digest for name, digest in start.items() if name.endswith(_DECIDES)}
    for now, before in ((data, manifest.data), (weights, manifest.start)):
        if changed := sorted(name for name, digest in now.items() if before.get(name, digest) != digest):
            raise SetupError(f"{changed[0]} has changed since the run began: put it back, or name another --out")


def _nothing_made(folder: Path, manifest: RunManifest) -> bool:
    """Whether a run ended before it left anything but its manifest, because its start was not there, say.

    Then another recipe may begin in its folder.
    """
    if manifest.state not in ("stopped", "failed"):
        return False
    files = (path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    return all(path.name == MANIFEST or _CURVES in path.relative_to(folder).parts for path in files)


def _write(folder: Path, manifest: RunManifest) -> None:
    """As a whole or not at all: what was there before stays until the new one is on the disk.

    Raises:
        SetupError: the disk is full, or the folder cannot be written.
    """
    try:
        with replacing(folder / MANIFEST) as written:
            written.write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        why = error.strerror or error
        raise SetupError(f"{folder / MANIFEST} cannot be written: {why}; what was saved before is whole") from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    found = {"cairn": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def _commit() -> str:
    """Of the source tree that holds this file; empty where it is an installed package, or there is no git."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return ""
    commit = _git(root, "rev-parse", "HEAD")
    return f"{commit}+" if commit and _git(root, "status", "--porcelain", "--untracked-files=no") else commit


def _git(root: Path, *words: str) -> str:
    try:
        said = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, timeout=_GIT_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return said.stdout.strip()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError, AttributeError):
        return None


def _gpus() -> tuple[str, ...]:
    """Those that torch sees; none where there is no torch."""
    try:
        import torch
    except ModuleNotFoundError:
        return ()
    if not torch.cuda.is_available():
        return ()
    seen = (torch.cuda.get_device_properties(place) for place in range(torch.cuda.device_count()))
    return tuple(f"{gpu.name}, {gpu.total_memory / 2**30:.0f} GiB" for gpu in seen)
