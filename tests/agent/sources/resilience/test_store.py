import asyncio
import logging
import pickle
import shutil
import socket
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.sources.base import SearchRequest, ask
from agent.sources.limits import Limits
from agent.sources.resilience.cached import Cached
from agent.sources.resilience.store import OPENING_SECONDS, AnswerStore, OpenStore, open_store
from tests.agent.sources.resilience.backends import Scripted, passage
from tests.virtual_clock import run as run_virtually


async def kept_and_found(store: AnswerStore) -> bytes | None:
    async with asyncio.timeout(20):
        await store.put("x", b"y", seconds=100)
        return await store.get("x")


async def twice(store: AnswerStore) -> list[str]:
    """Search twice through a cache on this store."""
    source = Cached(Scripted([passage("a")]), name="web", store=store, limits=Limits())
    async with asyncio.timeout(20):
        found = [await ask(source, SearchRequest("Dune", limit=3), seconds=10) for _ in range(2)]
    assert all([p.id for p in hits.passages] == ["a"] for hits in found)
    await source.aclose()
    return [hits.cached for hits in found]


def test_a_folder_keeps_answers_beyond_the_process(tmp_path: Path):
    where = tmp_path / "not" / "yet"
    assert asyncio.run(twice(open_store(where))) == ["", "fresh"]
    assert asyncio.run(twice(open_store(str(where)))) == ["fresh", "fresh"]
    assert where.stat().st_mode & 0o077 == 0, "what one user searches for is no one else's business"


def test_memory_keeps_answers_for_the_process():
    assert run_virtually(twice(open_store("memory:"))) == ["", "fresh"]


def test_what_is_over_is_gone(tmp_path: Path):
    async def main() -> None:
        store = open_store(tmp_path)
        await store.put("x", b"y", seconds=-1)
        assert await store.get("x") is None
        await store.aclose()

    asyncio.run(main())


def test_a_folder_does_not_grow_beyond_its_bound(tmp_path: Path):
    async def main() -> None:
        store = open_store(tmp_path, max_bytes=2 << 20)
        for n in range(400):
            await store.put(f"key {n}", bytes(20_000), seconds=1000)
        kept = [n for n in range(400) if await store.get(f"key {n}") is not None]
        assert len(kept) * 20_000 <= 2 << 20
        assert 399 in kept, "the oldest ones go first"
        await store.aclose()

    asyncio.run(main())


def test_no_input_or_output_runs_on_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    used: set[int] = set()
    connect = sqlite3.connect

    def noting(*args: Any, **options: Any) -> sqlite3.Connection:
        used.add(threading.get_ident())
        return connect(*args, **options)

    monkeypatch.setattr(sqlite3, "connect", noting)
    assert asyncio.run(twice(open_store(tmp_path))) == ["", "fresh"]
    assert used
    assert threading.get_ident() not in used


def test_a_folder_that_cannot_be_made_is_said_once_and_breaks_no_search(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        assert asyncio.run(twice(open_store(tmp_path / "file" / "cache"))) == ["", ""]
    assert [r.name for r in caplog.records] == ["agent.sources.resilience.store"]
    assert "searches continue without it" in caplog.text


def damage(folder: Path) -> None:
    for database in folder.rglob("searches.sqlite*"):
        database.write_bytes(b"this is no database" * 1000)


def test_a_damaged_file_breaks_no_search(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    assert asyncio.run(twice(open_store(tmp_path))) == ["", "fresh"]
    damage(tmp_path)
    with caplog.at_level(logging.WARNING):
        assert asyncio.run(twice(open_store(tmp_path))) == ["", ""]
    assert len(caplog.records) == 1


def test_a_damaged_file_breaks_no_search_while_it_is_open(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    async def main() -> list[str]:
        store = open_store(tmp_path)
        await store.put("x", b"y", seconds=100)
        damage(tmp_path)
        return await twice(store)

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(main())[0] == ""
    assert len(caplog.records) <= 1


def test_a_store_that_does_not_answer_is_not_waited_for_and_left_alone_for_a_while(caplog: pytest.LogCaptureFixture):
    class Stuck(AnswerStore):
        requests = 0

        async def _open(self) -> OpenStore:
            self.requests += 1
            await asyncio.sleep(1e9)
            raise AssertionError("no one waits this long")

    async def main() -> None:
        store = Stuck("nowhere")
        clock = asyncio.get_running_loop().time
        began = clock()
        assert await twice(store) == ["", ""]
        assert clock() - began < OPENING_SECONDS + 0.1
        assert store.requests == 1

    with caplog.at_level(logging.WARNING):
        run_virtually(main())
    assert "no answer in 5 s" in caplog.text


def test_no_one_listens_where_redis_should_be(caplog: pytest.LogCaptureFixture):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening
        url = f"redis://user:secret@127.0.0.1:{taken.getsockname()[1]}/0"
        with caplog.at_level(logging.WARNING, logger="agent"):
            assert asyncio.run(twice(open_store(url))) == ["", ""]
    messages = [r.getMessage() for r in caplog.records if r.name.startswith("agent")]
    assert len(messages) == 1
    assert "redis://127.0.0.1" in messages[0]
    assert "secret" not in messages[0]


@pytest.mark.parametrize("where", ["http://example.org", "mem://", "postgres://x"])
def test_another_kind_of_url_is_refused(where: str):
    with pytest.raises(ValueError, match="name a folder, a redis:// URL"):
        open_store(where)


# The cache's library closes Redis in a way that the client calls old.
pytestmark = pytest.mark.filterwarnings("ignore:Call to deprecated close:DeprecationWarning")


@dataclass
class RedisServer:
    """A real server, in memory only, on a port of its own."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def say(self, *words: str, stdin: bytes | None = None) -> bytes:
        command = ["redis-cli", "-p", str(self.port), *words]
        return subprocess.run(command, input=stdin, capture_output=True, check=True, timeout=20).stdout

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=20)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    pytest.importorskip("redis")
    if not shutil.which("redis-server") or not shutil.which("redis-cli"):
        pytest.skip("there is no redis-server here")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        while line := process.stdout.readline():
            if b"Ready to accept connections" in line:
                break
        server = RedisServer(port, process)
        try:
            yield server
        finally:
            server.stop()


def test_redis_keeps_answers_for_every_process(redis: RedisServer):
    assert asyncio.run(twice(open_store(redis.url))) == ["", "fresh"]
    assert asyncio.run(twice(open_store(redis.url))) == ["fresh", "fresh"]


def test_a_redis_that_dies_breaks_no_search(redis: RedisServer, caplog: pytest.LogCaptureFixture):
    async def main() -> None:
        store = open_store(redis.url)
        assert await kept_and_found(store) == b"y"
        await asyncio.to_thread(redis.stop)
        assert await kept_and_found(store) is None
        await store.aclose()

    with caplog.at_level(logging.WARNING, logger="agent"):
        asyncio.run(main())
    assert len([r for r in caplog.records if r.name == "agent.sources.resilience.store"]) == 1


sprung: list[str] = []


def spring() -> None:
    sprung.append("unpickled")


class Trap:
    """It records that it was unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return (spring, ())


def test_nothing_that_redis_holds_is_unpickled(redis: RedisServer):
    async def main() -> None:
        source = Cached(Scripted([passage("a")]), name="trap", store=open_store(redis.url), limits=Limits())
        for raw in (pickle.dumps(Trap()), b"bytes:" + pickle.dumps(Trap()), b"bytes:{}", b"7", b"nonsense"):
            await asyncio.to_thread(redis.say, "-x", "set", source.key(SearchRequest("Dune", limit=3)), stdin=raw)
            assert (await ask(source, SearchRequest("Dune", limit=3), seconds=10)).cached == ""
        await source.aclose()

    asyncio.run(main())
    assert not sprung
    pickle.loads(pickle.dumps(Trap()))
    assert sprung, "it was no trap"


def test_redis_lets_go_of_what_is_over(redis: RedisServer):
    async def main() -> None:
        store = open_store(redis.url)
        await store.put("short", b"y", seconds=50)
        await store.aclose()

    asyncio.run(main())
    assert 0 < int(redis.say("ttl", "short")) <= 50
