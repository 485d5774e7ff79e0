"""A folder of documents that is watched: what changes in it is found, and no search fails meanwhile."""

import asyncio
import logging
import shutil
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.build import watched
from agent.build.sources import build_sources
from agent.build.watched import WatchedSource
from agent.errors import SetupError
from agent.settings import CairnSettings
from agent.sources.base import SearchRequest, SearchResult, Source, ask, problems_of
from agent.sources.corpus.build import build_index
from agent.sources.corpus.source import CorpusSource

SECONDS = 60.0
"""For an update to be seen: each one starts a process."""


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "falls.md").write_text("# Falls\n\nThe Aurora Falls drop 94 metres.\n", encoding="utf-8")
    return folder


def watching(docs: Path, work: Callable[[WatchedSource], Awaitable[None]], *, look_seconds: float = 30.0) -> None:
    """Do something beside a source that watches; what hangs is a failure."""
    source = WatchedSource(docs, CorpusSource, cache=docs.parent / "cache", look_seconds=look_seconds)

    async def bounded() -> None:
        async with asyncio.timeout(2 * SECONDS):
            try:
                await work(source)
            finally:
                await source.aclose()

    asyncio.run(bounded())


async def texts(source: Source, query: str) -> list[str]:
    found = await ask(source, SearchRequest(query, limit=5), seconds=10.0)
    return [passage.text for passage in found.passages]


async def until(met: Callable[[], Awaitable[bool]]) -> None:
    """Ask again and again until it holds."""
    async with asyncio.timeout(SECONDS):
        while not await met():  # noqa: ASYNC110  # another process and a thread do the work
            await asyncio.sleep(0.05)


def test_a_file_that_comes_changes_or_goes_is_seen_without_a_new_start(docs: Path):
    async def work(source: WatchedSource) -> None:
        assert "94 metres" in (await texts(source, "Aurora Falls"))[0]
        (docs / "river.md").write_text("# Tana\n\nThe river Tana is 361 km long.\n", encoding="utf-8")
        await until(lambda: found(source, "river Tana", "361 km"))
        (docs / "falls.md").write_text(
            "# Falls\n\nThe Aurora Falls drop 95 metres, as measured again.\n", encoding="utf-8"
        )
        await until(lambda: found(source, "Aurora Falls", "95 metres"))
        (docs / "river.md").unlink()
        await until(lambda: lost(source, "river Tana", "361 km"))

    watching(docs, work)


async def found(source: Source, query: str, words: str) -> bool:
    return any(words in text for text in await texts(source, query))


async def lost(source: Source, query: str, words: str) -> bool:
    return not await found(source, query, words)


@pytest.mark.slow
def test_no_search_fails_and_the_loop_goes_on_while_the_index_is_swapped(docs: Path):
    for n in range(300):
        (docs / f"{n}.md").write_text(f"# Page {n}\n\nThe lighthouse {n} is on a rock.\n" * 20, encoding="utf-8")

    async def work(source: WatchedSource) -> None:
        over, slowest = asyncio.Event(), 0.0

        async def search_on() -> int:
            count = 0
            while not over.is_set():
                assert await texts(source, "lighthouse")
                count += 1
                await asyncio.sleep(0.01)
            return count

        async def beat() -> None:
            nonlocal slowest
            while not over.is_set():
                began = time.monotonic()
                await asyncio.sleep(0.01)
                slowest = max(slowest, time.monotonic() - began)

        searching, beating = asyncio.create_task(search_on()), asyncio.create_task(beat())
        for n in range(2):
            (docs / "new.md").write_text(f"# New\n\nThe harbour has {n} piers of stone.\n", encoding="utf-8")
            await until(lambda n=n: found(source, "harbour piers", f"{n} piers"))  # type: ignore[misc]
        over.set()
        assert await searching > 10
        await beating
        assert slowest < 2.0, f"the loop waited {slowest:.2f} s"

    watching(docs, work)


class Slow:
    """A source whose searches end when they are let go, and that says when it was closed."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.closed = False

    async def search(self, request: SearchRequest) -> SearchResult:
        await self.go.wait()
        assert not self.closed, "a search outlived its source"
        return SearchResult(backend="old")

    async def aclose(self) -> None:
        self.closed = True


def test_a_search_on_its_way_ends_with_the_index_that_it_began_with(docs: Path):
    async def test() -> None:
        slow, opened = Slow(), list[Any]()

        def open_index(folder: Path) -> Any:
            opened.append(slow if not opened else CorpusSource(folder))
            return opened[-1]

        source = WatchedSource(docs, open_index, cache=docs.parent / "cache")
        try:
            searching = asyncio.create_task(source.search(SearchRequest("x", limit=1)))
            await asyncio.sleep(0)
            (docs / "river.md").write_text("# Tana\n\nThe river Tana is 361 km long.\n", encoding="utf-8")
            await until(lambda: asyncio.sleep(0, len(opened) > 1))
            await until(lambda: found(source, "river Tana", "361 km"))
            assert not slow.closed
            slow.go.set()
            assert (await searching).backend == "old"
            assert slow.closed
        finally:
            await source.aclose()

    asyncio.run(test())


def test_documents_that_go_away_are_a_sentence_and_the_old_ones_stay_until_they_are_back(
    docs: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.WARNING)

    async def work(source: WatchedSource) -> None:
        away = docs.with_name("away")
        shutil.move(docs, away)
        await until(lambda: asyncio.sleep(0, bool(source.problem)))
        assert str(docs) in source.problem
        found_then = await ask(source, SearchRequest("Aurora Falls", limit=1), seconds=10.0)
        assert "94 metres" in found_then.passages[0].text
        assert source.problem in found_then.notes
        assert problems_of([source, source]) == [source.problem]
        (away / "river.md").write_text("# Tana\n\nThe river Tana is 361 km long.\n", encoding="utf-8")
        shutil.move(away, docs)
        await until(lambda: found(source, "river Tana", "361 km"))
        await until(lambda: asyncio.sleep(0, not source.problem))

    watching(docs, work)
    assert len(caplog.records) == 1, "a problem is logged once"


@pytest.mark.slow
def test_a_folder_that_comes_back_as_it_was_or_is_replaced_is_followed(docs: Path):
    async def work(source: WatchedSource) -> None:
        away, other = docs.with_name("away"), docs.with_name("other")
        shutil.move(docs, away)
        await until(lambda: asyncio.sleep(0, bool(source.problem)))
        shutil.move(away, docs)
        await until(lambda: asyncio.sleep(0, not source.problem))
        other.mkdir()
        (other / "falls.md").write_text("# Falls\n\nThe Other Falls drop 12 metres.\n", encoding="utf-8")
        shutil.move(docs, away)
        shutil.move(other, docs)
        await until(lambda: found(source, "Other Falls", "12 metres"))
        (docs / "river.md").write_text("# Tana\n\nThe river Tana is 361 km long.\n", encoding="utf-8")
        await until(lambda: found(source, "river Tana", "361 km"))

    watching(docs, work)


def test_a_folder_that_cannot_be_watched_is_looked_at_and_says_so(docs: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object, **__: object) -> Any:
        raise OSError("the limit of watches is reached")

    monkeypatch.setattr("watchfiles.watch", full)

    async def work(source: WatchedSource) -> None:
        (docs / "river.md").write_text("# Tana\n\nThe river Tana is 361 km long.\n", encoding="utf-8")
        await until(lambda: found(source, "river Tana", "361 km"))
        late = f"{docs} is looked at every 0.3 s: it cannot be watched (the limit of watches is reached)"
        await until(lambda: asyncio.sleep(0, source.problem == late))

    watching(docs, work, look_seconds=0.3)


def test_what_no_one_reports_is_seen_at_the_next_look(docs: Path, monkeypatch: pytest.MonkeyPatch):
    def deaf(*_: object, stop_event: threading.Event, **__: object) -> Any:
        while not stop_event.wait(0.2):
            yield set[object]()

    monkeypatch.setattr("watchfiles.watch", deaf)

    async def work(source: WatchedSource) -> None:
        (docs / "river.md").write_text("# Tana\n\nThe river Tana is 361 km long.\n", encoding="utf-8")
        await until(lambda: found(source, "river Tana", "361 km"))

    watching(docs, work)


def test_a_file_that_is_no_document_updates_nothing(docs: Path, monkeypatch: pytest.MonkeyPatch):
    looks = list[int]()
    look = WatchedSource._look  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(WatchedSource, "_look", lambda self: (look(self), looks.append(1)))  # type: ignore[misc]
    monkeypatch.setattr(WatchedSource, "_updated", partial(pytest.fail, "it was updated"))

    async def work(source: WatchedSource) -> None:
        (docs / ".notes.swp").write_text("x", encoding="utf-8")
        await until(lambda: asyncio.sleep(0, len(looks) > 2))
        assert not source.problem

    watching(docs, work, look_seconds=0.3)


def test_watching_ends_with_the_source(docs: Path):
    async def work(source: WatchedSource) -> None:
        assert any(thread.name == "watched documents" for thread in threading.enumerate())

    watching(docs, work)
    assert not any(thread.name == "watched documents" for thread in threading.enumerate())


def test_what_cannot_be_watched_is_a_sentence_that_names_the_fix(docs: Path, tmp_path: Path):
    with pytest.raises(SetupError, match="there is nothing to watch; name the folder of your documents with --corpus"):
        build_sources(CairnSettings(watch=True))
    build_index([docs], tmp_path / "index")
    with pytest.raises(SetupError, match=r"is an index, and what is watched is documents"):
        build_sources(CairnSettings(watch=True, corpus=tmp_path / "index"))


def test_the_setting_watches_the_corpus(docs: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watched, "CACHE", docs.parent / "cache")
    monkeypatch.setattr(
        WatchedSource.__init__, "__kwdefaults__", {"cache": docs.parent / "cache", "look_seconds": 30.0}
    )
    sources = build_sources(CairnSettings(watch=True, corpus=docs, live=False))
    source = sources["corpus"]
    assert isinstance(source, WatchedSource)
    assert sources["web"] is source
    asyncio.run(source.aclose())
