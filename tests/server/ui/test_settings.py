"""The settings on the page: what they show, what they check, what they save, and who may see them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from agent.settings import CairnSettings, load_settings, settings_of
from agent.settings.user_file import read_user_file, user_file, write_user_file
from server.auth.keys import MemoryKeys, new_key
from server.auth.middleware import Rules
from server.launch import make_service as launched
from server.ui.settings import SettingsEditor
from tests.server.live import in_memory, make_service

KEY = "tvly-secret-1"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def use(
    work: Callable[[httpx2.AsyncClient], Awaitable[Any]],
    settings: CairnSettings | None = None,
    *,
    rules: Rules | None = None,
    restart: Callable[[], None] | None = None,
) -> Any:
    async def run() -> Any:
        editor = SettingsEditor(settings or settings_of(world="test-v2"), restart=restart)
        async with in_memory(replace(make_service(), editor=editor), rules) as client:
            return await work(client)

    return asyncio.run(run())


def field(page: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in page["fields"] if one["name"] == name)


def test_a_key_is_saved_for_the_next_start_and_never_shown():
    async def work(client: httpx2.AsyncClient) -> None:
        before = (await client.get("/api/settings")).json()
        assert (field(before, "tavily_key")["is_set"], before["pending"]) == (False, False)
        saved = await client.post("/api/settings", json={"values": {"tavily_key": f" {KEY} "}})
        assert saved.status_code == 200, saved.text
        assert (field(saved.json(), "tavily_key")["is_set"], saved.json()["pending"]) == (True, True)
        assert KEY not in saved.text
        assert KEY not in (await client.get("/api/settings")).text

    use(work)
    assert read_user_file() == {"tavily_key": KEY}
    assert load_settings().tavily_key.get_secret_value() == KEY
    assert load_settings().is_live


def test_a_value_is_taken_back():
    async def work(client: httpx2.AsyncClient) -> None:
        await client.post("/api/settings", json={"values": {"answer_style": "sentence", "live": True}})
        page = (await client.post("/api/settings", json={"values": {"live": None, "answer_style": ""}})).json()
        assert not field(page, "live")["is_set"]

    use(work)
    assert read_user_file() == {}


def test_what_was_saved_can_be_changed_again_before_the_restart():
    write_user_file({"answer_style": "sentence"})

    async def work(client: httpx2.AsyncClient) -> None:
        for value in ("with_evidence", "short"):
            saved = await client.post("/api/settings", json={"values": {"answer_style": value}})
            assert saved.status_code == 200, saved.text
            assert (field(saved.json(), "answer_style")["value"], field(saved.json(), "answer_style")["fixed"]) == (
                value,
                False,
            )

    use(work, load_settings(None, world="test-v2"))
    assert read_user_file() == {"answer_style": "short"}


@pytest.mark.parametrize("saved", ["/tmp/", "./papers", "papers/./more/"])
def test_a_folder_that_was_saved_can_be_changed_again_after_the_restart(saved: str):
    write_user_file({"corpus": saved})

    async def work(client: httpx2.AsyncClient) -> None:
        page = (await client.get("/api/settings")).json()
        assert (field(page, "corpus")["value"], field(page, "corpus")["fixed"]) == (saved, False)

    use(work, load_settings())


def test_what_a_flag_says_is_shown_and_cannot_be_changed_here():
    async def work(client: httpx2.AsyncClient) -> None:
        page = (await client.get("/api/settings")).json()
        assert (field(page, "corpus")["value"], field(page, "corpus")["fixed"]) == ("docs", True)
        refused = await client.post("/api/settings", json={"values": {"corpus": "/tmp"}})
        assert refused.status_code == 400
        assert "change it there" in refused.json()["error"]["message"]

    use(work, settings_of(corpus="docs"))
    assert not user_file().exists()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"nonsense": "x"}, "no setting 'nonsense'"),
        ({"answer_style": "loud"}, "answer_style"),
        ({"base_url": "http://far.example/v1", "model": "m", "api_key": "sk-1"}, "unencrypted"),
    ],
)
def test_what_cannot_be_is_refused_and_not_saved(values: dict[str, str], said: str):
    async def work(client: httpx2.AsyncClient) -> str:
        refused = await client.post("/api/settings", json={"values": values})
        assert refused.status_code == 400
        return refused.json()["error"]["message"]

    assert said in use(work)
    assert not user_file().exists()


def test_the_doctor_looks_at_values_that_are_not_saved():
    async def work(client: httpx2.AsyncClient) -> list[dict[str, Any]]:
        body = {"values": {"base_url": "http://127.0.0.1:9/v1", "model": "m", "corpus": "/nowhere/at/all"}}
        return (await client.post("/api/settings/check", json=body)).json()["checks"]

    found = {check["name"]: check for check in use(work)}
    assert (found["policy"]["state"], found["policy"]["fields"]) == ("bad", ["base_url"])
    assert (found["corpus"]["state"], found["corpus"]["fields"]) == ("bad", ["corpus"])
    assert "/nowhere/at/all" in found["corpus"]["says"]
    assert not user_file().exists()


def test_no_client_with_a_key_of_its_own_sees_or_changes_them():
    secret, kept = new_key("client")
    keys = MemoryKeys()

    async def work(client: httpx2.AsyncClient) -> None:
        await keys.add_key(kept)
        own = {"authorization": f"Bearer {secret.get_secret_value()}"}
        assert (await client.get("/api/settings", headers=own)).status_code == 403
        for path in ("/api/settings", "/api/settings/check"):
            assert (await client.post(path, json={"values": {}}, headers=own)).status_code == 403
        assert (await client.post("/api/settings/restart", headers=own)).status_code == 403
        assert (await client.get("/api/ui", headers=own)).json()["settings"] is False
        operator = {"authorization": "Bearer server"}
        assert (await client.get("/api/settings", headers=operator)).status_code == 200
        assert (await client.get("/api/settings")).status_code == 401

    use(work, rules=Rules(key=SecretStr("server"), keys=keys))


def test_a_server_that_other_machines_reach_has_none():
    service = launched(settings_of(host="0.0.0.0", insecure=True, store="memory", world="test-v2"))
    assert service.editor is None
    asyncio.run(service.aclose())


def test_a_restart_ends_the_server_that_can_begin_again():
    ended: list[bool] = []

    async def work(client: httpx2.AsyncClient) -> int:
        return (await client.post("/api/settings/restart")).status_code

    assert use(work, restart=lambda: ended.append(True)) == 202
    assert ended == [True]
    assert use(work) == 409
