"""Small rollouts of the real loop, whose every reward can be worked out on paper."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.evidence import Passage
from agent.loop.budgets import Budgets
from agent.sources.base import SearchRequest, SearchResult, Source
from agent.sources.fuse import FusedSource
from agent.trace import Trace
from tests.conftest import Broken, answer, make_agent
from train.rewards import Rewarded, RewardTools, Task, reward_of

TASK = Task(
    id="q",
    question="Where was the builder of Tarn Harbour born?",
    answers=("Trieste", "Triest"),
    gold=("tarn", "lina"),
    titles=("Tarn Harbour", "Lina Orr"),
    hops=2,
)
TARN = Passage(
    id="tarn",
    source="web",
    title="Tarn Harbour",
    text="Tarn Harbour is an old harbour in the north. It was built by Lina Orr in the summer of 1971.",
)
LINA = Passage(
    id="lina",
    source="web",
    title="Lina Orr",
    text="Lina Orr is an engineer. She was born in Trieste. Her brother Tom Berg lives in Rome.",
)


@dataclass(frozen=True)
class KeywordSource:
    """Finds the passages whose key is in the query; nothing where none is."""

    passages: Mapping[str, Sequence[Passage]]

    async def search(self, request: SearchRequest) -> SearchResult:
        return SearchResult(
            tuple(
                [p for key, passages in self.passages.items() if key in request.query.casefold() for p in passages][
                    : request.limit
                ]
            )
        )


SOURCE = KeywordSource({"harbour": [TARN], "orr": [LINA]})
SOURCES: Mapping[str, Source] = dict.fromkeys(("web", "news", "arxiv", "all", "documents", "kg"), SOURCE)


def rollout(
    protocol: str, *turns: str, sources: Mapping[str, Source] | None = None, budgets: Budgets | None = None
) -> Trace:
    agent = make_agent(list(turns), protocol=protocol, sources=sources or SOURCES, budgets=budgets)
    return answer(list(turns), question=TASK.question, agent=agent)


def broken(protocol: str, *turns: str) -> Trace:
    return rollout(protocol, *turns, sources=dict.fromkeys(SOURCES, Broken()))


def lossy(protocol: str, *turns: str) -> Trace:
    """A rollout whose searches one of two fused sources answers, while the other one fails."""
    return rollout(protocol, *turns, sources=dict.fromkeys(SOURCES, FusedSource({"web": SOURCE, "news": Broken()})))


def rewarded(
    name: str,
    trace: Trace,
    task: Task = TASK,
    *,
    tools: RewardTools | None = None,
    progress: float = 0.0,
    **settings: Any,
) -> Rewarded | None:
    return asyncio.run(reward_of(name, settings, tools=tools).score(trace, task, progress=progress))


def parts(
    name: str,
    trace: Trace,
    task: Task = TASK,
    *,
    tools: RewardTools | None = None,
    progress: float = 0.0,
    **settings: Any,
) -> dict[str, float]:
    """The parts, rounded to what is worth comparing."""
    found = rewarded(name, trace, task, tools=tools, progress=progress, **settings)
    assert found is not None
    return {part: round(value, 6) for part, value in found.parts.items()}


def total(name: str, trace: Trace, task: Task = TASK, *, tools: RewardTools | None = None, **settings: Any) -> float:
    return round(sum(parts(name, trace, task, tools=tools, **settings).values()), 6)


# What a rollout of each protocol is made of

THREE = "<think>Plan.</think><search>builder of Tarn Harbour, Lina Orr born, engineer of the old north</search>"
MERGED = "<merge>Tarn Harbour was built by Lina Orr. Lina Orr was born in Trieste.</merge>"
PLAN = (
    "<think>Plan.</think><search>\nA: builder of Tarn Harbour (web)\nB: Lina Orr birthplace (news)\nA -> B\n</search>"
)
QUERY = "First the builder. <search>builder of Tarn Harbour</search>"
NEXT = "Now her birthplace. <search>Lina Orr birthplace</search>"
EVIDENCE = "<original_evidence>Tarn Harbour was built by Lina Orr.\nLina Orr was born in Trieste.</original_evidence>"
KG_FIRST = '<think>Builder.</think><search>{"query": "builder of Tarn Harbour", "entity": [], "relation": []}</search>'
KG_NEXT = '<think>Birth.</think><search>{"query": "Lina Orr birthplace", "entity": [], "relation": []}</search>'


def said(text: str) -> str:
    return f"<answer>{text}</answer>"


def boxed(text: str) -> str:
    return f"<think>Done.</think><answer>\\boxed{{{text}}}</answer>"


def looked_up(query: str, *, think: str = "Look.") -> str:
    """A turn of `reflect`."""
    return f"<think>{think}</think><search>{query}</search>" if think else f"<search>{query}</search>"


def reflected(rest: str, text: str = "It fits.") -> str:
    return f"<reflect>{text}</reflect>{rest}"
