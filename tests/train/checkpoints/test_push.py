"""A checkpoint goes to a hub, and what keeps it from there is a sentence with the fix."""

import json
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run as cairn
from agent.errors import SetupError
from agent.policies.checkpoint import open_checkpoint
from agent.protocols import protocol_names
from agent.settings import load_settings
from tests.shipped import CT2, HUB, NAME, both_forms
from tests.train.hub import Hub, running

library: Any = pytest.importorskip("huggingface_hub")
constants: Any = pytest.importorskip("huggingface_hub.constants")
pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning"),  # the library's, of how it sends large files
]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[Hub]:
    """The only hub that the library knows; large files go there by LFS, not by Xet, whose server is not in this house."""
    monkeypatch.setenv("HF_TOKEN", "hf_ada")
    known = {"HF_HUB_OFFLINE": False, "HF_HUB_DISABLE_XET": True, "HF_TOKEN_PATH": str(tmp_path / "no token")}
    for name, value in known.items():
        monkeypatch.setattr(constants, name, value)
    with running() as there:
        try:
            yield there
        finally:
            library.close_session()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A run's folder, with what no hub needs."""
    folder = both_forms(tmp_path / "run")
    for name in ("state.pt", "log.jsonl", ".env"):
        (folder / name).write_text("x", encoding="utf-8")
        (folder / "hub" / name).write_text("x", encoding="utf-8")
    return folder


def push(folder: Path, hub: Hub, *more: str, to: str = "ada/tiny") -> int:
    return cairn(["checkpoint", "push", str(folder), "--to", to, "--hub", hub.url, *more])


def downloaded(hub: Hub, name: str, folder: Path) -> Path:
    for path, content in hub.repositories[name].files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def test_a_checkpoint_is_pushed_in_both_forms_with_its_card_and_nothing_else(
    hub: Hub, checkpoint: Path, capsys: pytest.CaptureFixture[str]
):
    assert push(checkpoint, hub, "--message", "First") == 0
    assert f"pushed: {hub.url}/ada/tiny (" in capsys.readouterr().out
    (repository,) = hub.repositories.values()
    assert (repository.private, repository.commits) == (False, ["First"])
    assert set(repository.files) == {
        *("README.md", "cairn.json", "config.json", "generation_config.json", "model.safetensors"),
        *("tokenizer.json", "tokenizer_config.json"),
        *(f"ct2/{path.name}" for path in CT2.iterdir()),
    }
    assert repository.files["model.safetensors"] == (HUB / "model.safetensors").read_bytes()
    assert sum(request.startswith("PUT /lfs/") for request in hub.requests) == 2


def test_a_downloaded_checkpoint_serves_itself(hub: Hub, checkpoint: Path, tmp_path: Path):
    assert push(checkpoint, hub) == 0
    folder = downloaded(hub, "ada/tiny", tmp_path / "downloaded")
    settings = load_settings(model=str(folder))
    assert (settings.policy, sorted(settings.protocols)) == ("embedded", sorted(protocol_names()))
    assert settings.checkpoint is not None
    assert open_checkpoint(settings.checkpoint).manifest.name == NAME
    assert load_settings(model=str(folder), policy="transformers").model == str(folder)


def test_the_card_gets_the_metadata_that_a_hub_wants_and_keeps_its_own(hub: Hub, checkpoint: Path):
    assert push(checkpoint, hub) == 0
    card = hub.repositories["ada/tiny"].files["README.md"].decode()
    assert card.startswith("---\nlicense: apache-2.0\nlibrary_name: transformers\n")
    assert card.endswith((CT2.parent / "README.md").read_text(encoding="utf-8"))
    own = "---\nlicense: mit\n---\n# Mine\n"
    (checkpoint / "README.md").write_text(own, encoding="utf-8")
    assert push(checkpoint, hub, "--update") == 0
    assert hub.repositories["ada/tiny"].files["README.md"].decode() == own


def test_an_exported_checkpoint_alone_stands_at_the_top(hub: Hub, checkpoint: Path, tmp_path: Path):
    shutil.rmtree(checkpoint / "hub")
    assert push(checkpoint, hub) == 0
    folder = downloaded(hub, "ada/tiny", tmp_path / "downloaded")
    assert load_settings(model=str(folder)).checkpoint == folder


def test_a_private_repository_is_one(hub: Hub, checkpoint: Path):
    assert push(checkpoint, hub, "--private") == 0
    assert hub.repositories["ada/tiny"].private


def test_a_new_version_uploads_only_what_changed(hub: Hub, checkpoint: Path):
    assert push(checkpoint, hub) == 0
    hub.requests.clear()
    (checkpoint / "README.md").write_text("# Second", encoding="utf-8")
    assert push(checkpoint, hub, "--update") == 0
    assert not any(request.startswith("PUT") for request in hub.requests)
    assert hub.repositories["ada/tiny"].commits == ["Put the checkpoint here", "Put a new version here"]
    assert push(checkpoint, hub, "--update") == 0  # nothing changed: nothing is committed
    assert len(hub.repositories["ada/tiny"].commits) == 2


# What goes wrong


def refused(folder: Path, hub: Hub, capsys: pytest.CaptureFixture[str], *more: str, to: str = "ada/tiny") -> str:
    capsys.readouterr()
    assert push(folder, hub, *more, to=to) == 1
    printed = capsys.readouterr()
    assert not printed.out
    return " ".join(printed.err.split())


def test_without_a_token_nothing_is_requested(
    hub: Hub, checkpoint: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("HF_TOKEN")
    assert "no token for the hub; log in with `hf auth login`, or set HF_TOKEN" in refused(checkpoint, hub, capsys)
    assert not hub.requests


@pytest.mark.parametrize(
    ("token", "to", "says"),
    [
        ("hf_unknown", "ada/tiny", "rejects the token; log in again"),
        ("hf_reads", "ada/tiny", "the token may not write to ada/tiny; make one that may at http"),
        ("hf_ada", "bob/tiny", "the token may not write to bob/tiny"),
        ("hf_ada", "tiny", "'tiny' is not a full repository name; write USER/NAME"),
        ("hf_ada", "ada/ti ny", "ada/ti ny could not be pushed: "),
    ],
)
def test_a_token_or_a_name_that_will_not_do_is_refused(
    hub: Hub,
    checkpoint: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    token: str,
    to: str,
    says: str,
):
    monkeypatch.setenv("HF_TOKEN", token)
    assert says in refused(checkpoint, hub, capsys, to=to)
    assert not hub.repositories


def test_a_name_that_is_taken_is_refused_with_both_ways_on(
    hub: Hub, checkpoint: Path, capsys: pytest.CaptureFixture[str]
):
    assert push(checkpoint, hub) == 0
    error = refused(checkpoint, hub, capsys)
    assert "there is a repository ada/tiny already; --update puts a new version there, or choose another name" in error
    assert len(hub.repositories["ada/tiny"].commits) == 1


@pytest.mark.parametrize("private", [True, False])
def test_a_repository_of_another_owner_has_a_sentence_of_its_own(
    hub: Hub,
    checkpoint: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    private: bool,
):
    assert push(checkpoint, hub, *(["--private"] if private else [])) == 0
    monkeypatch.setenv("HF_TOKEN", "hf_bob")
    error = refused(checkpoint, hub, capsys, "--update")
    assert ("it may be private, or not there yet" if private else "the token may not write to ada/tiny") in error


def test_a_hub_without_room_is_reported_in_its_words(hub: Hub, checkpoint: Path, capsys: pytest.CaptureFixture[str]):
    hub.full = True
    assert "no room is left" in refused(checkpoint, hub, capsys)


def test_a_hub_that_cannot_be_reached_is_reported(hub: Hub, checkpoint: Path, capsys: pytest.CaptureFixture[str]):
    hub.url = "http://127.0.0.1:1"
    assert "the hub http://127.0.0.1:1 cannot be reached" in refused(checkpoint, hub, capsys)


def test_a_process_that_is_kept_offline_is_reported(
    hub: Hub, checkpoint: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    library.close_session()
    assert "HF_HUB_OFFLINE keeps this process from the hub; unset it" in refused(checkpoint, hub, capsys)


@pytest.mark.parametrize(
    ("gone", "says"),
    [
        ("README.md", "has no card (README.md)"),
        ("hub/tokenizer.json", "lacks tokenizer.json"),
        ("*/cairn.json", "does not say which protocols"),
    ],
)
def test_a_folder_that_lacks_something_is_refused_before_anything_is_requested(
    hub: Hub, checkpoint: Path, capsys: pytest.CaptureFixture[str], gone: str, says: str
):
    for file in list(checkpoint.glob(gone)):
        file.unlink()
    assert says in refused(checkpoint, hub, capsys)
    assert not hub.requests


def test_a_card_whose_metadata_is_broken_is_refused(hub: Hub, checkpoint: Path):
    from train.checkpoints.push import push as push_checkpoint

    (checkpoint / "README.md").write_text("---\nno colon\n---\n", encoding="utf-8")
    with pytest.raises(SetupError, match="the metadata is no YAML"):
        push_checkpoint(checkpoint, "ada/tiny", hub=hub.url)


def test_the_manifest_of_the_hubs_form_says_what_the_exported_one_does(hub: Hub, checkpoint: Path):
    assert push(checkpoint, hub) == 0
    files = hub.repositories["ada/tiny"].files
    top, below = json.loads(files["cairn.json"]), json.loads(files["ct2/cairn.json"])
    assert top == {name: value for name, value in below.items() if name != "files"}
