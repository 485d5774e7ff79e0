"""What langchain-openai sees: it drops the reasoning of chat completions, and reads all of a response."""

import json
import sys
from typing import Any

from langchain_openai import ChatOpenAI

BASE_URL, QUESTION = sys.argv[1:3]


def gathered(model: Any) -> Any:
    """The chunks of a stream, added up as its users do."""
    chunks = list(model.stream(QUESTION))
    message: Any = chunks[0]
    for chunk in chunks[1:]:
        message += chunk
    return message


def chatted(*, stream: bool) -> dict[str, Any]:
    """Chat completions: the answer with links, and usage."""
    model: Any = ChatOpenAI(
        base_url=BASE_URL, api_key="none", model="cairn", stream_usage=True, extra_body={"profile": "markdown-links"}
    )
    message = gathered(model) if stream else model.invoke(QUESTION)
    return {"answer": message.text, "tokens": message.usage_metadata["output_tokens"]}


def responded(*, stream: bool) -> dict[str, Any]:
    model: Any = ChatOpenAI(
        base_url=BASE_URL, api_key="none", model="cairn", use_responses_api=True, output_version="responses/v1"
    )
    message = gathered(model) if stream else model.invoke(QUESTION)
    blocks = [block for block in message.content if isinstance(block, dict)]
    texts = [block for block in blocks if block["type"] == "text"]
    reasoning = [part["text"] for b in blocks if b["type"] == "reasoning" for part in b["summary"]]
    return {
        "reasoning": "\n".join(reasoning),
        "answer": "".join(block["text"] for block in texts),
        "citations": [note["url"] for block in texts for note in block.get("annotations", ())],
        "tokens": message.usage_metadata["output_tokens"],
    }


sys.stdout.write(
    json.dumps(
        {
            "chatted": chatted(stream=False),
            "chat_streamed": chatted(stream=True),
            "responded": responded(stream=False),
            "streamed": responded(stream=True),
        }
    )
)
