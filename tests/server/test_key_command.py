"""`cairn key`: a key is shown once, listed without its secret, and opens the server until it is revoked."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run
from agent.errors import SetupError
from agent.settings import CairnSettings
from server.auth.keys import Keys, digest
from server.launch import bind, rules_of
from server.store.database import Database
from server.store.keys import StoredKeys


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "runs.sqlite")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """The one JSON object that a command prints."""
    assert run(["key", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def admitted(store: str, secret: str) -> str:
    async def ask() -> str:
        database = Database(store)
        try:
            return await Keys(store=StoredKeys(database)).admit(f"Bearer {secret}")
        finally:
            await database.aclose()

    return asyncio.run(ask())


def test_a_key_is_shown_once_and_opens_the_server_until_it_is_revoked(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["key", "add", "laptop", "--requests-per-minute", "60", "--store", store]) == 0
    shown = capsys.readouterr()
    secret = shown.out.strip()
    assert secret not in shown.err
    id = secret.split("-")[1]
    assert admitted(store, secret) == id
    (listed,) = printed(capsys, "list", "--store", store)["keys"]
    assert (listed["id"], listed["name"], listed["revoked"]) == (id, "laptop", None)
    assert listed["limits"]["requests_per_minute"] == 60
    assert listed["today"] == {"tokens": 0, "searches": 0, "credits": 0.0}
    assert printed(capsys, "revoke", id, "--store", store) == {"id": id, "revoked": True}
    with pytest.raises(Exception, match="missing or wrong"):
        admitted(store, secret)
    assert run(["key", "list", "--store", store]) == 0
    assert "revoked 2" in capsys.readouterr().out
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert secret.encode() not in kept
    assert secret.split("-", 2)[2].encode() not in kept
    assert digest(secret).encode() in kept


def test_what_cannot_be_revoked_is_a_sentence(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["key", "revoke", "00000000", "--store", store]) == 1
    assert "cairn key list" in capsys.readouterr().err


def test_an_empty_list_names_the_way_to_a_key(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["key", "list", "--store", store]) == 0
    assert "cairn key add" in capsys.readouterr().err


def test_a_name_cannot_speak_to_the_terminal(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed(capsys, "add", "\x1b[31mred[bold]", "--store", store)
    assert run(["key", "list", "--store", store]) == 0
    assert "[31mred[bold]" in (out := capsys.readouterr().out)
    assert "\x1b" not in out


def test_keys_of_the_store_allow_other_machines(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    settings = CairnSettings.model_validate({"host": "0.0.0.0", "store": store})
    with pytest.raises(SetupError, match="cairn key add"):
        rules_of(settings)
    assert not Path(store).exists(), "looking makes no store"
    printed(capsys, "add", "laptop", "--store", store)
    assert rules_of(settings).hosts is None


def test_sources_alone_are_not_served_to_other_machines_by_keys_that_they_do_not_know(
    store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed(capsys, "add", "laptop", "--store", store)
    monkeypatch.setenv("CAIRN_STORE", store)
    with bind("0.0.0.0", 0) as taken:  # nothing could be served there, whatever the command finds
        port = str(taken.getsockname()[1])
        assert run(["serve", "--retrieval-only", "--host", "0.0.0.0", "--port", port]) == 1
    said = capsys.readouterr().err
    assert "CAIRN_SERVER_KEY" in said
    assert "--insecure" in said
    assert "cairn key add" not in said
