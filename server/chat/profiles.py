"""Clients and what they need: the same answer, written as each of them reads it. A profile is data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from agent.evidence import Passage
from agent.trace import Filled, Gathered, Planned, Searched, SearchFailed, Skipped, Step, Stopped

ProfileName = Literal["default", "openwebui", "markdown-links", "perplexity"]


@dataclass(frozen=True)
class Profile:
    """How one kind of client wants its answers."""

    statuses: bool = False
    """Searches are sent as Open WebUI's status events, too."""
    marks: bool = False
    """The answer itself carries a mark `[1]` for all that supports it, and no two marks touch."""
    definitions: bool = False
    """Behind the answer stand Markdown's link definitions, which make links of the marks."""
    sources_at_end: bool = False
    """Usage, `citations` and `search_results` come with the chunk that ends the answer, requested or not."""


DEFAULT: Final = Profile()
PROFILES: Final[Mapping[ProfileName, Profile]] = {
    "default": DEFAULT,
    "openwebui": Profile(statuses=True),
    "markdown-links": Profile(marks=True, definitions=True),
    "perplexity": Profile(marks=True, sources_at_end=True),
}


class Statuses:
    """Searches as the status events that Open WebUI draws above an answer. Each one that begins is ended."""

    def __init__(self) -> None:
        self._queries: dict[str, str] = {}
        """Of the round that runs, by node."""

    def feed(self, step: Step) -> dict[str, Any] | None:
        """The event for a step; most have none."""
        match step:
            case Planned():
                self._queries = {node.id: node.query for node in step.plan.nodes}
                return self._searching()
            case Filled() if step.node in self._queries:
                self._queries[step.node] = step.query
                return self._searching()
            case SearchFailed():
                return _status(f"{step.source} failed: {step.error}", done=True)
            case Gathered():
                self._queries = {}
                return _found(step.passages)
            case Stopped() if self._queries:
                return _status("The search was ended", action="web_search", done=True)
            case Searched() | Skipped() | _:
                return None

    def _searching(self) -> dict[str, Any]:
        queries = list(self._queries.values())
        return _status("Searching", action="web_search_queries_generated", queries=queries, done=False)


def _found(passages: Sequence[Passage]) -> dict[str, Any]:
    items = [{"title": passage.title, "link": passage.url} for passage in passages if passage.url]
    urls = list(dict.fromkeys(item["link"] for item in items))
    said = f"Read {len(passages)} passage{'' if len(passages) == 1 else 's'}" if passages else "Nothing was found"
    return _status(said, action="web_search", urls=urls, items=items, done=True)


def _status(description: str, *, done: bool, **data: Any) -> dict[str, Any]:
    return {"type": "status", "data": {**data, "description": description, "done": done}}
