"""What openai-python sees: a chat completion, whole, streamed and through the stream helper, and a response."""

import json
import sys
from typing import Any

from openai import OpenAI

BASE_URL, QUESTION = sys.argv[1:3]
MESSAGES: Any = [{"role": "user", "content": QUESTION}]


def whole(client: OpenAI) -> dict[str, Any]:
    got: Any = client.chat.completions.create(model="cairn", messages=MESSAGES)
    message = got.choices[0].message
    return {
        "reasoning": message.reasoning_content,
        "answer": message.content,
        "citations": [note.url_citation.url for note in message.annotations],
        "tokens": got.usage.completion_tokens,
    }


def streamed(client: OpenAI) -> dict[str, Any]:
    usage = {"include_usage": True}
    stream: Any = client.chat.completions.create(model="cairn", messages=MESSAGES, stream=True, stream_options=usage)
    chunks = list(stream)
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    notes = [note for delta in deltas for note in getattr(delta, "annotations", None) or ()]
    return {
        "reasoning": "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas),
        "answer": "".join(delta.content or "" for delta in deltas),
        "citations": [note["url_citation"]["url"] for note in notes],
        "tokens": chunks[-1].usage.completion_tokens,
    }


def helped(client: OpenAI) -> dict[str, Any]:
    usage: Any = {"include_usage": True}
    with client.chat.completions.stream(model="cairn", messages=MESSAGES, stream_options=usage) as stream:
        stream.until_done()
        got: Any = stream.get_final_completion()
    message = got.choices[0].message
    return {
        "reasoning": message.reasoning_content,
        "answer": message.content,
        "citations": [note["url_citation"]["url"] if isinstance(note, dict) else note.url_citation.url for note in message.annotations],
        "tokens": got.usage.completion_tokens,
    }  # fmt: skip


def responded(client: OpenAI) -> dict[str, Any]:
    with client.responses.stream(model="cairn", input=QUESTION) as stream:
        stream.until_done()
        got: Any = stream.get_final_response()
    reasoning = [part.text for item in got.output if item.type == "reasoning" for part in item.summary]
    (message,) = [item for item in got.output if item.type == "message"]
    return {
        "reasoning": "\n".join(reasoning),
        "answer": got.output_text,
        "citations": [note.url for note in message.content[0].annotations],
        "tokens": got.usage.output_tokens,
        "queries": [q for item in got.output if item.type == "web_search_call" for q in item.action.queries],
    }


with OpenAI(base_url=BASE_URL, api_key="none", max_retries=0) as made:
    sys.stdout.write(
        json.dumps(
            {"whole": whole(made), "streamed": streamed(made), "helped": helped(made), "responded": responded(made)}
        )
    )
