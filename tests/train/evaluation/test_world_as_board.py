"""An agent that knows nothing of Cairn searches the little world by `POST /retrieve`, and is measured on its questions."""

import asyncio
import json
import re
import threading
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run
from agent.settings import load_settings
from agent.world import load_world
from server.launch import address_of, bind, make_retriever, make_server
from tests.train.evaluation.far import AgentRequest, Given, chat, far_agent


@pytest.fixture(scope="module")
def retrieval() -> Generator[str]:
    """`cairn serve --retrieval-only --world test-v1`."""
    listener = bind("127.0.0.1", 0)
    server = make_server(make_retriever(load_settings(world="test-v1")), None)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
    thread.start()
    yield f"{address_of(listener)}/retrieve"
    server.should_exit = True
    thread.join(20)


def retrieved(url: str, query: str, topk: int) -> list[dict[str, str]]:
    body = json.dumps({"queries": [query], "topk": topk}).encode()
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as response:
        return json.load(response)["result"][0]


@pytest.mark.parametrize("cites", ["ids", "links", "citations"])
def test_an_agent_that_is_not_ours_can_search_and_cite_the_world(
    retrieval: str, cites: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    def says(request: AgentRequest) -> Given:
        """Searches the question once, and says the last name or year of the sentence that is most like it."""
        documents = retrieved(retrieval, request.question, 2)
        sentences = [part for document in documents for part in re.split(r"\n|(?<=\.) ", document["contents"])]
        words = set(re.findall(r"\w+", request.question.lower()))
        sentence = max(sentences, key=lambda part: len(words & set(re.findall(r"\w+", part.lower()))))
        names = re.findall(r"\d{4}|[A-Z]\w+(?: [A-Z]\w+)*", sentence) or [""]
        said = f"I found it.\n<answer>{names[-1]}</answer>"
        ids, urls = [d["id"] for d in documents], [d["url"] for d in documents]
        if cites == "ids":
            return chat(f"See [{ids[0]}] and [{ids[1]}]. {said}")
        if cites == "links":
            return chat(f"See [this]({urls[0]}) and [that]({urls[1]}). {said}")
        return chat(said, citations=urls)

    arguments = ["--world", "test-v1", "--types", "chain1", "--limit", "25", "--out", str(tmp_path / "out")]
    with far_agent(says) as agent:
        assert run(["eval", "--endpoint", agent.url, "--model", "reader", *arguments, "--json"]) == 0
    figures: dict[str, Any] = json.loads(capsys.readouterr().out)
    world = load_world("test-v1")
    gold = {q.id: set(q.supporting) for q in world.questions}
    results = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text("utf-8").splitlines()]
    found = [len(set(r["citations"]) & gold[r["id"]]) for r in results]
    assert figures["n"] == len(results) == 25
    assert all(len(r["citations"]) == 2 and set(r["citations"]) <= {d.id for d in world.documents} for r in results)
    assert figures["metrics"]["citation_precision"]["mean"] == pytest.approx(sum(found) / 50, abs=5e-5)
    assert figures["metrics"]["citation_recall"]["mean"] == pytest.approx(sum(found) / 25, abs=5e-5)
    assert figures["metrics"]["citation_recall"]["mean"] > 0.8
    assert 0 < figures["em"] < 1
