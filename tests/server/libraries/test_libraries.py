"""Files and libraries through OpenAI's own client, over a real server with a real index."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openai import APIStatusError, AsyncOpenAI, BadRequestError, NotFoundError, PermissionDeniedError, RateLimitError
from pydantic import SecretStr

from agent.trace import Trace
from server.auth.keys import KeyLimits, new_key
from server.auth.middleware import Rules
from server.libraries.manager import Quota
from server.store.database import Database
from server.store.keys import StoredKeys
from tests.agent.sources.extract.files import make_pdf
from tests.server.libraries.made import (
    FALLS,
    ORR,
    answered,
    client_of,
    ended,
    fetched,
    library_of,
    settled,
    use,
    with_libraries,
)
from tests.server.live import make_service

PLAN = "<search>A: Lina Orr (web)</search>"
ANSWER = "<evidence>\n- It was directed by Lina Orr. [1]\n</evidence>\n<answer>Lina Orr</answer>"


def test_a_file_is_kept_as_it_was_sent_and_listed(tmp_path: Path):
    async def work(client: AsyncOpenAI) -> None:
        made = await client.files.create(file=("notes/falls.md", FALLS), purpose="user_data")
        assert (made.filename, made.bytes, made.purpose) == ("notes/falls.md", len(FALLS), "user_data")
        assert (await client.files.content(made.id)).content == FALLS
        other = await client.files.create(file=("orr.html", ORR), purpose="assistants")
        for limit in (1, 10_000):
            assert [file.id async for file in client.files.list(limit=limit)] == [other.id, made.id]
        assert [file.id async for file in client.files.list(purpose="assistants")] == [other.id]
        assert (await client.files.retrieve(made.id)).id == made.id
        await client.files.delete(made.id)
        with pytest.raises(NotFoundError, match="no file"):
            await client.files.retrieve(made.id)

    use(work, with_libraries(tmp_path))
    assert len(list((tmp_path / "libraries" / "files").iterdir())) == 1, "the bytes of a deleted file are gone"


def test_a_library_is_indexed_in_the_background_and_searched(tmp_path: Path):
    async def work(client: AsyncOpenAI) -> None:
        library = await library_of(client, ("falls.md", FALLS), ("orr.html", ORR), ("broken.pdf", b"%PDF-1.4 nothing"))
        assert (library.file_counts.completed, library.file_counts.failed) == (2, 1)
        assert library.usage_bytes == len(FALLS) + len(ORR) + 16
        found = await client.vector_stores.search(library.id, query="Who directed Aurora Falls?", max_num_results=2)
        first = found.data[0]
        assert first.filename == "falls.md"
        assert "directed by Lina Orr" in first.content[0].text
        queries = ["Who plays the miller?", "Where was Lina Orr born?"]
        both = await client.vector_stores.search(library.id, query=queries, max_num_results=2)
        assert {hit.filename for hit in both.data} == {"falls.md", "orr.html"}
        assert [hit.score for hit in both.data] == sorted((hit.score for hit in both.data), reverse=True)
        assert (both.model_extra or {})["search_query"] == queries
        failed = [file async for file in client.vector_stores.files.list(library.id, filter="failed")]
        assert failed[0].last_error
        assert "PDF" in failed[0].last_error.message

    use(work, with_libraries(tmp_path))


def test_what_is_taken_out_or_deleted_is_not_found_any_more(tmp_path: Path):
    async def work(client: AsyncOpenAI) -> None:
        library = await library_of(client, ("falls.md", FALLS), ("orr.html", ORR))
        falls, orr = [file.id async for file in client.vector_stores.files.list(library.id, order="asc")]

        async def names(query: str) -> set[str]:
            return {hit.filename for hit in (await client.vector_stores.search(library.id, query=query)).data}

        assert await names("Lina Orr") == {"falls.md", "orr.html"}
        await client.vector_stores.files.delete(orr, vector_store_id=library.id)
        assert await names("Lina Orr") == {"falls.md"}, "at once, before the index is built again"
        await client.files.delete(falls)
        assert await names("Lina Orr") == set()
        await settled(client, library.id)
        await client.vector_stores.files.create(library.id, file_id=orr)
        await settled(client, library.id)
        assert await names("Lina Orr") == {"orr.html"}

    use(work, with_libraries(tmp_path))


def test_an_answer_comes_from_the_named_library_or_file(tmp_path: Path):
    traces: list[Trace] = []

    async def work(client: AsyncOpenAI) -> None:
        library = await library_of(client, ("falls.md", FALLS), ("orr.html", ORR))
        falls, orr = [file.id async for file in client.vector_stores.files.list(library.id, order="asc")]

        async def passages(**options: Any) -> set[str]:
            got = await answered(client, **options)
            return {result["id"].partition("#")[0] for result in got.model_extra["search_results"]}

        assert await passages(libraries=[library.id]) == {falls, orr}
        assert await passages(libraries=["all"]) == {falls, orr}
        assert await passages(files=[falls]) == {falls}
        assert [trace.files for trace in traces] == [(), (), (falls,)]
        mixed = await passages(libraries=[library.id], sources=["all"])
        assert falls in mixed
        assert "web:Lina Orr" in mixed, "the server's own sources, where they are named too"
        assert await passages() == {"web:Lina Orr"}
        with pytest.raises(NotFoundError, match="no library"):
            await passages(libraries=["vs_" + "0" * 24])
        for wrong in ("file-" + "0" * 24, "nonsense"):
            with pytest.raises(NotFoundError, match="no file") as unknown:
                await passages(files=[falls, wrong])
            assert (unknown.value.code, unknown.value.param) == ("file_not_found", "files")
        empty = await client.vector_stores.create(name="empty")
        with pytest.raises(BadRequestError, match="put it into one first"):
            await passages(libraries=[empty.id], files=[falls])

    use(work, replace(with_libraries(tmp_path, make_service((PLAN, ANSWER))), keep=traces.append))


def test_the_file_search_of_a_response_names_libraries(tmp_path: Path):
    async def work(client: AsyncOpenAI) -> None:
        library = await library_of(client, ("falls.md", FALLS))
        tools: Any = [{"type": "file_search", "vector_store_ids": [library.id]}, {"type": "web_search"}]
        said = await client.responses.create(model="cairn", input="Who directed Aurora Falls?", tools=tools)
        assert said.output_text.startswith("Lina Orr")
        run = (await fetched(client, "/api/runs"))["runs"][0]
        trace = (await fetched(client, f"/api/runs/{run['id']}"))["trace"]
        assert trace["libraries"] == [library.id]
        assert {passage["id"].partition("#")[0] for passage in trace["passages"]} <= {
            file.id for file in (await client.files.list()).data
        }
        tools[0]["vector_store_ids"] = ["vs_" + "0" * 24]
        with pytest.raises(NotFoundError, match="no library"):
            await client.responses.create(model="cairn", input="Who directed Aurora Falls?", tools=tools)

    use(work, with_libraries(tmp_path, make_service((PLAN, ANSWER))))


def test_other_keys_see_and_search_nothing_of_it(tmp_path: Path):
    service = with_libraries(tmp_path)
    our_key, ours = new_key("ours")
    their_key, theirs = new_key("theirs")

    async def run() -> None:
        database = Database(str(tmp_path / "runs.sqlite"))
        for key in (ours, theirs):
            await StoredKeys(database).add_key(key)
        await database.aclose()
        async with client_of(service, Rules(key=SecretStr("server")), key=our_key.get_secret_value()) as client:
            other = client.with_options(api_key=their_key.get_secret_value())
            library = await library_of(client, ("falls.md", FALLS))
            file = (await client.files.list()).data[0].id
            assert (await other.files.list()).data == []
            assert (await other.vector_stores.list()).data == []
            for attempt in (
                lambda: other.files.retrieve(file),
                lambda: other.files.content(file),
                lambda: other.files.delete(file),
                lambda: other.vector_stores.retrieve(library.id),
                lambda: other.vector_stores.search(library.id, query="film"),
                lambda: other.vector_stores.delete(library.id),
                lambda: other.vector_stores.create(file_ids=[file]),
                lambda: answered(other, libraries=[library.id]),
            ):
                with pytest.raises(NotFoundError):
                    await attempt()
            with pytest.raises(BadRequestError, match="no library yet"):
                await answered(other, files=[file])
            mine = await other.vector_stores.create(name="theirs")
            with pytest.raises(NotFoundError):
                await other.vector_stores.files.create(mine.id, file_id=file)

    asyncio.run(run())


def test_searches_of_a_library_count_for_their_key(tmp_path: Path):
    secret, key = new_key("client", KeyLimits(searches_per_day=3))

    async def run() -> None:
        database = Database(str(tmp_path / "runs.sqlite"))
        await StoredKeys(database).add_key(key)
        await database.aclose()
        async with client_of(with_libraries(tmp_path), key=secret.get_secret_value()) as client:
            library = await library_of(client, ("falls.md", FALLS))
            await client.vector_stores.search(library.id, query=["film", "miller"])
            with pytest.raises(RateLimitError, match="2 of its 3 searches today"):
                await client.vector_stores.search(library.id, query=["film", "miller"])
            await client.vector_stores.search(library.id, query="film")
            with pytest.raises(RateLimitError, match="3 of its 3 searches"):
                await client.vector_stores.search(library.id, query="film")

    asyncio.run(run())


def test_a_deleted_library_leaves_nothing_of_its_words_on_disk(tmp_path: Path):
    secret = b"Xylofarn"
    text = b"# The " + secret + b"\n\nLina Orr is also called " + secret + b" Qvist.\n"
    answer = "<evidence>\n- Lina Orr is also called Xylofarn Qvist. [1]\n</evidence>\n<answer>Xylofarn Qvist</answer>"
    service = with_libraries(tmp_path, make_service((PLAN, answer)))

    async def work(client: AsyncOpenAI) -> None:
        library = await library_of(client, ("secret.md", text))
        await answered(client, libraries=[library.id])
        question = {"messages": [{"role": "user", "content": "Who is Lina Orr?"}]}
        first = await ended(client, "/api/runs", question | {"libraries": [library.id]})
        after = await ended(client, "/api/runs", question | {"follows": first["id"], "context": "all"})
        assert after["trace"]["libraries"] == [library.id], "what it was given is the library's"
        assert {passage["source"] for passage in after["trace"]["passages"]} == {"web"}, "nothing is used again"
        response = await client.responses.create(
            model="cairn", input="Who is Lina Orr?", extra_body={"libraries": [library.id]}
        )
        await client.responses.create(model="cairn", input="And then?", previous_response_id=response.id)
        body = {"question": "Who is Lina Orr?", "sections": ["Lina Orr"], "libraries": [library.id]}
        report = await ended(client, "/api/reports", body)
        assert secret.decode() in str(report["report"])
        assert holding(tmp_path, secret)
        await client.vector_stores.delete(library.id, extra_query={"files": True, "runs": True})
        while left := holding(tmp_path, secret):
            await asyncio.sleep(0.1)
            assert left
        assert (await client.files.list()).data == []
        for path in ("runs", "reports"):
            assert (await fetched(client, f"/api/{path}"))[path] == []

    use(work, service)
    assert not holding(tmp_path, secret)


def holding(folder: Path, word: bytes) -> list[Path]:
    """The files that have a word in them."""
    return [path for path in folder.rglob("*") if path.is_file() and word in path.read_bytes()]


def test_a_share_that_is_full_takes_no_more(tmp_path: Path):
    async def work(client: AsyncOpenAI) -> None:
        await client.files.create(file=("a.txt", b"x" * 60), purpose="user_data")
        with pytest.raises(APIStatusError, match="40 bytes and") as full:
            await client.files.create(file=("b.txt", b"x" * 50), purpose="user_data")
        assert (full.value.status_code, full.value.code) == (403, "quota_exceeded")
        with pytest.raises(APIStatusError, match="larger than 100 bytes") as large:
            await client.files.create(file=("c.txt", b"x" * 101), purpose="user_data")
        assert large.value.status_code == 413
        await client.files.create(file=("d.txt", b"x" * 40), purpose="user_data")
        with pytest.raises(APIStatusError, match="fill your share"):
            await client.files.create(file=("e.txt", b"x"), purpose="user_data")

    use(work, with_libraries(tmp_path, quota=Quota(file_bytes=100, bytes=100)))
    assert sorted(path.stat().st_size for path in (tmp_path / "libraries" / "files").iterdir()) == [40, 60]


@pytest.mark.parametrize("quota", [Quota(bytes=0), Quota(files=0)])
def test_a_server_without_a_share_for_anyone_says_that_it_takes_no_files(tmp_path: Path, quota: Quota):
    async def work(client: AsyncOpenAI) -> None:
        with pytest.raises(PermissionDeniedError, match="takes no files"):
            await client.files.create(file=("a.txt", b"x"), purpose="user_data")

    use(work, with_libraries(tmp_path, quota=quota))


@pytest.mark.parametrize("mebibytes", [8, 40])
def test_a_client_hears_that_its_file_is_too_large(tmp_path: Path, mebibytes: int):
    async def work(client: AsyncOpenAI) -> None:
        with pytest.raises(APIStatusError, match="larger than 100 bytes") as large:
            await client.files.create(file=("a.txt", bytes(mebibytes << 20)), purpose="user_data")
        assert large.value.status_code == 413
        await client.files.create(file=("b.txt", b"small"), purpose="user_data")

    use(work, with_libraries(tmp_path, quota=Quota(file_bytes=100)))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd.txt", "etc/passwd.txt"),
        ("/abs/olute.md", "abs/olute.md"),
        ("C:\\Users\\me\\a.txt", "a.txt"),
        ("a\x00b\x1f.txt", "ab.txt"),
        ("x" * 1000 + ".pdf", "x" * 396 + ".pdf"),
        ("naïve — Ω.md", "naïve — Ω.md"),
    ],
)
def test_a_name_is_only_a_name(tmp_path: Path, given: str, kept: str):
    async def work(client: AsyncOpenAI) -> str:
        body = b'--b\r\nContent-Disposition: form-data; name="file"; filename="' + given.replace("\\", "\\\\").encode()
        body += b'"\r\n\r\nhello\r\n--b--\r\n'
        sent = await client._client.post(  # pyright: ignore[reportPrivateUsage]
            f"{client.base_url}files", content=body, headers={"content-type": "multipart/form-data; boundary=b"}
        )
        return sent.json()["filename"]

    assert use(work, with_libraries(tmp_path)) == kept
    inside = [path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes() == b"hello"]
    assert [path.parent for path in inside] == [tmp_path / "libraries" / "files"]


def test_it_goes_on_with_what_was_not_indexed_when_the_server_ended(tmp_path: Path):
    first, second = with_libraries(tmp_path), with_libraries(tmp_path)

    async def upload(client: AsyncOpenAI) -> str:
        made = await client.vector_stores.create(name="Films")
        file = await client.files.create(file=("falls.md", FALLS), purpose="user_data")
        await client.vector_stores.files.create(made.id, file_id=file.id)
        return made.id

    async def look(client: AsyncOpenAI) -> int:
        async with asyncio.timeout(60):
            return (await settled(client, id)).file_counts.completed

    id = use(upload, first)
    assert use(look, second) == 1


def test_the_text_of_a_document_comes_with_headings_and_places(tmp_path: Path):
    async def work(client: AsyncOpenAI) -> Any:
        library = await library_of(client, ("falls.md", FALLS))
        file = (await client.files.list()).data[0].id
        parts = await client.vector_stores.files.content(file, vector_store_id=library.id)
        got = await fetched(client, f"/v1/files/{file}/text")
        assert [part.text for part in parts.data] == [passage["text"] for passage in got["passages"]]
        return got

    got = use(work, with_libraries(tmp_path))
    assert got["total"] == 2
    assert [passage["title"] for passage in got["passages"]] == ["Aurora Falls", "Aurora Falls › Cast"]
    first = got["passages"][0]
    assert FALLS.decode()[first["start"] : first["end"]] == first["text"]


def test_the_text_of_a_pdf_says_where_in_a_passage_a_page_begins(tmp_path: Path):
    async def work(client: AsyncOpenAI) -> Any:
        await library_of(client, ("falls.pdf", make_pdf(["The film is long."], ["Lina Orr directed it."])))
        file = (await client.files.list()).data[0].id
        return await fetched(client, f"/v1/files/{file}/text")

    (passage,) = use(work, with_libraries(tmp_path))["passages"]
    (begins,) = passage["page_breaks"]
    assert (passage["page"], passage["text"][begins:]) == (1, "Lina Orr directed it.")


@pytest.mark.parametrize("id", ["nope", "vs_nope", "\0", "vs_" + "0" * 24])
def test_an_id_that_nothing_has_is_not_found(tmp_path: Path, id: str):
    async def work(client: AsyncOpenAI) -> None:
        with pytest.raises(NotFoundError, match="no file"):
            await client.files.retrieve(id)
        with pytest.raises(NotFoundError, match="no library"):
            await client.vector_stores.retrieve(id)
        with pytest.raises(NotFoundError, match="no library"):
            await client.vector_stores.files.retrieve(id, vector_store_id=id)

    use(work, with_libraries(tmp_path))


def test_without_libraries_a_request_that_names_one_is_refused():
    async def work(client: AsyncOpenAI) -> None:
        with pytest.raises(BadRequestError, match="no libraries here"):
            await answered(client, libraries=["all"])

    use(work, replace(make_service(), libraries=None))
