"""What a server's model offers beyond plain text, found out by trying: function calls, JSON by a schema, and the like.

`cairn doctor` shows it. The agent itself needs none of it: what a model can do with it decides, see the exam.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from agent.outbound.completions import CompletionPart, OddReply, first_choice, read_chat
from agent.outbound.llm import LlmClient

_TOKENS: Final = 160
"""Of a reply; a model that reasons first needs some."""
_WORD: Final = "cairn-7"
"""No model writes this unless the schema makes it."""
_SCHEMA: Final = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": [_WORD]}},
    "required": ["word"],
    "additionalProperties": False,
}
_TOOL: Final = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Search an encyclopaedia.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
}


@dataclass(frozen=True)
class Offers:
    """What was seen. False means that it wasn't seen: the server ignores it, refuses it, or the model can't."""

    tools: bool = False
    schema: bool = False
    logprobs: bool = False
    reasoning: bool = False
    """It says what it thinks in a field of its own."""

    def __str__(self) -> str:
        seen = {
            "function calls": self.tools,
            "JSON by a schema": self.schema,
            "log-probabilities": self.logprobs,
            "a field for its reasoning": self.reasoning,
        }
        return ", ".join(f"{name}: {'yes' if found else 'no'}" for name, found in seen.items())


async def offers_of(endpoint: LlmClient) -> Offers:
    """Try it in three short requests.

    Raises:
        PolicyError: there is no server, or it failed.
    """
    form = {"type": "json_schema", "json_schema": {"name": "word", "strict": True, "schema": _SCHEMA}}
    constrained, _ = await _said(endpoint, "Say a word.", response_format=form)
    called, _ = await _said(endpoint, "Where is Trieste? Search for it.", tools=[_TOOL], tool_choice="required")
    plain, choice = await _said(endpoint, "Say hello.", logprobs=True)
    return Offers(
        tools=any(call.name == "search" for call in called.calls),
        schema=_is_word(constrained.content),
        logprobs=bool(choice.get("logprobs")),
        reasoning=any(said.reasoning for said in (constrained, called, plain)),
    )


async def _said(endpoint: LlmClient, text: str, **parameters: Any) -> tuple[CompletionPart, dict[str, Any]]:
    messages = [{"role": "user", "content": text}]
    answer = await endpoint.try_once("chat", messages=messages, max_tokens=_TOKENS, temperature=0, **parameters)
    try:
        return read_chat(answer or {}), first_choice(answer or {}) or {}
    except OddReply:
        return CompletionPart(), {}


def _is_word(text: str) -> bool:
    try:
        return json.loads(text) == {"word": _WORD}
    except (ValueError, RecursionError):
        return False
