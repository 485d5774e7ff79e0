"""How two chat programs read a stream: their rules, as docs/clients.md lists them, as small readers of our own."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from markdown_it import MarkdownIt

_THINK = re.compile(r"<think>(.*?)</think>", re.DOTALL)


@dataclass
class Seen:
    """What the person at the screen sees."""

    reasoning: str = ""
    answer: str = ""
    sources: list[str] = field(default_factory=list[str])
    """In order of their numbers."""
    statuses: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    error: str = ""
    thoughts: int = 0
    """Blocks of reasoning; a second one begins where reasoning comes after content."""
    ended: bool = False


def frames(body: str) -> Iterator[dict[str, Any]]:
    """Lines without `data:` are ignored, `[DONE]` ends it."""
    for line in body.splitlines():
        if not line.startswith("data:"):
            continue
        if (data := line.removeprefix("data:").strip()) == "[DONE]":
            return
        yield json.loads(data)


def open_webui(body: str) -> Seen:
    """Events beside the choices; errors only without choices; annotations numbered as they arrive."""
    seen = Seen()
    reasons, thinking = False, False
    for frame in frames(body):
        if event := frame.get("event"):
            seen.statuses.append(event["data"])
        if not frame.get("choices"):
            error: dict[str, str] = frame.get("error") or {}
            seen.error = error.get("message", seen.error)
            continue
        choice = frame["choices"][0]
        delta = choice["delta"]
        for note in delta.get("annotations") or ():
            if note["type"] == "url_citation" and note["url_citation"]["url"] not in seen.sources:
                seen.sources.append(note["url_citation"]["url"])
        if thought := delta.get("reasoning_content") or delta.get("reasoning") or delta.get("thinking"):
            seen.thoughts += not thinking
            reasons, thinking = True, True
            seen.reasoning += thought
        if content := delta.get("content"):
            thinking = False
            seen.answer += content
        seen.ended = seen.ended or choice.get("finish_reason") is not None
    if not reasons:
        seen.reasoning = "".join(_THINK.findall(seen.answer))
        seen.answer = _THINK.sub("", seen.answer)
    return seen


def librechat(body: str) -> Seen:
    """No citations of its own: what counts is which links CommonMark finds in the answer."""
    seen = Seen()
    for frame in frames(body):
        for choice in frame.get("choices", ()):
            delta = choice["delta"]
            seen.reasoning += delta.get("reasoning_content") or delta.get("reasoning") or ""
            seen.answer += delta.get("content") or ""
    seen.reasoning += "".join(_THINK.findall(seen.answer))
    seen.answer = _THINK.sub("", seen.answer)
    seen.sources = links(seen.answer)
    return seen


def links(markdown: str) -> list[str]:
    """Addresses of the links that a reader of Markdown can follow, in their order."""
    tokens = [child for token in MarkdownIt().parse(markdown) for child in token.children or ()]
    return [str(token.attrs["href"]) for token in tokens if token.type == "link_open"]


def shown(markdown: str) -> str:
    """The text as it is drawn, without marks of formatting."""
    tokens = [child for token in MarkdownIt().parse(markdown) for child in token.children or ()]
    return "".join(token.content for token in tokens if token.type in ("text", "softbreak"))
