"""Where fetched and converted models are kept for this user, and how a folder gets there: whole, or not at all.

    fetched/NAME    a GGUF file, or a folder in the hub's form
    hub/NAME-KEY    made of a GGUF: the hub's form
    served/NAME-KEY made of either, and perhaps an adapter: what the embedded engine serves

Each has a `made.json`. A folder is written under `staging` and renamed; processes that want the same one wait.
"""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Final, Literal

from platformdirs import user_cache_path
from pydantic import BaseModel, ConfigDict, ValidationError

from agent.errors import SetupError
from agent.files.own import lock_file, private_file, private_folder, read_bounded

Kind = Literal["fetched", "hub", "served"]
Progress = Callable[[str, int, int], None]
"""Gets the name of a stage, what is done of it, and what there is to do: bytes, layers or tensors."""
KINDS: Final[tuple[Kind, ...]] = ("fetched", "hub", "served")
RECORD: Final = "made.json"
_LEAST_FREE: Final = 16 << 20
"""Bytes that are left free beside what is written."""
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class ModelRecord(BaseModel):
    """What made.json says of a folder."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    """Of the model, as commands take it."""
    source: str
    """Where it came from: a package, a name on the hub, a path; or the name of the model that it was made of."""
    sha256: str
    """Of what was fetched; or of everything that it was made of."""
    file: str = ""
    """The GGUF in the folder; empty for the hub's form."""
    stored: str = ""
    """How the weights were converted: int8, float32, bfloat16."""
    adapter: str = ""
    """The folder of the adapter that is merged into them."""
    sizes: dict[str, int] = {}
    """Bytes of each file."""


@dataclass(frozen=True)
class CacheEntry:
    """A folder of the cache."""

    kind: Kind
    folder: Path
    record: ModelRecord

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(self.record.sizes.values())

    @property
    def model(self) -> Path:
        """The GGUF, or the folder."""
        return self.folder / self.record.file if self.record.file else self.folder


def quiet(stage: str, done: int, total: int) -> None:
    """Progress that no one looks at."""


class ModelCache:
    """The models in one folder: the user's, unless another one is named."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or user_cache_path("cairn", appauthor=False) / "models"

    def find(self, kind: Kind, name: str) -> CacheEntry | None:
        """What is kept under a name; None where nothing is, or a file of it is missing or has another size."""
        folder = self.folder / kind / file_name(name)
        try:
            record = ModelRecord.model_validate_json(read_bounded(folder / RECORD))
            same = {file: (folder / file).stat().st_size for file in record.sizes} == record.sizes
        except (OSError, ValidationError):
            return None
        return CacheEntry(kind, folder, record) if same and record.sizes else None

    def all(self) -> list[CacheEntry]:
        """Everything that is kept, by kind and name."""
        found = (
            self.find(kind, folder.name) for kind in KINDS for folder in sorted((self.folder / kind).glob("[!.]*"))
        )
        return [entry for entry in found if entry is not None]

    def make(
        self,
        kind: Kind,
        name: str,
        write: Callable[[Path], ModelRecord],
        *,
        needs: int,
        progress: Progress = quiet,
        again: Callable[[CacheEntry], bool] = lambda entry: False,
    ) -> CacheEntry:
        """Give what is kept under a name; where nothing is, write it.

        Args:
            kind: of the folder.
            name: of the folder.
            write: gets an empty folder, fills it, and says what it is.
            needs: bytes that it will take on disk, about.
            progress: receives waiting for another process.
            again: whether what is kept is to be replaced.

        Raises:
            SetupError: there is no room, or the cache cannot be written; or what `write` raises.
        """
        entry = self.find(kind, name)  # also where the cache cannot be written, as in an image
        if entry is not None and not again(entry):
            return entry
        with self._errors(needs), self._locked(kind, name, progress) as alone:
            now = self.find(kind, name)
            if now is not None and (now != entry or not again(now)):
                return now  # another process made it meanwhile
            stagings = private_folder(self.folder / "staging")
            prefix = f"{kind}-{hashlib.sha256(name.encode()).hexdigest()[:12]}-"
            for old in stagings.glob(f"{prefix}*") if alone else ():  # of a process that was killed
                shutil.rmtree(old, ignore_errors=True)
            self._make_room(needs)
            staging = Path(mkdtemp(dir=stagings, prefix=prefix))
            try:
                _seal(staging, write(staging))
                if now is not None or self.find(kind, name) is None:  # without locks, another process may be first
                    self._publish(staging, kind, name)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
            entry = self.find(kind, name)
        if entry is None:
            raise SetupError(
                f"{self.folder / kind / file_name(name)} was changed while it was being made; run the command again"
            )
        return entry

    def partial(self, name: str) -> Path:
        """A folder for a download that may go on where it was broken off; `make` holds the lock of its name."""
        return private_folder(self.folder / "staging" / f"partial-{file_name(name)}")

    def _publish(self, staging: Path, kind: Kind, name: str) -> None:
        place = private_folder(self.folder / kind) / file_name(name)
        old = staging.with_name(f"{staging.name}-old")
        if place.exists():  # damaged, or to be replaced: it is moved away whole
            place.rename(old)
        try:
            staging.rename(place)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:  # then another process was first
                raise
        shutil.rmtree(old, ignore_errors=True)

    def _make_room(self, needs: int) -> None:
        free = shutil.disk_usage(private_folder(self.folder)).free
        if free < needs + _LEAST_FREE:
            raise OSError(errno.ENOSPC, "No space left on device")

    @contextmanager
    def _locked(self, kind: Kind, name: str, progress: Progress) -> Generator[bool]:
        """One process at a time makes a folder. False where the disk has no locks: then the first to rename wins."""
        folder = private_folder(self.folder / "locks")
        with open(private_file(folder / f"{kind}-{file_name(name)}"), "ab") as file:
            try:
                alone = lock_file(file, wait=False)
                if not alone:
                    progress("waiting", 0, 1)
                    alone = lock_file(file, wait=True)
            except OSError:
                alone = False
            yield alone

    @contextmanager
    def _errors(self, needs: int) -> Generator[None]:
        """What the disk refuses, as a sentence."""
        try:
            yield
        except OSError as error:
            elsewhere = "or set XDG_CACHE_HOME to a folder elsewhere"
            if error.errno in _FULL or " requested and " in str(error):  # numpy says so of a full disk
                raise SetupError(
                    f"there is not enough space for a model in {self.folder}: about {max(needs, 1) / 1e6:,.0f} MB are "
                    f"needed; free some, {elsewhere}"
                ) from error
            raise SetupError(
                f"the cache of models {self.folder} cannot be used: {error.strerror or error} "
                f"({error.filename or self.folder}); make it writable for you, {elsewhere}"
            ) from error


def _seal(folder: Path, record: ModelRecord) -> None:
    """Write made.json last, once the files that it lists are on the disk; all of them are the user's alone."""
    sizes: dict[str, int] = {}
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        path.chmod(0o600)
        with path.open("ab") as file:
            os.fsync(file.fileno())
        sizes[path.name] = path.stat().st_size
    said = record.model_copy(update={"sizes": sizes}).model_dump_json(indent=2)
    (folder / RECORD).write_text(said + "\n", encoding="utf-8")
    (folder / RECORD).chmod(0o600)


def file_name(name: str) -> str:
    """A model's name as that of a folder: ORG/NAME is ORG--NAME."""
    return re.sub(r"[^\w.+-]+", "-", name.replace("/", "--"), flags=re.ASCII).lstrip(".-")[:120] or "model"


def as_json(entry: CacheEntry) -> dict[str, object]:
    """What `cairn model list --json` says of a folder."""
    said = json.loads(entry.record.model_dump_json(exclude={"sizes"}))
    return {"kind": entry.kind, **said, "bytes": entry.size, "folder": str(entry.folder)}
