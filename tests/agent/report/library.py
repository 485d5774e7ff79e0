"""A library of invented pages that can be searched by words, and policies that research it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from agent.checks.relevance import content_words
from agent.evidence import Passage
from agent.loop.agent import Agent
from agent.loop.budgets import Budgets
from agent.policies.scripted import Script, ScriptedPolicy
from agent.protocols import protocol_named
from agent.sources.base import SearchRequest, SearchResult, Source

FALLS: Final = "Aurora Falls"
PAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "falls.md": (
        "Aurora Falls is a 1962 film directed by Lina Orr. The film was shot in Trieste in the spring of 1961. "
        "It won the Golden Lion at the festival of Venice. Critics praised the quiet pictures of the harbour.",
        "The film was restored by the archive of Bologna in 2009. The restored copy was shown in Venice again. "
        "| year | place |\n|---|---|\n| 2009 | Venice |",
    ),
    "orr.md": (
        "Lina Orr was born in Trieste in 1931. She studied painting at the academy of Vienna. "
        "Lina Orr directed Aurora Falls in 1962. Her second film was never finished.",
    ),
    "harbour.md": (
        "The old harbour of Trieste was built in 1719. Lina Orr shot Aurora Falls between its warehouses. "
        "Ships from Venice called there every week.",
    ),
}
TITLES: Final = {"falls.md": FALLS, "orr.md": "Lina Orr", "harbour.md": "The old harbour of Trieste"}
QUESTION: Final = "What is known about Aurora Falls and its director Lina Orr?"
PLAN: Final = "<think>I look it up.</think>\n<search>\nA: {query} (all)\n</search>"


def passages(pages: Mapping[str, Sequence[str]] = PAGES) -> list[Passage]:
    """Every page in pieces, as a corpus gives them."""
    return [
        Passage(id=f"{name}#{number}", source="corpus", title=TITLES.get(name, name), text=text)
        for name, texts in pages.items()
        for number, text in enumerate(texts, start=1)
    ]


@dataclass
class Library:
    """A source that gives the pages which share most words with a query."""

    found: Sequence[Passage] = field(default_factory=passages)
    searches: int = 0

    async def search(self, request: SearchRequest) -> SearchResult:
        self.searches += 1
        wanted = content_words(request.query)
        hits = [(len(wanted & content_words(f"{p.title} {p.text}")), p) for p in self.found]
        ordered = [passage for count, passage in sorted(hits, key=lambda hit: -hit[0]) if count]
        return SearchResult(
            tuple(p.model_copy(update={"rank": n}) for n, p in enumerate(ordered[: request.limit], start=1))
        )


def researcher(*claims: str) -> Script:
    """A policy that searches for the question once, and then claims this."""
    evidence = "\n".join(f"- {claim}" for claim in claims)

    def turn(context: str) -> str:
        if any(text[:20] in context for texts in PAGES.values() for text in texts):
            return f"<merge>I have it.</merge>\n<evidence>\n{evidence}\n</evidence>\n<answer>See there</answer>"
        question = re.findall(r"(?m)^.*\?\s*$", context)
        return PLAN.format(query=(question[-1] if question else FALLS).strip().rstrip("?")[-80:])

    return turn


def agent_of(
    turns: Script, *, source: Source | None = None, budgets: Budgets | None = None, instructed: bool = False
) -> Agent:
    """An agent that searches the library."""
    policy = ScriptedPolicy(turns, instructed=instructed)
    library = source or Library()
    sources: dict[str, Source] = {"corpus": library, "web": library, "all": library}
    return Agent(policy, protocol_named("cairn"), sources, budgets or Budgets())
