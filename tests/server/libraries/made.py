"""A server with libraries on a free port, the OpenAI client for it, and documents to upload."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

from server.auth.middleware import Rules
from server.chat.service import Service
from server.libraries.folder import LibraryFolder
from server.libraries.manager import LibraryManager, Quota
from server.runs.manager import RunManager
from server.store import RunStore
from server.store.database import Database
from tests.server.live import QUESTION, make_service, serving

FALLS = (
    b"# Aurora Falls\n\nAurora Falls is a film. It was directed by Lina Orr.\n\n## Cast\n\nIvo Benn plays the miller.\n"
)
ORR = b"<html><head><title>Lina Orr</title></head><body><h1>Lina Orr</h1><p>Lina Orr was born in Trieste in 1931.</p>"

Use = Callable[[AsyncOpenAI], Awaitable[Any]]


def with_libraries(
    folder: Path, service: Service | None = None, *, store: str = "", quota: Quota | None = None
) -> Service:
    """A service that keeps runs and libraries below a folder."""
    service = service or make_service()
    runs = RunManager(RunStore(Database(store or str(folder / "runs.sqlite"))))
    libraries = LibraryManager(runs.store, LibraryFolder(folder / "libraries"), quota=quota)
    return replace(service, run_manager=runs, keep=runs.keep, libraries=libraries)


@asynccontextmanager
async def client_of(service: Service, rules: Rules | None = None, *, key: str = "none") -> AsyncGenerator[AsyncOpenAI]:
    async with (
        serving(service, rules) as address,
        AsyncOpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0) as client,
    ):
        yield client


def use(work: Use, service: Service, rules: Rules | None = None, *, key: str = "none") -> Any:
    """Serve, and do something with a client."""

    async def run() -> Any:
        async with client_of(service, rules, key=key) as client:
            return await work(client)

    return asyncio.run(run())


async def library_of(client: AsyncOpenAI, *files: tuple[str, bytes], name: str = "Films") -> Any:
    """Upload files into a new library, and wait until they are indexed."""
    uploaded = [await client.files.create(file=file, purpose="user_data") for file in files]
    made = await client.vector_stores.create(name=name, file_ids=[file.id for file in uploaded])
    return await settled(client, made.id)


async def settled(client: AsyncOpenAI, id: str) -> Any:
    """The library when nothing of it is being indexed any more."""
    while True:
        library = await client.vector_stores.retrieve(id)
        if library.status == "completed":
            return library
        await asyncio.sleep(0.1)


async def answered(client: AsyncOpenAI, **options: Any) -> Any:
    """A completion of one question, with options of ours."""
    completions: Any = client.chat.completions
    return await completions.create(model="cairn", messages=QUESTION, extra_body=options)


async def ended(client: AsyncOpenAI, path: str, body: Any) -> Any:
    """Start a run or a report, and give it as it is when it has ended."""
    root = str(client.base_url).removesuffix("/v1/")
    made = (await client._client.post(f"{root}{path}", json=body)).json()  # pyright: ignore[reportPrivateUsage]
    while True:
        found = await fetched(client, f"{path}/{made['id']}")
        if found["state"] != "running":
            return found
        await asyncio.sleep(0.05)


async def fetched(client: AsyncOpenAI, path: str) -> Any:
    """What the server says at an address, as JSON."""
    root = str(client.base_url).removesuffix("/v1/")
    said = await client._client.get(f"{root}{path}")  # pyright: ignore[reportPrivateUsage]
    return said.json()
