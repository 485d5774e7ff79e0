"""The page and the small addresses."""

import asyncio
import re

import httpx2

from agent import __version__
from tests.server.live import in_memory, make_service


def get(path: str) -> httpx2.Response:
    async def run() -> httpx2.Response:
        async with asyncio.timeout(10), in_memory(make_service(notices=("Only a script.",))) as client:
            return await client.get(path)

    return asyncio.run(run())


def test_the_page_asks_for_nothing_outside_and_holds_no_inline_code() -> None:
    page = get("/")
    assert page.headers["content-type"].startswith("text/html")
    named = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert named
    for path in named:
        assert path.startswith("/static/")
        assert get(path).status_code == 200
    assert not re.search(r"<style|style=|\son\w+=|<script[^>]*>[^<]", page.text)


def test_the_page_gets_what_it_may_offer() -> None:
    body = get("/api/ui").json()
    assert body["models"][0] == "cairn"
    assert body["notices"] == ["Only a script."]
    assert set(body["sources"]) == {"web", "kg", "all"}
    assert body["answer_models"] == []


def test_the_version_says_what_runs_and_what_to_know() -> None:
    body = get("/version").json()
    assert (body["version"], body["policy"], body["protocol"]) == (__version__, "scripted", "cairn")
    assert body["notices"] == ["Only a script."]


def test_the_schema_names_the_addresses() -> None:
    assert "/v1/chat/completions" in get("/openapi.json").json()["paths"]
