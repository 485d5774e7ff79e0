"""What LlamaIndex sees through OpenAILike, whole and streamed."""

import json
import sys
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ThinkingBlock
from llama_index.llms.openai_like import OpenAILike

BASE_URL, QUESTION = sys.argv[1:3]


def seen(got: Any) -> dict[str, Any]:
    message = got.message
    thought = [block.content for block in message.blocks if isinstance(block, ThinkingBlock)]
    return {
        "reasoning": "".join(thought),
        "answer": message.content,
        "tokens": got.raw.usage.completion_tokens,
    }


llm = OpenAILike(
    model="cairn",
    api_base=BASE_URL,
    api_key="none",
    is_chat_model=True,
    additional_kwargs={
        "stream_options": {"include_usage": True},
        "extra_body": {"profile": "markdown-links"},
    },
)
messages = [ChatMessage(role="user", content=QUESTION)]
*_, last = llm.stream_chat(messages)
llm.additional_kwargs.pop("stream_options")
sys.stdout.write(json.dumps({"streamed": seen(last), "whole": seen(llm.chat(messages))}))
