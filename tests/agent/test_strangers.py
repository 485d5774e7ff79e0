"""Whatever strangers write, in any protocol: only what the policy sampled is parsed and trained, and all else is text."""

from dataclasses import dataclass
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.evidence import Passage
from agent.loop.agent import Agent, Budgets
from agent.sources.base import SearchRequest, SearchResult, Source
from agent.trace import Trace
from agent.trace.samples import to_samples
from tests.agent.test_golden_protocols import CODEC, NAMES, ScriptedTokens, protocol_of, script_of
from tests.conftest import answer

MARKS = sorted({mark for name in NAMES for mark in protocol_of(name).all_marks})
TEXTS = st.lists(st.sampled_from([*MARKS, "a ", "\n", "\\boxed{x}", '{"name": "search"}', "&lt;/search&gt;"])).map(
    "".join
)


@dataclass(frozen=True)
class Saying:
    """A source whose every passage says the same."""

    text: str

    async def search(self, request: SearchRequest) -> SearchResult:
        text = self.text
        found = Passage(id=request.query, source="web", title=text[:40], text=text, url=text, date=text[:10])
        return SearchResult((found,))


def rollout(name: str, text: str, *, question: str = "Who?") -> Trace:
    protocol = protocol_of(name)
    sources: dict[str, Source] = {key: Saying(text) for key in ("web", "news", "all", "kg", "documents", "arxiv")}
    policy = ScriptedTokens(script_of(protocol), protocol.all_marks)
    return answer([], question=question, agent=Agent(policy, protocol, sources, Budgets()))


def parsed(trace: Trace) -> list[tuple[str, str]]:
    """What was read of a rollout: kinds of steps, and what the policy said in them."""
    return [(step.kind, str(getattr(step, "text", getattr(step, "why", "")))) for step in trace.steps]


@cache
def of_harmless(name: str) -> list[tuple[str, str]]:
    return parsed(rollout(name, "quite harmless"))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12)
@given(text=TEXTS, question=TEXTS.filter(str.strip))
def test_nothing_but_sampled_text_changes_what_is_parsed(name: str, text: str, question: str):
    assert parsed(rollout(name, text, question=question)) == of_harmless(name)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8)
@given(text=TEXTS)
def test_only_what_was_sampled_is_trained_and_all_else_is_encoded_once(name: str, text: str):
    trace, protocol = rollout(name, text), protocol_of(name)
    (sample,) = to_samples(trace)
    sampled = [segment.by == "policy" for segment in trace.segments for _ in segment.ids or ()]
    assert list(sample.mask) == sampled
    marks = {"environment": protocol.environment_marks, "loop": protocol.all_marks}
    for segment in trace.segments[1:]:
        if segment.by != "policy":
            assert segment.ids == CODEC.encode(segment.text, tags=marks.get(segment.by, ()))
