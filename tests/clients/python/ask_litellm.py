"""What LiteLLM sees: as an OpenAI-compatible server, whole and streamed."""

import json
import sys
from typing import Any

import litellm

BASE_URL, QUESTION = sys.argv[1:3]
litellm.telemetry = False
REQUEST: dict[str, Any] = {
    "model": "openai/cairn",
    "api_base": BASE_URL,
    "api_key": "none",
    "messages": [{"role": "user", "content": QUESTION}],
}


def seen(got: Any) -> dict[str, Any]:
    message = got.choices[0].message
    notes = getattr(message, "annotations", None) or []
    return {
        "reasoning": getattr(message, "reasoning_content", None),
        "answer": message.content,
        "citations": [note["url_citation"]["url"] for note in notes],
        "tokens": got.usage.completion_tokens,
    }


def streamed() -> dict[str, Any]:
    chunks = list(litellm.completion(**REQUEST, stream=True, stream_options={"include_usage": True}))
    return seen(litellm.stream_chunk_builder(chunks))


sys.stdout.write(json.dumps({"whole": seen(litellm.completion(**REQUEST)), "streamed": streamed()}))
