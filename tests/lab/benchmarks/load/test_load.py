"""A small run against real servers, and the readers against streams that lost or mixed something."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run
from agent.errors import SetupError
from agent.policies.base import Sampling
from agent.protocols import protocol_named
from agent.settings import CairnSettings
from lab.benchmarks.load.client import Heard
from lab.benchmarks.load.flood import Flood
from lab.benchmarks.load.leaving import Leaving
from lab.benchmarks.load.measure import LoadFigures, measure
from lab.benchmarks.load.paced import STAMP, PacedPolicy, text_of
from lab.benchmarks.load.report import page, table
from lab.benchmarks.load.streams import MemorySamples, StreamLoad, read_embedded, read_paced

ENGINE = Path(__file__).parents[3] / "fixtures" / "engine"
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.slow
def test_a_small_run_loses_nothing_and_every_client_that_leaves_is_heard_of(capsys: pytest.CaptureFixture[str]):
    sizes = ["--streams", "4", "--seconds", "3", "--disconnects", "4", "--thought", "8", "--answer", "4"]
    code = run(["bench", "load", *sizes, "--checkpoint", str(ENGINE), "--json"])
    figures = json.loads(capsys.readouterr().out)
    assert code == 0
    assert (figures["lost"], figures["interleaved"], figures["embedded_lost"]) == (0, 0, 0)
    assert figures["answers"] >= 4
    assert figures["embedded_answers"] >= 4
    assert 0 < figures["added_ms_p50"] <= figures["added_ms_p99"] <= figures["added_ms_max"]
    assert figures["cancelled"] == figures["disconnects"] == 4
    assert 0 < figures["cancel_ms_max"] < 10_000
    assert figures["accepted"] + figures["refused"] == figures["requests"]
    assert figures["accepted_lost"] == figures["others"] == 0


def test_a_server_that_cannot_start_is_the_servers_own_sentence(tmp_path: Path):
    settings = CairnSettings(port=0, protocol=str(tmp_path / "no such protocol.toml"))
    with pytest.raises(SetupError, match="no such protocol"):
        measure(settings, streams=1, seconds=1)


def heard(pieces: Sequence[bytes]) -> Heard:
    async def make() -> Heard:
        return Heard(b"")

    made = asyncio.run(make())
    for at, piece in enumerate(pieces):
        made.times.append(10_000_000 * (at + 1))
        made.pieces.append(piece)
    return made


def said(*words: str, cut: int = 1) -> list[bytes]:
    """A stream of these tokens, in pieces of `cut` bytes or, by default, a chunk a piece."""
    frames: list[Any] = [{"choices": [{"delta": {"reasoning_content": word}}]} for word in words]
    frames.append({"choices": [], "usage": {}})
    data = [json.dumps(frame).encode() for frame in frames] + [b"[DONE]"]
    chunks = [b"%x\r\ndata: %b\n\n\r\n" % (len(one) + 8, one) for one in data]
    whole = b"".join([HEAD, *chunks, b"0\r\n\r\n"])
    return [HEAD, *chunks] if cut == 1 else [whole[at : at + cut] for at in range(0, len(whole), cut)]


def test_a_stream_is_whole_if_every_token_came_once_and_in_order():
    tokens = [f" m1x0.{n}.{n * 1_000_000}" for n in range(3)]
    assert read_paced(heard(said(*tokens)), "m1x0", 3).whole
    assert read_paced(heard(said(*tokens, cut=7)), "m1x0", 3).whole
    assert not read_paced(heard(said(*tokens)), "m1x0", 4).whole
    assert not read_paced(heard(said(*tokens[:2])), "m1x0", 3).whole
    assert not read_paced(heard(said(*tokens, tokens[2])), "m1x0", 3).whole
    assert not read_paced(heard(said(tokens[1], tokens[0], tokens[2])), "m1x0", 3).whole
    assert not read_paced(heard(said(*tokens)[:-1]), "m1x0", 3).whole
    assert not read_paced(heard([]), "m1x0", 0).whole


def test_a_token_of_another_stream_is_seen_wherever_it_stands():
    assert not read_paced(heard(said(" m1x0.0.0")), "m1x0", 1).foreign
    assert read_paced(heard(said(" m1x0.0.0", " m2x0.1.0")), "m1x0", 1).foreign
    assert read_paced(heard([*said(" m1x0.0.0"), b'data: {"cairn": {"query": "m1x1"}}\n\n']), "m1x0", 1).foreign


def test_what_is_added_to_a_token_ends_where_its_last_byte_came():
    seen = read_paced(heard(said(" m1x0.0.3000000", " m1x0.1.9000000")), "m1x0", 2)
    assert seen.added == (17.0, 21.0)


def test_an_answer_of_the_embedded_policy_has_one_id():
    tail: dict[str, Any] = {"id": "chatcmpl-a", "choices": [], "usage": {"completion_tokens": 5}}
    tail |= {"cairn": {"trace": "a", "timings": {"total": 0.01}}}
    own: dict[str, Any] = {"id": "chatcmpl-a", "choices": [{"delta": {"content": "Trieste"}}]}

    def stream(*frames: dict[str, Any]) -> Heard:
        return heard([HEAD, *(b"data: %b\n\n" % json.dumps(frame).encode() for frame in frames), b"data: [DONE]\n\n"])

    seen = read_embedded(stream(own, tail))
    assert (seen.whole, seen.foreign, seen.tokens) == (True, False, 5)
    assert seen.added == (pytest.approx(30.0),)
    assert read_embedded(stream(own | {"id": "chatcmpl-b"}, tail)).foreign
    assert not read_embedded(stream(own)).whole


def test_the_slope_of_the_memory_is_by_the_minute_and_leaves_the_beginning_out():
    memory = MemorySamples(seconds=[0, 10, 20, 30], mb=[10, 100, 101, 102])
    assert memory.slope(since=10) == pytest.approx(6.0)
    assert MemorySamples(seconds=[0, 1], mb=[1, 2]).slope(since=0) == 0.0


def figures(*, refused: int) -> LoadFigures:
    load = StreamLoad(200, 120.4, 1640, 0, 0, 13.6, 4000, 0.61, 4.25, 33.3, 140.2, 0.35, 0.81)
    return LoadFigures(
        paced=load,
        leaving=Leaving(100, 100, 8.2, 31.5),
        flood=Flood(200, 200 - refused, 0, refused, 2.5, 11.5, 0, 0),
        embedded=None,
    )


def test_the_page_holds_every_figure():
    text = page(figures(refused=170))
    assert "| added, p99 | 4.25 ms |" in text
    assert "| memory's slope | +0.35 MB/min |" in text
    assert "| time of a refusal, p99 | 11.5 ms |" in text
    assert "| time until then, longest | 31.5 ms |" in text


def test_a_server_that_refuses_nothing_is_reported():
    assert "there is no admission control" in str(table(figures(refused=0)).caption)
    assert "170 of 200 refused, p99 11.5 ms (bound 50)" in str(table(figures(refused=170)).caption)


def test_a_token_is_late_where_the_server_had_no_time_for_its_policy():
    async def stamps() -> list[int]:
        policy = PacedPolicy(lambda signal: None, tokens_per_s=1000, tokens=(6, 1))
        context = policy.open(protocol_named("cairn"), text_of("whole", "m1x0"))
        said = ""
        async for chunk in context.generate(Sampling(), stop=(), max_tokens=7):
            said += chunk.text
            time.sleep(0.02)  # noqa: ASYNC251 - the loop is held up
        return [int(found[3]) for found in STAMP.finditer(said)]

    found = asyncio.run(stamps())
    assert [later - sooner for sooner, later in pairwise(found)] == [1_000_000] * 5


def test_each_promise_that_is_not_kept_is_reported():
    good = figures(refused=170)
    assert good.missed == []
    worse = {
        "p99 10.00 ms (bound 10)": replace(good, paced=replace(good.paced, added_ms_p99=10.0)),
        "memory grew by 7.2%": replace(good, paced=replace(good.paced, rss_mb_slope=5.0)),
        "1 of 1640 streams lost": replace(good, paced=replace(good.paced, lost=1)),
        "1 streams interleaved": replace(good, embedded=replace(good.paced, interleaved=1)),
        "nothing was refused": figures(refused=0),
        "refused in 50.0 ms": replace(good, flood=replace(good.flood, refused_ms_p99=50.0)),
        "1 refusals without Retry-After": replace(good, flood=replace(good.flood, refused_without_retry_after=1)),
        "2 of 30 accepted answers lost": replace(good, flood=replace(good.flood, accepted_lost=2)),
        "1 requests were neither": replace(good, flood=replace(good.flood, others=1)),
        "1 disconnects were not heard of": replace(good, leaving=replace(good.leaving, cancelled=99)),
        "let go 1000 ms after": replace(good, leaving=replace(good.leaving, cancel_ms_max=1000.0)),
    }
    for sentence, bad in worse.items():
        (missed,) = bad.missed
        assert sentence in missed
        assert sentence in str(table(bad).caption)
        assert sentence in page(bad)
    assert "every bound was kept" in str(table(good).caption)
