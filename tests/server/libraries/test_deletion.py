"""What is deleted while something goes on: runs, reports, searches and lists know of it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError

from agent.loop.agent import Agent
from agent.policies.base import Chunk, Sampling
from agent.policies.scripted import ScriptedContext, ScriptedPolicy
from agent.protocols import TextProtocol, protocol_named
from tests.server.libraries.made import FALLS, answered, client_of, ended, fetched, library_of, settled, with_libraries
from tests.server.libraries.test_libraries import ANSWER, PLAN, holding
from tests.server.live import QUESTION, FakeSource, make_service

SECRET = "Xylofarn"
TEXT = f"# The {SECRET}\n\nLina Orr is also called {SECRET} Qvist.\n".encode()


@dataclass(frozen=True)
class PausedPolicy(ScriptedPolicy):
    """Waits before one of its turns until the test lets it go on."""

    before: int = 0
    """The number of that turn."""
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> "PausedContext":
        return PausedContext(self, protocol.prompt_text(question, history=tuple(history), date=date))


class PausedContext(ScriptedContext):
    def __init__(self, policy: PausedPolicy, prompt: str) -> None:
        super().__init__(policy, prompt)
        self._paused = policy

    async def generate(self, sampling: Sampling, *, stop: Sequence[str], max_tokens: int) -> AsyncGenerator[Chunk]:
        if self._said == self._paused.before:
            self._paused.reached.set()
            await self._paused.goes_on.wait()
        async for chunk in super().generate(sampling, stop=stop, max_tokens=max_tokens):
            yield chunk


def paused(folder: Path, *, before: int) -> tuple[PausedPolicy, Any]:
    """A policy that waits before a turn, and a service of it that keeps runs and libraries below a folder."""
    policy = PausedPolicy((PLAN, ANSWER), before=before)
    agent = Agent(
        policy=policy, protocol=protocol_named("cairn"), sources={name: FakeSource(name) for name in ("web", "all")}
    )
    return policy, with_libraries(folder, make_service(agent=agent))


async def begun(client: AsyncOpenAI, how: str, library: str) -> Any:
    """Request an answer in one of the ways that there are; it comes when the policy goes on."""
    match how:
        case "chat":
            return await answered(client, libraries=[library])
        case "run":
            return await ended(client, "/api/runs", {"messages": QUESTION, "libraries": [library]})
        case "report":
            body = {"question": "Who is Lina Orr?", "sections": ["Lina Orr"], "libraries": [library]}
            return await ended(client, "/api/reports", body)
        case _:
            background = how == "background"
            return await client.responses.create(
                model="cairn", input="Who?", background=background, extra_body={"libraries": [library]}
            )


async def kept(client: AsyncOpenAI) -> list[Any]:
    """Every run and report that is stored."""
    return [*(await fetched(client, "/api/runs"))["runs"], *(await fetched(client, "/api/reports"))["reports"]]


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something holds."""
    while True:
        if await holds():
            return
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("how", "runs"), [*((how, True) for how in ("chat", "run", "response", "background", "report")), ("chat", False)]
)
def test_what_goes_on_while_its_library_is_deleted_with_its_runs_is_not_kept(tmp_path: Path, how: str, runs: bool):
    policy, service = paused(tmp_path, before=1)

    async def main() -> None:
        async with client_of(service) as client:
            library = await library_of(client, ("secret.md", TEXT))
            answer = asyncio.create_task(begun(client, how, library.id))
            await policy.reached.wait()
            await client.vector_stores.delete(library.id, extra_query={"files": True, "runs": runs})
            if runs:
                assert await kept(client) == [], "what was stored is gone at once"
            policy.goes_on.set()
            await asyncio.gather(answer, return_exceptions=True)

            async def stored() -> bool:
                return runs or any(row["state"] != "running" for row in await kept(client))

            await until(stored)
        async with client_of(with_libraries(tmp_path)) as client:  # everything is written down
            assert bool(await kept(client)) is not runs
        assert bool(holding(tmp_path, SECRET.encode())) is not runs

    asyncio.run(main())


@pytest.mark.parametrize("how", ["chat", "report"])
@pytest.mark.parametrize("whole", [True, False])
def test_a_search_that_begins_after_a_deletion_finds_nothing_of_it(tmp_path: Path, how: str, whole: bool):
    policy, service = paused(tmp_path, before=0)

    async def main() -> None:
        async with client_of(service) as client:
            library = await library_of(client, ("secret.md", TEXT), ("falls.md", FALLS))
            answer = asyncio.create_task(begun(client, how, library.id))
            await policy.reached.wait()
            if whole:
                await client.vector_stores.delete(library.id)
            else:
                await client.files.delete((await client.files.list(order="asc")).data[0].id)
                await settled(client, library.id)

                async def rebuilt() -> bool:
                    return not holding(tmp_path / "libraries", SECRET.encode())

                await until(rebuilt)
            policy.goes_on.set()
            said = await answer
            found = said.model_dump_json() if how == "chat" else str(said["report"])
            assert SECRET not in found
            if how == "chat":
                assert len(said.model_extra["search_results"]) == (0 if whole else 1)

    asyncio.run(main())


def test_a_list_whose_last_row_is_deleted_goes_on(tmp_path: Path):
    async def main() -> None:
        service = with_libraries(tmp_path)
        libraries = service.libraries
        assert libraries

        async def rebuilt() -> bool:
            """No row is left of what was taken out."""
            return not await libraries.rows.unfinished()

        async with client_of(service) as client:
            files = [(await client.files.create(file=(f"{n}.md", FALLS), purpose="user_data")).id for n in range(5)]
            stores = [(await client.vector_stores.create(name=f"{n}")).id for n in range(5)]
            await client.vector_stores.file_batches.create(stores[0], file_ids=files)
            library = (await settled(client, stores[0])).id
            taken_out: list[str] = []
            async for member in client.vector_stores.files.list(library, limit=2):
                await client.vector_stores.files.delete(member.id, vector_store_id=library)
                await until(rebuilt)
                taken_out.append(member.id)
            assert sorted(taken_out) == sorted(files)
            async for file in client.files.list(limit=2):
                await client.files.delete(file.id)
            async for store in client.vector_stores.list(limit=2, order="asc"):
                await client.vector_stores.delete(store.id)
            assert (await client.files.list()).data == []
            assert (await client.vector_stores.list()).data == []

    asyncio.run(main())


def test_a_list_cannot_go_on_behind_what_it_never_had(tmp_path: Path):
    async def main() -> None:
        async with client_of(with_libraries(tmp_path)) as client:
            library = await client.vector_stores.create(name="Films")
            for listed in (
                client.files.list(after="file-nope"),
                client.vector_stores.list(after="vs_nope"),
                client.vector_stores.files.list(library.id, after="file-nope"),
            ):
                with pytest.raises(BadRequestError, match="cannot continue") as error:
                    await listed
                assert error.value.param == "after"

    asyncio.run(main())


@pytest.mark.parametrize("before", [True, False])
def test_a_batch_for_a_library_that_is_deleted_meanwhile_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool
):
    service = with_libraries(tmp_path)
    libraries = service.libraries
    assert libraries
    add = libraries.batches.add

    async def while_deleted(id: str, library: str, files: Collection[str]) -> None:
        if before:
            await libraries.rows.delete_library(library)
        await add(id, library, files)
        await libraries.rows.delete_library(library)

    async def main() -> None:
        async with client_of(service) as client:
            file = (await client.files.create(file=("falls.md", FALLS), purpose="user_data")).id
            library = (await client.vector_stores.create(name="Films")).id
            monkeypatch.setattr(libraries.batches, "add", while_deleted)
            with pytest.raises(NotFoundError) as error:
                await client.vector_stores.file_batches.create(library, file_ids=[file])
            assert error.value.code == "library_not_found"

    asyncio.run(main())
