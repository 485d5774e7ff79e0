"""A follow-up uses the searches of a run again only where the same documents are searched."""

from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

from tests.server.libraries.made import FALLS, ORR, ended, library_of, use, with_libraries
from tests.server.live import ANSWER, SEARCH, make_service


def test_searches_are_used_again_only_over_the_same_files(tmp_path: Path):
    async def work(client: AsyncOpenAI) -> None:
        library = await library_of(client, ("falls.md", FALLS), ("orr.html", ORR))
        orr, falls = [file.id for file in (await client.files.list()).data]
        same: dict[str, Any] = {"libraries": [library.id], "files": [falls]}
        first = await researched(client, **same)
        assert searched(first)[0]["passages"][0]["id"] == f"{falls}#1"

        async def reused(**wanted: Any) -> bool:
            again = await researched(client, follows=first["id"], **wanted)
            return searched(again)[0]["cached"] == "reused"

        assert await reused(**same)
        assert not await reused(**same | {"files": [orr]})
        assert not await reused(libraries=[library.id])
        assert not await reused(**same, sources=["web"])
        assert not await reused()
        same = {"libraries": [library.id]}
        first = await researched(client, **same)
        assert await reused(**same)
        await client.files.delete(falls)
        assert not await reused(**same)

    use(work, with_libraries(tmp_path, make_service((SEARCH, ANSWER))))


async def researched(client: AsyncOpenAI, **options: Any) -> Any:
    body = {"messages": [{"role": "user", "content": "Who directed Aurora Falls?"}], **options}
    return (await ended(client, "/api/runs", body))["trace"]


def searched(trace: Any) -> list[Any]:
    return [step for step in trace["steps"] if step["kind"] == "searched"]
