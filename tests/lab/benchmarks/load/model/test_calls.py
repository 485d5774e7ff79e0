"""A server whose calls are written down answers as one whose calls are not."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent.settings import load_settings
from lab.benchmarks.load.client import ask, question, request
from lab.benchmarks.load.measure import questions_of, server_of
from lab.benchmarks.load.model.calls import read_calls
from lab.benchmarks.load.streams import CHAT

ENGINE = Path(__file__).parents[4] / "fixtures" / "engine"


@pytest.mark.slow
def test_a_watched_server_reads_and_writes_what_the_real_one_does(tmp_path: Path):
    settings = load_settings(port=0, checkpoint=ENGINE)
    text = questions_of(settings)[2]

    def usage(calls: Path | None) -> dict[str, Any]:
        with server_of(settings, {"max_runs": 2}, calls=calls) as server:
            heard = asyncio.run(ask(server.address, request(server.address, CHAT, question(text, stream=True))))
        assert heard
        assert heard.status == 200
        frames = [json.loads(data) for _, data in heard.frames() if data.startswith(b"{")]
        return next(frame["usage"] for frame in frames if frame.get("usage"))

    log = tmp_path / "calls.jsonl"
    assert usage(log) == usage(None)
    calls = read_calls(log)
    assert calls
    assert all(call.ended > call.began and len(call.prompts) == len(call.tokens) == 1 for call in calls)
