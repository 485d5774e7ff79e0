import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from pydantic import BaseModel

from agent.errors import SetupError
from tests.train.disk import full_disk
from train.safety.manifest import MANIFEST, hash_of, hashes_of, kept_manifest, machine, read_manifest
from train.safety.rules import Collapsed


class Recipe(BaseModel):
    kind: str = "rl"
    name: str = "test"
    rate: float = 0.1


def start(folder: Path) -> Path:
    (folder / "start").mkdir()
    (folder / "start" / "model.safetensors").write_bytes(b"weights")
    return folder / "start"


def test_a_run_leaves_what_it_was_made_from_and_what_came_out(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with kept_manifest(
        out, recipe=Recipe(), seeds={"rollouts": 7}, data={"questions": "ab"}, start=start(tmp_path)
    ) as manifest:
        assert read_manifest(out).state == "running"
        manifest.figures["reward"] = 0.75
    read = read_manifest(out)
    assert (read.kind, read.name, read.recipe["rate"], read.seeds) == ("rl", "test", 0.1, {"rollouts": 7})
    assert read.start == {"model.safetensors": hash_of(tmp_path / "start" / "model.safetensors")}
    assert (read.state, read.figures) == ("done", {"reward": 0.75})
    (session,) = read.sessions
    assert session.began <= session.ended
    assert {"cairn", "python", "numpy"} <= set(session.versions)
    assert session.machine.cores >= 1


def test_a_run_that_stops_itself_says_why(tmp_path: Path) -> None:
    with pytest.raises(Collapsed), kept_manifest(tmp_path, recipe=Recipe(), seeds={}):
        raise Collapsed("answers are no longer closed")
    session = read_manifest(tmp_path).sessions[-1]
    assert (session.state, session.why) == ("stopped", "answers are no longer closed")


def test_a_run_that_breaks_or_is_interrupted_says_so(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), kept_manifest(tmp_path, recipe=Recipe(), seeds={}):
        _ = 1 / 0
    assert read_manifest(tmp_path).sessions[-1].why.startswith("ZeroDivisionError")
    with pytest.raises(KeyboardInterrupt), kept_manifest(tmp_path, recipe=Recipe(), seeds={}):
        raise KeyboardInterrupt
    with kept_manifest(tmp_path, recipe=Recipe(), seeds={}) as manifest:
        manifest.interrupted()
    assert [session.state for session in read_manifest(tmp_path).sessions] == ["failed", "interrupted", "interrupted"]


@pytest.mark.slow
def test_a_killed_run_stays_readable_and_gets_another_session(tmp_path: Path) -> None:
    program = textwrap.dedent(f"""
        import os, signal
        from pathlib import Path
        from tests.train.safety.test_manifest import Recipe
        from train.safety.manifest import kept_manifest
        with kept_manifest(Path({str(tmp_path)!r}), recipe=Recipe(), seeds={{}}):
            os.kill(os.getpid(), signal.SIGKILL)
    """)
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", program], cwd=root, check=False)
    assert read_manifest(tmp_path).state == "running"
    with kept_manifest(tmp_path, recipe=Recipe(), seeds={}):
        pass
    assert [session.state for session in read_manifest(tmp_path).sessions] == ["running", "done"]


def test_the_sessions_of_an_earlier_manifest_are_read_under_their_previous_name(tmp_path: Path) -> None:
    with kept_manifest(tmp_path, recipe=Recipe(), seeds={}):
        pass
    said = json.loads((tmp_path / MANIFEST).read_text())
    said["sittings"] = said.pop("sessions")
    (tmp_path / MANIFEST).write_text(json.dumps(said))
    with kept_manifest(tmp_path, recipe=Recipe(), seeds={}):
        pass
    assert [session.state for session in read_manifest(tmp_path).sessions] == ["done", "done"]


def test_another_recipe_cannot_go_on_with_a_run(tmp_path: Path) -> None:
    with kept_manifest(tmp_path, recipe=Recipe(), seeds={}):
        pass
    with (
        pytest.raises(SetupError, match="another recipe"),
        kept_manifest(tmp_path, recipe=Recipe(rate=0.2), seeds={}),
    ):
        pass


def test_other_data_or_weights_cannot_go_on_with_a_run(tmp_path: Path) -> None:
    out, began = tmp_path / "run", start(tmp_path)
    (began / "README.md").write_text("# A card", encoding="utf-8")
    with kept_manifest(out, recipe=Recipe(), seeds={}, data={"questions": "ab"}, start=began):
        pass
    (began / "README.md").write_text("# Another card", encoding="utf-8")
    with kept_manifest(out, recipe=Recipe(), seeds={}, data={"questions": "ab", "more": "cd"}, start=began):
        pass
    (began / "model.safetensors").write_bytes(b"others")
    for changed, data in (("questions", "cd"), ("model.safetensors", "ab")):
        with (
            pytest.raises(SetupError, match=f"^{changed} has changed since the run began: put it back, or"),
            kept_manifest(out, recipe=Recipe(), seeds={}, data={"questions": data}, start=began),
        ):
            pass
    assert len(read_manifest(out).sessions) == 2


def test_another_recipe_may_begin_where_a_run_ended_before_it_made_anything(tmp_path: Path) -> None:
    (tmp_path / "traces.jsonl").touch()
    with pytest.raises(SetupError), kept_manifest(tmp_path, recipe=Recipe(), seeds={}):
        raise SetupError("the start is not there")
    with kept_manifest(tmp_path, recipe=Recipe(rate=0.2), seeds={}) as manifest:
        (tmp_path / "weights").write_text("some", encoding="utf-8")
        assert len(manifest.sessions) == 1
    with pytest.raises(SetupError, match="of another recipe"), kept_manifest(tmp_path, recipe=Recipe(), seeds={}):
        pass


def test_a_manifest_that_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"is .* the folder of a run"):
        read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text('{"version": 1', encoding="utf-8")
    with pytest.raises(SetupError, match="cannot be read"):
        read_manifest(tmp_path)


def test_the_hash_of_a_folder_changes_with_a_name_and_with_a_byte(tmp_path: Path) -> None:
    folder = start(tmp_path)
    before = hash_of(folder)
    assert list(hashes_of(folder)) == ["model.safetensors"]
    (folder / "model.safetensors").rename(folder / "other.safetensors")
    renamed = hash_of(folder)
    (folder / "other.safetensors").write_bytes(b"Weights")
    assert len({before, renamed, hash_of(folder)}) == 3


def test_the_machine_is_recorded_without_its_name(tmp_path: Path) -> None:
    import platform

    assert platform.node() not in json.dumps(machine().model_dump()) or not platform.node()


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with (
        pytest.raises(SetupError, match=r"cannot be written: .*; what was saved before is whole"),
        kept_manifest(tmp_path / "file" / "run", recipe=Recipe(), seeds={}),
    ):
        pass


def test_a_full_disk_leaves_the_manifest_that_was_there(tmp_path: Path) -> None:
    with kept_manifest(tmp_path, recipe=Recipe(), seeds={}) as manifest:
        manifest.figures["steps"] = 3.0
    with (
        pytest.raises(SetupError, match="File too large"),
        full_disk(100),
        kept_manifest(tmp_path, recipe=Recipe(), seeds={}),
    ):
        pass
    assert read_manifest(tmp_path).figures == {"steps": 3.0}
