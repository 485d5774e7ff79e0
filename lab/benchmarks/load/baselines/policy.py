"""The instant policy behind an OpenAI-compatible endpoint: it knows the right calls, or the right plan, at once.

Who sends tools gets tool calls; under the model name `plan` a whole plan whose queries are filled, under any other name
a round of searches after the other.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from lab.benchmarks.load.baselines.tasks import TASKS, Values, answer_of, found_in, lines, query_of, ready, task_in

_FILL: Final = re.compile(r"Write query ([A-E]) once more")
PLAN: Final = "plan"


def completion(request: dict[str, Any]) -> bytes:
    """The answer to a request of `/v1/chat/completions`; one chunk holds all of it where it is streamed."""
    messages: list[dict[str, Any]] = request["messages"]
    said = "\n".join(message["content"] for message in messages if isinstance(message.get("content"), str))
    task, marker = task_in(said)
    values = found_in(said, task, marker)
    if request.get("tools"):
        message, finish = _called(task, marker, values)
    else:
        last = messages[-1]["content"]
        text = _until(request.get("stop") or (), _text(request["model"], last, task, marker, values))
        message, finish = {"role": "assistant", "content": text}, "stop"
    head = {"id": "chatcmpl-1", "created": 1767225600, "model": request["model"]}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    if not request.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
        return json.dumps(head | {"object": "chat.completion", "choices": [choice], "usage": usage}).encode()
    choice = {"index": 0, "delta": message, "finish_reason": finish}
    chunk = json.dumps(head | {"object": "chat.completion.chunk", "choices": [choice], "usage": usage})
    return f"data: {chunk}\n\ndata: [DONE]\n\n".encode()


def _until(stops: Iterable[str], text: str) -> str:
    """The text before the first stop text, as servers give it."""
    return text[: min((at for stop in stops if (at := text.find(stop)) >= 0), default=len(text))]


def _called(task: str, marker: str, values: Values) -> tuple[dict[str, Any], str]:
    nodes = ready(task, values)
    if not nodes:
        return {"role": "assistant", "content": answer_of(task, values)}, "stop"
    calls = [
        {
            "id": f"call_{node}",
            "type": "function",
            "function": {
                "name": "search",
                "arguments": json.dumps({"query": query_of(task, marker, node, values)}),
            },
        }
        for node in nodes
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"


def _text(model: str, last: str, task: str, marker: str, values: Values) -> str:
    """What a model says that has Cairn's protocol as its instructions."""
    if fill := _FILL.search(last):
        return f"<fill>{query_of(task, marker, fill[1], values)}</fill>"
    if not (nodes := ready(task, values)):
        return f"<answer>{answer_of(task, values)}</answer>"
    if model == PLAN:
        nodes, values = list(TASKS[task]), {node: f"#{node}" for node in TASKS[task]}
    return f"<search>\n{lines([(node, query_of(task, marker, node, values)) for node in nodes])}\n</search>"
