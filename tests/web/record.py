"""Records real runs as their events come: `python -m tests.web.record` writes tests/golden/runs.

Each line of a file is an event, `{"id", "event", "data"}`; the last one holds the run with its trace. Python's tests and
those of the page both read them.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2

from agent.settings import load_settings
from server.launch import make_service
from tests.server.live import serving
from tests.server.runs.replicas import all_events

FOLDER = Path(__file__).parent.parent / "golden" / "runs"
CASES: dict[str, str | int] = {
    "cairn": 0,
    "cairn-deep": 3,
    "cairn-outside": "What is the capital of France?",
    "multisearch": 2,
    "dag": 0,
    "evidence": 3,
    "reflect": 1,
    "kg": 2,
}
"""By name, which begins with the protocol: a question, or the place of one among those that the page offers."""


async def record(client: httpx2.AsyncClient, name: str, question: str) -> list[dict[str, Any]]:
    """The lines of one run."""
    request = {"model": f"cairn/{name.split('-')[0]}", "messages": [{"role": "user", "content": question}]}
    run = (await client.post("/api/runs", json=request)).json()["id"]
    lines = [{"id": seen.id, "event": seen.event, "data": seen.data} for seen in await all_events(client, run)]
    return [*lines, {"id": "", "event": "run", "data": (await client.get(f"/api/runs/{run}")).json()}]


async def main() -> None:
    """Ask each protocol that the shipped checkpoints speak."""
    service = make_service(load_settings(None, store="memory"))
    questions = service.examples
    async with serving(service) as address, httpx2.AsyncClient(base_url=address, timeout=60) as client:
        for name, question in CASES.items():
            lines = await record(client, name, question if isinstance(question, str) else questions[question])
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            (FOLDER / f"{name}.jsonl").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
