"""What the server sends, to the byte: streams, answers and errors. `python -m tests.server.test_golden_http` writes it again."""

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.server.live import QUESTION, make_service, serving

FOLDER = Path(__file__).parent.parent / "golden" / "http"
SENTENCE = "Where was the director of Aurora Falls born?"
CHAT, RESPONSES, EVIDENCE = "/v1/chat/completions", "/v1/responses", "/v1/evidence"
REQUESTS: dict[str, tuple[str, dict[str, Any] | None]] = {
    "chat-stream": (CHAT, {"messages": QUESTION, "stream": True, "stream_options": {"include_usage": True}}),
    "chat": (CHAT, {"messages": QUESTION}),
    "chat-no-question": (CHAT, {"messages": []}),
    "chat-unknown-model": (CHAT, {"messages": QUESTION, "model": "gpt-none"}),
    "responses-stream": (RESPONSES, {"input": SENTENCE, "stream": True}),
    "responses": (RESPONSES, {"input": SENTENCE}),
    "evidence-stream": (EVIDENCE, {"question": SENTENCE, "stream": True}),
    "evidence": (EVIDENCE, {"question": SENTENCE}),
    "models": ("/v1/models", None),
    "unknown-address": ("/v1/none", None),
}
CHANGES = (
    (r"(chatcmpl|resp|msg|rs|ws|fc|ev|run|req)[-_][0-9a-f]{8,}", r"\1_ID"),
    (r"\b[0-9a-f]{32}\b|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "ID"),
    (r'"(created|created_at|completed_at)": ?\d+(\.\d+)?', r'"\1":0'),
    (r'"(\w*seconds|at|took|total|policy|search|first_token|answer|heartbeat)": ?\d+(\.\d+)?(e-?\d+)?', r'"\1":0'),
    (r'"date": ?"\d{4}-\d\d-\d\d"', '"date":"DATE"'),
    (r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)?", "TIME"),
)
"""Ids and times, which differ from run to run."""


def sent(name: str) -> str:
    """Status, content type and body of one request, without ids and times."""
    path, body = REQUESTS[name]

    async def run() -> httpx2.Response:
        async with (
            serving(make_service()) as address,
            httpx2.AsyncClient(base_url=address, trust_env=False, timeout=20) as client,
        ):
            return await (client.get(path) if body is None else client.post(path, json=body))

    response = asyncio.run(run())
    text = f"{response.status_code} {response.headers['content-type']}\n\n{response.text}"
    for pattern, put in CHANGES:
        text = re.sub(pattern, put, text)
    return text.rstrip("\n") + "\n"


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_answered_with_the_golden_bytes(name: str) -> None:
    assert sent(name) == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in REQUESTS:
        (FOLDER / f"{each}.txt").write_text(sent(each), encoding="utf-8")
