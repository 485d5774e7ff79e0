"""Whatever two keys do with files and libraries, neither ever sees anything of the other's."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from server.auth.keys import new_key
from server.auth.middleware import Rules
from tests.server.libraries.made import with_libraries
from tests.server.live import QUESTION, serving

ACTS: Final = ("upload", "make", "make with files", "add", "remove", "delete file", "delete library")
Act = tuple[int, str, int, int]
"""Whose key, what is done, and which file and library of all that there were (modulo their number)."""


class Client:
    """One key, and the ids that the server gave it."""

    def __init__(self, http: httpx2.AsyncClient, key: str) -> None:
        self._http, self._headers = http, {"authorization": f"Bearer {key}"}
        self.files: list[str] = []
        self.libraries: list[str] = []

    async def send(self, method: str, path: str, **options: Any) -> httpx2.Response:
        return await self._http.request(method, path, headers=self._headers, **options)

    async def ids(self, path: str) -> set[str]:
        return {one["id"] for one in (await self.send("GET", f"{path}?limit=100")).json()["data"]}

    async def do(self, act: str, file: str, library: str) -> None:
        """Try it, on one's own or on the other's."""
        match act:
            case "upload":
                self.files.append(
                    (await self.send("POST", "/v1/files", files={"file": ("a.md", b"# A\n\na")})).json()["id"]
                )
            case "make" | "make with files":
                body = {"file_ids": [file]} if act == "make with files" and file else {}
                made = await self.send("POST", "/v1/vector_stores", json=body)
                if made.status_code == 200:
                    self.libraries.append(made.json()["id"])
            case "add":
                await self.send("POST", f"/v1/vector_stores/{library}/files", json={"file_id": file})
            case "remove":
                await self.send("DELETE", f"/v1/vector_stores/{library}/files/{file}")
            case "delete file":
                await self.send("DELETE", f"/v1/files/{file}")
            case _:
                await self.send("DELETE", f"/v1/vector_stores/{library}?files=true&runs=true")


@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from(ACTS), st.integers(0, 9), st.integers(0, 9)),
        min_size=3,
        max_size=14,
    )
)
@pytest.mark.slow
def test_neither_key_ever_sees_or_changes_what_is_the_others(acts: list[Act]):
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(apart(Path(folder), acts))


async def apart(folder: Path, acts: list[Act]) -> None:
    service = with_libraries(folder)
    secrets, keys = zip(*(new_key(name) for name in ("one", "two")), strict=True)
    assert service.run_manager
    for key in keys:
        await service.run_manager.store.keys.add_key(key)
    async with (
        serving(service, Rules(key=SecretStr("server"))) as address,
        httpx2.AsyncClient(base_url=address, trust_env=False) as http,
    ):
        clients = [Client(http, secret.get_secret_value()) for secret in secrets]
        for whose, act, file, library in acts:
            before = await listed(clients[1 - whose])
            files = [id for client in clients for id in client.files]
            libraries = [id for client in clients for id in client.libraries]
            named = files[file % len(files)] if files else "", libraries[library % len(libraries)] if libraries else ""
            await clients[whose].do(act, *named)
            assert await listed(clients[1 - whose]) == before, "what one key does changes nothing of the other's"
        for one, other in (clients, clients[::-1]):
            await sees_nothing(one, other)


async def listed(client: Client) -> dict[str, set[str]]:
    libraries = await client.ids("/v1/vector_stores")
    inside = {id: await client.ids(f"/v1/vector_stores/{id}/files") for id in libraries}
    return {"files": await client.ids("/v1/files"), "libraries": libraries, **inside}


async def sees_nothing(one: Client, other: Client) -> None:
    theirs = set(other.files) | set(other.libraries)
    seen = await listed(one)
    assert not theirs & set[str]().union(*seen.values())
    for id in other.files:
        for path in (f"/v1/files/{id}", f"/v1/files/{id}/content", f"/v1/files/{id}/text"):
            assert (await one.send("GET", path)).status_code == 404
    for id in other.libraries:
        assert (await one.send("GET", f"/v1/vector_stores/{id}")).status_code == 404
        assert (await one.send("POST", f"/v1/vector_stores/{id}/search", json={"query": "a"})).status_code == 404
        body = {"model": "cairn", "messages": QUESTION, "libraries": [id]}
        assert (await one.send("POST", "/v1/chat/completions", json=body)).status_code == 404
