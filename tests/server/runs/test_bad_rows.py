"""Rows that an older or broken version wrote: they are listed with what can be read, and no other run suffers."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import httpx2

from tests.server.runs.replicas import all_events, client_of, keeping_service, start
from tests.server.runs.test_routes import run

DEEP = '{"id":' * 100_000
BROKEN = b"Aurora \xff"
FORMATS = ("", "?format=markdown", "?format=html", "?format=bibtex")
BAD: list[tuple[str, Any]] = [
    *(
        (column, value)
        for column in ("seconds", "rounds", "searches", "passages", "tokens", "credits", "usd")
        for value in ("nan", "", b"\xff", float("inf"), -(2**62), 2**62, 1.5)
    ),
    *((column, value) for column in ("created", "ended") for value in (float("inf"), 1e300, -1e300, "nonsense", b"1")),
    *(("state", value) for value in ("", "paused", b"\xff", 7)),
    *(("origin", value) for value in ("", "v9", b"\xff")),
    *(
        (column, value)
        for column in ("question", "answer", "conversation", "model", "protocol", "policy", "owner", "key_id")
        for value in (b"\xff", 7, 1e300, BROKEN)
    ),
    *(("trace", value) for value in ("", "null", "{", "{}", "[]", '{"id": NaN}', DEEP, b"\xff", 7, BROKEN)),
    *(("open_block", value) for value in ("", "null", "{", "7", '[["a"]]', '[["a", 7]]', DEEP, b"\xff")),
    *(("aside", value) for value in ("{", b"\xff")),
]


def write(location: Path, column: str, value: Any, id: str) -> None:
    with sqlite3.connect(location) as database:
        made = "CAST(? AS TEXT)" if value is BROKEN else "?"  # text that is no UTF-8
        database.execute(f"UPDATE runs SET {column} = {made} WHERE id = ?", (value, id))
    database.close()


async def three_runs(client: httpx2.AsyncClient) -> list[str]:
    ids = [await start(client) for _ in range(3)]
    for id in ids:
        await all_events(client, id)
    return ids


async def listed(client: httpx2.AsyncClient, **params: Any) -> list[str]:
    """Page by page, one run each."""
    ids: list[str] = []
    before: dict[str, str] = {}
    for _ in range(5):
        said = await client.get("/api/runs", params={"limit": 1} | params | before)
        assert said.status_code == 200, said.text
        page = said.json()
        ids += [card["id"] for card in page["runs"]]
        if page["next"] is None:
            return ids
        before = {"before": page["next"]}
    raise AssertionError(f"the pages do not end: {ids}")


def test_a_value_that_cannot_be_read_is_reported_for_its_run_alone(tmp_path: Path):
    """One server for all of the values: each of them takes the place of the one before.

    Of a column of the list, every value is exported in one of the formats, by turns.
    """
    location = tmp_path / "runs.sqlite"

    async def test() -> None:
        async with client_of(keeping_service(str(location))) as client:
            first, bad, last = await three_runs(client)
            good = sqlite3.connect(location)
            for at, (column, value) in enumerate(BAD):
                before = good.execute(f"SELECT {column} FROM runs WHERE id = ?", (bad,)).fetchone()[0]
                where = f"{column} = {value!r:.30}"
                await asyncio.to_thread(write, location, column, value, bad)
                page = await client.get("/api/runs")
                assert page.status_code == 200, (where, page.text)
                assert {card["id"] for card in page.json()["runs"]} == {first, bad, last}, where
                found = await client.get("/api/runs", params={"search": "Aurora"})
                assert found.status_code == 200, (where, found.text)
                assert {first, last} <= {card["id"] for card in found.json()["runs"]}, where
                if column in ("created", "ended", "state", "origin"):
                    assert set(await listed(client)) == {first, bad, last}, where
                formats = FORMATS if column in ("trace", "open_block") else (FORMATS[at % len(FORMATS)],)
                for path in ("", *(f"/export{form}" for form in formats)):
                    said = await client.get(f"/api/runs/{bad}{path}")
                    assert said.status_code in (200, 404, 409), (where, path, said.text)
                    if said.status_code == 409:
                        assert column == "trace", where
                        assert said.json()["error"]["code"] == "run_unreadable"
                assert (await client.get(f"/api/runs/{first}")).status_code == 200
                await asyncio.to_thread(write, location, column, before, bad)
            good.close()

    run(test())
