"""Batches of files, and filters by the attributes of files, through OpenAI's own client."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError
from pydantic import SecretStr, TypeAdapter, ValidationError

from server.auth.keys import new_key
from server.auth.middleware import Rules
from server.libraries.filters import MOST_DEPTH, MOST_FILTERS, FileFilter
from tests.server.libraries.made import FALLS, ORR, client_of, fetched, library_of, settled, use, with_libraries
from tests.server.live import make_service

PLAN = "<search>A: Lina Orr (web)</search>"
ANSWER = "<evidence>\n- It was directed by Lina Orr. [1]\n</evidence>\n<answer>Lina Orr</answer>"
FILTER: TypeAdapter[Any] = TypeAdapter(FileFilter)


async def uploaded(client: AsyncOpenAI, *files: tuple[str, bytes]) -> list[str]:
    return [(await client.files.create(file=file, purpose="user_data")).id for file in files]


async def found(client: AsyncOpenAI, library: str, filters: Any = None) -> set[str]:
    """The names of the files in which a search finds something."""
    options = {"filters": filters} if filters else {}
    hits = await client.vector_stores.search(library, query="Lina Orr", max_num_results=20, **options)
    return {hit.filename for hit in hits.data}


def compared(type: str, key: str, value: Any) -> dict[str, Any]:
    return {"type": type, "key": key, "value": value}


def test_a_batch_puts_files_into_a_library_and_says_how_each_came_out(tmp_path: Path):
    async def work(client: AsyncOpenAI) -> None:
        library = (await client.vector_stores.create(name="Films")).id
        ids = await uploaded(client, ("falls.md", FALLS), ("orr.html", ORR), ("broken.pdf", b"%PDF-1.4 nothing"))
        batches = client.vector_stores.file_batches
        made = await batches.create(library, file_ids=ids)
        assert (made.object, made.vector_store_id, made.file_counts.total) == ("vector_store.files_batch", library, 3)
        done = await batches.poll(made.id, vector_store_id=library, poll_interval_ms=50)
        assert (done.status, done.file_counts.completed, done.file_counts.failed) == ("completed", 2, 1)
        assert {file.id async for file in batches.list_files(made.id, vector_store_id=library, limit=2)} == {*ids}
        failed = [file async for file in batches.list_files(made.id, vector_store_id=library, filter="failed")]
        assert [file.id for file in failed] == ids[2:]
        sent = await batches.upload_and_poll(library, files=[("more.md", b"# More\n\nmore")], poll_interval_ms=50)
        assert (sent.status, sent.file_counts.completed) == ("completed", 1)
        assert (await client.vector_stores.retrieve(library)).file_counts.total == 4
        await client.vector_stores.delete(library)
        with pytest.raises(NotFoundError):
            await batches.retrieve(made.id, vector_store_id=library)

    use(work, with_libraries(tmp_path))


def test_what_of_a_cancelled_batch_waits_is_not_indexed(tmp_path: Path):
    async def work(client: AsyncOpenAI) -> None:
        library = (await library_of(client, ("falls.md", FALLS))).id
        (orr,) = await uploaded(client, ("orr.html", ORR))
        batches = client.vector_stores.file_batches
        made = await batches.create(library, file_ids=[orr])
        cancelled = await batches.cancel(made.id, vector_store_id=library)
        assert (cancelled.status, cancelled.file_counts.cancelled) == ("cancelled", 1)
        (other,) = await uploaded(client, ("more.md", b"# More\n\nLina Orr, too."))
        await client.vector_stores.files.create(library, file_id=other)
        there = await settled(client, library)
        assert (there.file_counts.completed, there.file_counts.cancelled) == (2, 1)
        assert await found(client, library) == {"falls.md", "more.md"}
        (file,) = [file async for file in client.vector_stores.files.list(library, filter="cancelled")]
        assert (file.id, file.status) == (orr, "cancelled")
        await client.vector_stores.files.create(library, file_id=orr)
        await settled(client, library)
        assert await found(client, library) == {"falls.md", "more.md", "orr.html"}, "it may be put there again"

    use(work, with_libraries(tmp_path))


def test_a_search_finds_only_files_whose_attributes_fit(tmp_path: Path):
    async def work(client: AsyncOpenAI) -> None:
        library = (await client.vector_stores.create(name="Films")).id
        falls, orr, bare = await uploaded(client, ("falls.md", FALLS), ("orr.html", ORR), ("bare.md", b"Lina Orr."))
        files: Any = [
            {"file_id": falls, "attributes": {"kind": "film", "year": 1962, "seen": True}},
            {"file_id": orr, "attributes": {"kind": "person", "year": 1931.5, "seen": False}},
            {"file_id": bare},
        ]
        await client.vector_stores.file_batches.create_and_poll(library, files=files, poll_interval_ms=50)
        film, person = compared("eq", "kind", "film"), compared("gte", "year", 1931.5)
        for filters, names in (
            (film, {"falls.md"}),
            (compared("ne", "kind", "film"), {"orr.html", "bare.md"}),
            (compared("gt", "year", 1931.5), {"falls.md"}),
            (person, {"falls.md", "orr.html"}),
            (compared("lt", "year", 1962), {"orr.html"}),
            (compared("lte", "year", 1962), {"falls.md", "orr.html"}),
            (compared("eq", "seen", True), {"falls.md"}),
            (compared("eq", "seen", 1), set[str]()),
            (compared("gt", "kind", "film"), {"orr.html"}),
            (compared("gt", "kind", 3), set[str]()),
            (compared("in", "kind", ["person", "place"]), {"orr.html"}),
            (compared("nin", "kind", ["person", "place"]), {"falls.md", "bare.md"}),
            ({"type": "and", "filters": [film, person]}, {"falls.md"}),
            ({"type": "and", "filters": [film, compared("eq", "seen", False)]}, set[str]()),
            ({"type": "or", "filters": [film, {"type": "and", "filters": [person]}]}, {"falls.md", "orr.html"}),
        ):
            assert await found(client, library, filters) == names, filters
        hits = await client.vector_stores.search(library, query="Lina Orr", filters=film)  # pyright: ignore[reportArgumentType]
        assert hits.data[0].attributes == {"kind": "film", "year": 1962, "seen": True}
        changed = await client.vector_stores.files.update(bare, vector_store_id=library, attributes={"kind": "film"})
        assert changed.attributes == {"kind": "film"}
        assert await found(client, library, film) == {"falls.md", "bare.md"}
        with pytest.raises(BadRequestError, match="filters"):
            await found(client, library, compared("about", "kind", "film"))

    use(work, with_libraries(tmp_path))


def test_the_file_search_of_a_response_searches_files_that_fit_its_filter(tmp_path: Path):
    async def work(client: AsyncOpenAI) -> None:
        library = (await client.vector_stores.create(name="Films")).id
        falls, orr = await uploaded(client, ("falls.md", FALLS), ("orr.html", ORR))
        files: Any = [{"file_id": id, "attributes": {"year": year}} for id, year in ((falls, 1962), (orr, 1931))]
        await client.vector_stores.file_batches.create_and_poll(library, files=files, poll_interval_ms=50)

        async def searched(*filters: Any) -> set[str]:
            tools: Any = [
                {"type": "file_search", "vector_store_ids": [library]} | ({"filters": one} if one else {})
                for one in filters
            ]
            said = await client.responses.create(model="cairn", input="Who is Lina Orr?", tools=tools)
            trace = (await fetched(client, f"/api/runs/{said.id.removeprefix('resp_')}"))["trace"]
            return {passage["id"].partition("#")[0] for passage in trace["passages"]}

        assert await searched(None) == {falls, orr}
        assert await searched(compared("gt", "year", 1950)) == {falls}
        assert await searched(compared("gt", "year", 1950), compared("lt", "year", 1950)) == {falls, orr}
        assert await searched(compared("gt", "year", 1950), None) == {falls, orr}
        assert await searched(compared("gt", "year", 2000)) == set()

    use(work, with_libraries(tmp_path, make_service((PLAN, ANSWER))))


def test_a_batch_of_another_key_is_not_there(tmp_path: Path):
    service = with_libraries(tmp_path)
    (our_key, ours), (their_key, theirs) = new_key("ours"), new_key("theirs")

    async def run() -> None:
        assert service.run_manager
        for key in (ours, theirs):
            await service.run_manager.store.keys.add_key(key)
        async with client_of(service, Rules(key=SecretStr("server")), key=our_key.get_secret_value()) as client:
            other = client.with_options(api_key=their_key.get_secret_value())
            library = (await client.vector_stores.create(name="ours")).id
            (file,) = await uploaded(client, ("falls.md", FALLS))
            batch = (await client.vector_stores.file_batches.create(library, file_ids=[file])).id
            mine = (await other.vector_stores.create(name="theirs")).id
            for attempt in (
                lambda: other.vector_stores.file_batches.create(library, file_ids=[file]),
                lambda: other.vector_stores.file_batches.create(mine, file_ids=[file]),
                lambda: other.vector_stores.file_batches.retrieve(batch, vector_store_id=library),
                lambda: other.vector_stores.file_batches.retrieve(batch, vector_store_id=mine),
                lambda: other.vector_stores.file_batches.cancel(batch, vector_store_id=library),
                lambda: other.vector_stores.files.update(file, vector_store_id=library, attributes={"a": "b"}),
            ):
                with pytest.raises(NotFoundError):
                    await attempt()

    asyncio.run(run())


@pytest.mark.parametrize(
    "wrong",
    [
        compared("eq", "kind", ["film"]),
        compared("in", "kind", "film"),
        compared("gt", "seen", True),
        compared("eq", "kind", None),
        compared("eq", "k" * 65, "film"),
        {"type": "and", "filters": []},
        {"type": "or", "filters": [compared("eq", "a", 1)] * (MOST_FILTERS + 1)},
        "film",
    ],
)
def test_a_filter_that_means_nothing_is_refused(wrong: Any):
    with pytest.raises(ValidationError):
        FILTER.validate_python(wrong)


def test_a_filter_of_any_depth_is_refused_without_harm():
    tree: Any = compared("eq", "a", 1)
    for _ in range(MOST_DEPTH - 1):
        tree = {"type": "and", "filters": [tree]}
    assert FILTER.validate_python(tree).fits({"a": 1})
    for _ in range(100_000):
        tree = {"type": "and", "filters": [tree]}
    with pytest.raises(ValidationError, match="nested more than 8 deep"):
        FILTER.validate_python(tree)
