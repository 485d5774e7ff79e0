"""Finding 5: `<` and n blanks in an address, a date or a title cost n², on the event loop of the search."""

import json
import subprocess
from pathlib import Path

from tests.attacks.product import Product

ROLLOUT = """
import asyncio, time
from agent.evidence import Passage
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import protocol_named
from agent.loop.agent import Agent
from agent.sources.base import SearchResult

BLANKS = "<" + " " * 28_000
TURNS = ["<search>\\nA: Kelra (web)\\n</search>", "<answer>Kelra Vonn</answer>"]

class Source:
    async def search(self, request):
        text = "Kelra Vonn wrote it. " + "<" + " " * 5_000
        found = Passage(id="a", source="web" + BLANKS, title="Kelra", text=text, url="u" + BLANKS, date=BLANKS)
        return SearchResult((found,))

async def main():
    agent = Agent(ScriptedPolicy(TURNS), protocol_named("cairn"), {"web": Source()})
    started = time.process_time()
    trace = await agent.run(agent.new_trace("Who is Kelra?"))
    print(trace.answer, time.process_time() - started, sep="|")

asyncio.run(main())
"""
MOST_SECONDS = 2.0
"""Of CPU time; before, it was minutes."""


def test_a_passage_of_any_source_is_shown_in_time_proportional_to_its_length(product: Product, tmp_path: Path) -> None:
    done = subprocess.run(
        [str(product.python), "-c", ROLLOUT],
        env=product.environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer, seconds = done.stdout.strip().split("|")
    assert answer == "Kelra Vonn"
    assert float(seconds) < MOST_SECONDS


def test_a_document_with_an_endless_address_is_refused_in_a_sentence(product: Product, tmp_path: Path) -> None:
    document = {
        "id": "a",
        "title": "Kelra",
        "text": "Kelra Vonn wrote it.",
        "url": f"https://a.example/<{' ' * 28_000}",
    }
    (tmp_path / "docs.jsonl").write_text(json.dumps(document) + "\n", encoding="utf-8")
    built = product.run("index", "build", "docs.jsonl", "--out", "index", cwd=tmp_path)
    assert built.returncode != 0
    assert "'url'" in built.stderr
    assert "Traceback" not in built.stderr
