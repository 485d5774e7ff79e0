"""The doctor on this machine: checkpoint, index, graph, plug-ins, cache, disk and port, each in its wrong states."""

import asyncio
import json
import shutil
import socket
import sqlite3
from pathlib import Path

import pytest
from pydantic import SecretStr

from agent import __version__
from agent.build.shipped import newest_checkpoint
from agent.cli import run
from agent.doctor import Diagnosis, local
from agent.settings import CairnSettings
from server.retrieval.service import Retriever
from tests.agent.doctor.look import SECRET, look, no_folder, one
from tests.server.live import FakeSource, serving


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    rows = [{"id": f"d{n}", "title": f"Town {n}", "text": f"The doctor of town {n}."} for n in range(3)]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path / "docs.jsonl"


@pytest.fixture
def index(documents: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    out = documents.parent / "index"
    assert run(["index", "build", str(documents), "--out", str(out)]) == 0
    capsys.readouterr()
    return out


def test_the_install_is_reported() -> None:
    assert "Cairn 0." in look("install").says


def test_the_shipped_checkpoint_is_whole() -> None:
    assert look("policy").state == "ok"


@pytest.mark.parametrize(
    ("there", "fetch", "state", "says"),
    [
        (True, False, "ok", "its base model smollm2-135m-instruct is on this machine"),
        (False, True, "warn", "is fetched with the first question"),
        (False, False, "bad", "lacks its base model"),
    ],
)
def test_the_base_model_of_small_is_looked_for(
    there: bool, fetch: bool, state: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at_hand(model: str) -> bool:
        return there

    monkeypatch.setattr("agent.models.fetch.at_hand", at_hand)
    found = look("policy", world="", fetch=fetch)
    assert (found.state, says in found.says) == (state, True), found


def test_a_checkpoint_that_was_changed_or_cut_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "ct2"
    shutil.copytree(newest_checkpoint(), folder)
    assert look("policy", checkpoint=folder).state == "ok"
    content = (folder / "model.bin").read_bytes()
    (folder / "model.bin").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    found = look("policy", checkpoint=folder)
    assert found.state == "bad"
    assert "model.bin" in found.says
    assert look("policy", checkpoint=tmp_path / "none").state == "bad"


def test_the_world_and_the_protocol_can_be_read() -> None:
    assert "web, news, arxiv, kg" in look("world").says
    assert look("world", world="nowhere").state == "bad"
    assert look("protocol").state == "ok"
    assert look("protocol", protocol="carin").state == "bad"


def test_an_index_is_opened_and_searched(index: Path) -> None:
    assert look("corpus", corpus=index).state == "ok"


def test_documents_are_counted_and_not_indexed(documents: Path) -> None:
    found = look("corpus", corpus=documents)
    assert (found.state, "1 files" in found.says) == ("ok", True)


def test_a_damaged_index_says_how_to_build_it_again(index: Path) -> None:
    for file in index.rglob("documents.jsonl"):
        file.write_bytes(file.read_bytes()[:-5])
    found = look("corpus", corpus=index)
    assert found.state == "bad"
    assert "damaged" in found.says
    assert "cairn index build" in found.says


def test_an_index_without_the_dense_part_that_is_wanted_says_so(index: Path) -> None:
    found = look("corpus", corpus=index, retrieval="dense")
    assert found.state == "bad"
    assert "--dense MODEL" in found.says


def test_a_corpus_that_is_not_there_is_bad(tmp_path: Path) -> None:
    assert look("corpus", corpus=tmp_path / "none").state == "bad"


def test_a_graph_is_opened_and_searched(tmp_path: Path) -> None:
    from agent.sources.kg.build import build_graph

    triples = tmp_path / "triples.tsv"
    triples.write_text("Ada Lovelace\tfield\tmathematics\n", encoding="utf-8")
    build_graph([triples], tmp_path / "graph.db")
    assert look("kg", kg=tmp_path / "graph.db").state == "ok"


@pytest.mark.parametrize("content", [None, b"no graph at all", b""])
def test_a_graph_that_is_none_is_bad(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "graph.db").write_bytes(content)
    assert look("kg", kg=tmp_path / "graph.db").state == "bad"


def test_a_plug_in_that_is_not_installed_is_bad() -> None:
    assert "no plug-in 'shlef'" in look("shlef", plugins={"shlef": {}}).says
    assert "no plug-in 'wbe'" in look("wbe", sources=("wbe",)).says


def test_a_cache_folder_is_tried(tmp_path: Path) -> None:
    assert look("cache", cache=str(tmp_path / "new")).state == "ok"
    assert look("cache", cache="").state == "skip"
    wrong = look("cache", cache=no_folder())
    assert wrong.state == "bad"
    assert "CAIRN_CACHE" in wrong.fix


def test_a_cache_that_is_damaged_is_to_be_removed(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "searches.sqlite") as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    assert look("cache", cache=str(tmp_path)).state == "ok"
    (tmp_path / "searches.sqlite").write_bytes(b"this is no database" * 100)
    found = look("cache", cache=str(tmp_path))
    assert found.state == "bad"
    assert f"remove the folder {tmp_path}" in found.fix


def test_a_redis_that_is_not_there_is_bad_and_its_password_is_not_shown() -> None:
    found = look("cache", cache=f"redis://me:{SECRET}@127.0.0.1:1/0")
    assert (found.state, "start Redis" in found.fix) == ("bad", True)
    assert "redis://127.0.0.1:1/0" in found.says
    assert SECRET not in str(found)
    assert look("cache", cache="https://example.org").state == "bad"


def test_a_redis_that_answers_is_fine() -> None:
    async def serve() -> str:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while line := await reader.readline():
                if line.startswith(b"*"):  # a command: a number of parts, each with its length before it
                    parts = [(await reader.readline(), await reader.readline())[1] for _ in range(int(line[1:]))]
                    writer.write(b"+PONG\r\n" if parts[0].strip() == b"PING" else b"-ERR unknown command\r\n")
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with asyncio.timeout(10), server:
            port: int = server.sockets[0].getsockname()[1]
            return (await local.check_cache(f"redis://127.0.0.1:{port}")).state

    assert asyncio.run(serve()) in ("ok", "bad")


@pytest.mark.parametrize(("free", "state"), [(300 << 30, "ok"), (1 << 30, "warn"), (10 << 20, "bad")])
def test_a_full_disk_is_seen_before_it_hurts(monkeypatch: pytest.MonkeyPatch, free: int, state: str) -> None:
    def room(cache: str) -> dict[Path, int]:
        return {Path("/large"): 900 << 30, Path("/small"): free}

    monkeypatch.setattr("agent.doctor.local._room", room)
    found = look("disk")
    assert found.state == state
    assert "/small" in found.says


def test_the_room_is_that_of_the_folders_that_are_written_to() -> None:
    assert look("disk", cache="redis://127.0.0.1").state in ("ok", "warn", "bad")


def test_a_port_is_free_or_held() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        held.listen()
        found = look("port", port=port)
        assert (found.state, f"another program uses {port}" in found.says) == ("bad", True)
        assert "--port" in found.fix
    assert look("port", port=port).state == "ok"
    assert look("port", port=0).state == "ok"


def test_a_port_that_a_cairn_holds_is_said_so() -> None:
    async def beside() -> Diagnosis:
        async with serving(Retriever({"web": FakeSource("web")})) as address:
            return await one(CairnSettings(port=int(address.rpartition(":")[2])), "port")

    found = asyncio.run(beside())
    assert found.state == "ok"
    assert f"Cairn {__version__} serves on 127.0.0.1:" in found.says


def test_a_host_that_is_none_of_ours_is_bad() -> None:
    assert look("port", host="192.0.2.1", insecure=True).state == "bad"


def test_other_machines_need_a_key_which_may_be_a_stored_one() -> None:
    found = look("port", host="0.0.0.0", port=0)
    assert found.state == "warn"
    assert "only if its store has keys" in found.says
    assert "CAIRN_SERVER_KEY" in found.fix
    assert "cairn key add" in found.fix
    assert look("port", host="0.0.0.0", port=0, server_key=SecretStr(SECRET)).state == "ok"
