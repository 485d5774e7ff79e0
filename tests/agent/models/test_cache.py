"""The cache of models: a folder is whole or is not there, whatever happens while it is made."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent.errors import SetupError
from agent.files.own import NotPrivate
from agent.models.cache import RECORD, CacheEntry, ModelCache, ModelRecord, as_json, file_name
from agent.models.ready import ready_policy_folder
from agent.policies.checkpoint import open_checkpoint
from tests.agent.models.case import write_small

MADE = ModelRecord(name="a", source="somewhere", sha256="0" * 64, file="a.gguf")


def writes(content: bytes = b"model") -> Callable[[Path], ModelRecord]:
    def write(folder: Path) -> ModelRecord:
        (folder / "a.gguf").write_bytes(content)
        return MADE

    return write


def never(folder: Path) -> ModelRecord:
    raise AssertionError("it is there already")


def make(cache: ModelCache, write: Callable[[Path], ModelRecord] | None = None, *, again: bool = False) -> CacheEntry:
    return cache.make("fetched", "ORG/a", write or writes(), needs=5, again=lambda entry: again)


def left_over(cache: ModelCache) -> list[str]:
    return [path.name for path in (cache.folder / "staging").iterdir()]


def test_a_folder_is_made_once_and_then_found(tmp_path: Path):
    cache = ModelCache(tmp_path / "models")
    assert (cache.find("fetched", "ORG/a"), cache.all()) == (None, [])
    entry = make(cache)
    assert entry.model == tmp_path / "models" / "fetched" / "ORG--a" / "a.gguf"
    assert entry.model.read_bytes() == b"model"
    assert make(cache, never) == cache.find("fetched", "ORG/a") == entry
    assert cache.all() == [entry]
    said = {"kind": "fetched", "name": "a", "source": "somewhere", "sha256": "0" * 64, "file": "a.gguf"}
    assert as_json(entry) == said | {"stored": "", "adapter": "", "bytes": 5, "folder": str(entry.folder)}
    assert left_over(cache) == []


def test_the_cache_is_the_user_s_and_for_the_user_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    entry = make(ModelCache())
    assert entry.folder == tmp_path / "cairn" / "models" / "fetched" / "ORG--a"
    assert entry.folder.stat().st_mode & 0o077 == 0


def test_a_damaged_folder_is_made_again(tmp_path: Path):
    cache = ModelCache(tmp_path)
    entry = make(cache)
    entry.model.write_bytes(b"mod")
    assert cache.find("fetched", "ORG/a") is None
    assert make(cache).model.read_bytes() == b"model"
    (entry.folder / RECORD).write_text("{", encoding="utf-8")
    assert make(cache).model.read_bytes() == b"model"
    assert left_over(cache) == []


def test_what_is_requested_again_is_replaced(tmp_path: Path):
    cache = ModelCache(tmp_path)
    make(cache)
    assert make(cache, writes(b"newer"), again=True).model.read_bytes() == b"newer"
    assert left_over(cache) == []


def test_what_fails_leaves_nothing(tmp_path: Path):
    cache = ModelCache(tmp_path)

    def fails(folder: Path) -> ModelRecord:
        (folder / "a.gguf").write_bytes(b"half")
        raise SetupError("no")

    with pytest.raises(SetupError, match="no"):
        make(cache, fails)
    assert (cache.all(), left_over(cache)) == ([], [])


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path):
    cache = ModelCache(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        make(cache, interrupted)
    other = cache.folder / "staging" / "served-0123456789ab-x"
    other.mkdir()
    assert left_over(cache) == [other.name]  # an interrupt still cleans up; a kill cannot

    def killed(folder: Path) -> ModelRecord:
        (folder.with_name(folder.name + "dead")).mkdir()
        return writes()(folder)

    make(cache, killed)
    assert len(left_over(cache)) == 2
    make(cache, again=True)
    assert left_over(cache) == [other.name]  # it may be of a process that is at work


def interrupted(folder: Path) -> ModelRecord:
    raise KeyboardInterrupt


def test_a_full_disk_is_a_sentence_with_what_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cache = ModelCache(tmp_path / "models")

    def full(folder: Path) -> ModelRecord:
        (folder / "a.gguf").write_bytes(b"mo")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(
        SetupError, match=r"not enough space for a model in .*models: about 0 MB .* free some, or set XDG_CACHE"
    ):
        make(cache, full)
    assert (cache.all(), left_over(cache)) == ([], [])

    def by_numpy(folder: Path) -> ModelRecord:
        raise OSError("1000 requested and 20 written")

    with pytest.raises(SetupError, match="not enough space"):
        make(cache, by_numpy)

    def nearly_full(path: Path) -> SimpleNamespace:
        return SimpleNamespace(free=1_000_000)

    monkeypatch.setattr("agent.models.cache.shutil.disk_usage", nearly_full)
    with pytest.raises(SetupError, match="about 200 MB are needed"):
        cache.make("fetched", "a", never, needs=200_000_000)


def test_a_cache_that_cannot_be_written_is_a_sentence(tmp_path: Path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(
        SetupError, match=r"cache of models .* cannot be used: .*make it writable for you, or set XDG_CACHE"
    ):
        make(ModelCache(tmp_path / "file" / "models"))

    def forbidden(folder: Path) -> ModelRecord:
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    with pytest.raises(SetupError, match="Permission denied"):
        make(ModelCache(tmp_path / "models"), forbidden)


def test_a_cache_that_others_can_write_into_is_refused(tmp_path: Path):
    (tmp_path / "models").mkdir(mode=0o777)
    (tmp_path / "models").chmod(0o777)
    with pytest.raises(NotPrivate, match="other users may write"):
        make(ModelCache(tmp_path / "models"))


def test_what_is_there_is_found_in_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    entry = make(ModelCache(tmp_path))

    def read_only(path: Path) -> Path:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr("agent.models.cache.private_folder", read_only)
    assert make(ModelCache(tmp_path), never) == entry


def test_without_locks_the_first_folder_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def no_locks(file: object, *, wait: bool) -> bool:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("agent.models.cache.lock_file", no_locks)
    cache = ModelCache(tmp_path)

    def late(folder: Path) -> ModelRecord:
        make(cache, writes(b"first"))  # another process is through meanwhile
        return writes(b"later")(folder)

    assert make(cache, late).model.read_bytes() == b"first"
    assert left_over(cache) == []


CONVERT = """
import sys
from pathlib import Path
from agent.models.cache import ModelCache
from agent.models.ready import ready_policy_folder
print(ready_policy_folder(base=sys.argv[1], cache=ModelCache(Path(sys.argv[2]))))
"""


def test_processes_at_once_end_with_one_good_folder(tmp_path: Path):
    write_small(tmp_path / "m.gguf")
    command = [sys.executable, "-P", "-c", CONVERT, str(tmp_path / "m.gguf"), str(tmp_path / "models")]
    root = Path(__file__).parents[3]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) for _ in range(2)]
    said = {process.communicate(timeout=100)[0].strip() for process in started}
    assert [process.returncode for process in started] == [0, 0]
    (folder,) = said
    assert open_checkpoint(Path(folder)).manifest.name == "m"
    assert os.listdir(tmp_path / "models" / "served") == [Path(folder).name]
    assert os.listdir(tmp_path / "models" / "staging") == []
    made = (Path(folder) / "model.bin").stat().st_mtime_ns
    again = ready_policy_folder(base=str(tmp_path / "m.gguf"), cache=ModelCache(tmp_path / "models"))
    assert (str(again), (again / "model.bin").stat().st_mtime_ns) == (folder, made)
    assert json.loads((again / RECORD).read_text(encoding="utf-8"))["stored"] == "int8"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("ORG/NAME", "ORG--NAME"), ("../../etc", "etc"), ("a b\n\x1b", "a-b-"), ("", "model"), ("x" * 300, "x" * 120)],
)
def test_no_name_leads_out_of_the_cache(name: str, expected: str):
    assert file_name(name) == expected
