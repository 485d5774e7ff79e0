"""Golden transcripts of every protocol and profile: a script in, the exact texts, token ids and loss mask out.

`python -m tests.agent.test_golden_protocols` writes them again, on purpose only: read the difference, white space too.
"""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from agent.evidence import Passage
from agent.loop.agent import Agent, Budgets
from agent.policies.base import Sampling
from agent.policies.token_context import Sampled, TokenContext
from agent.policies.tokens import Codec
from agent.protocols import TextProtocol, profile_names, protocol_named, protocol_names
from agent.protocols.registry import whole
from agent.sources.base import SearchRequest, SearchResult, Source
from agent.trace import Trace
from agent.trace.samples import to_samples
from tests.conftest import answer

FOLDER = Path(__file__).parent.parent / "golden" / "protocols"
CODEC = Codec((FOLDER / "tokenizer.json").read_text(encoding="utf-8"), ends=["<eos>"])
NAMES = [*protocol_names(), *profile_names()]
QUESTION = "Who wrote Dune, the <search> novel"
"""It holds a mark, which must stay text, and ends without a question mark."""
FOREIGN: Mapping[str, str] = {
    "prompt": "A made-up prompt. Question: {question}\n",
    "system": "A made-up system text of {date}.",
    "invalid": "\nA made-up sentence: that was neither a search nor an answer.\n",
}
PLAIN_PROMPTS = {
    "r1-searcher": "A made-up prompt.\n\nUser:{question}\nAssistant: <think>",
    "research-base": "A made-up prompt. User: {question}. Assistant:",
}
LONG, NOTHING, SHORT = "long story of Dune", "nothing on Mars", "Frank Herbert"


@dataclass(frozen=True)
class Library:
    """Finds two short passages, one far too long, or nothing, as the query says; one says a mark of the protocol."""

    name: str
    mark: str

    async def search(self, request: SearchRequest) -> SearchResult:
        query = request.query
        if "nothing" in query:
            return SearchResult()
        texts = ["spice must flow " * 400] if "long" in query else [f"Herbert {self.mark} wrote it.", 'So "it" is.']
        passages = tuple(
            Passage(
                id=f"{self.name}-{query}-{n}",
                source=self.name,
                title=f"{query.strip('[]').title()} {n}",
                text=text,
                url=f"https://{self.name}.example/{n}",
                date="1965-08-01" if n == 1 else "",
            )
            for n, text in enumerate(texts, start=1)
        )
        return SearchResult(passages[: request.limit])


@dataclass
class ScriptedTokens:
    """A policy that samples the ids of a script, turn by turn; it ends a turn that holds no stop text itself."""

    turns: Sequence[str]
    marks: Sequence[str]
    said: int = 0
    name: str = "scripted"
    context_tokens: int = 16_384
    continues: bool = True
    instructed: bool = False
    prompts: list[TokenContext] = field(default_factory=list[TokenContext])

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> TokenContext:
        return TokenContext(
            self, CODEC, protocol, question, limit=self.context_tokens, history=tuple(history), date=date
        )

    async def sample(
        self, ids: Sequence[int], sampling: Sampling, *, ends: frozenset[int], max_tokens: int
    ) -> AsyncGenerator[list[Sampled]]:
        turn = self.turns[self.said]
        self.said += 1
        for number in (*CODEC.encode(turn, tags=self.marks), CODEC.eos):
            yield [(number, -0.5)]

    async def aclose(self) -> None:
        """There is nothing to close."""


def protocol_of(name: str) -> TextProtocol:
    """The protocol with made-up foreign texts, and so few characters that the files stay small."""
    protocol = protocol_named(name)
    texts = {key: FOREIGN[key] for key in protocol.foreign}
    if name in PLAIN_PROMPTS:
        texts["prompt"] = PLAIN_PROMPTS[name]
    few = {"budget_chars": 500, "graph_chars": 0} if protocol.budget_tokens != 500 else {}
    return whole(protocol.model_copy(update=texts | few))


def script_of(protocol: TextProtocol) -> list[str]:
    """Three rounds, or as many as there are: too much is found, the call is invalid, nothing is found; the answer."""
    if protocol.plans == 1:
        return [_think(protocol, first=True) + _search(protocol, LONG, NOTHING), "\n" + _answer(protocol)]
    invalid = "I do not know what to do." if protocol.invalid else _block(protocol, "search", _invalid(protocol))
    return [
        _think(protocol, first=True) + _search(protocol, LONG, SHORT),
        _after(protocol) + _think(protocol) + invalid,
        _think(protocol) + _search(protocol, NOTHING, NOTHING),
        _after(protocol) + _think(protocol) + _answer(protocol),
    ]


def _block(protocol: TextProtocol, role: Any, text: str) -> str:
    return f"{protocol.opening(role)}{text}{protocol.closing(role)}"


def _think(protocol: TextProtocol, *, first: bool = False) -> str:
    inside = protocol.opened == "thought" and (first or protocol.deliver == "user")
    if "thought" not in protocol.tags or (protocol.opened == "thought" and not inside):
        return "I think.\n"
    if protocol.name.startswith("r1-searcher"):
        return "I think.\n"  # it searches inside of its thought
    return ("" if inside else protocol.opening("thought")) + "I think." + protocol.closing("thought") + "\n"


def _search(protocol: TextProtocol, query: str, other: str) -> str:
    match protocol.plan:
        case "lines":
            return _block(protocol, "search", f"\nA: {query} (web)\nB: {other} (news)\nC: tide (moon)\nA -> B\n"
                          if protocol.unknown_source == "drop" else f"\nA: {query} (web)\nB: {other} (news)\n")  # fmt: skip
        case "queries":
            return _block(protocol, "search", f"{query}{protocol.separator} {other}")
        case "query":
            return _block(protocol, "search", f" {query} ")
        case "graph":
            call = {"query": query, "entity": [other], "relation": ["author"]}
            return _block(protocol, "search", json.dumps(call))
        case "calls":
            tool = next(iter(protocol.tools))
            if protocol.several:
                return "\n".join(_block(protocol, "search", f"\n{_call(tool, text)}\n") for text in (query, other))
            return _block(protocol, "search", f"\n{_call(tool, [query, other])}\n")


def _call(tool: str, query: object) -> str:
    return json.dumps({"name": tool, "arguments": {"query": query}})


def _invalid(protocol: TextProtocol) -> str:
    return {
        "lines": "\nA: tide (moon)\n",
        "queries": " , ",
        "query": " ",
        "graph": "who wrote it",
        "calls": '\n{"name": "python", "arguments": {"code": "1 + 1"}}\n',
    }[protocol.plan]


def _after(protocol: TextProtocol) -> str:
    """What the policy writes of what it was shown."""
    roles = [role for role in ("merge", "reflect") if role in protocol.tags]
    return "".join(_block(protocol, role, "Herbert wrote it [1].") + "\n" for role in roles)


def _answer(protocol: TextProtocol) -> str:
    evidence = _block(protocol, "evidence", "\n- Herbert wrote it. [1]\n") + "\n" if "evidence" in protocol.tags else ""
    if protocol.closing("answer") == "}":
        return "It is \\[ \\boxed{Frank \\text{Herbert}} \\]."
    late = protocol.closing("thought") + "\n\n" if protocol.name.startswith("r1-searcher") else ""
    said = "It is \\boxed{Frank Herbert}." if protocol.answer_in == "boxed" else " Frank Herbert "
    return late + evidence + _block(protocol, "answer", said)


def rollout(name: str) -> Trace:
    protocol = protocol_of(name)
    sources: dict[str, Source] = {
        key: Library(key, protocol.closing("search")) for key in ("web", "news", "all", "kg", "documents", "arxiv")
    }
    policy = ScriptedTokens(script_of(protocol), protocol.all_marks)
    agent = Agent(policy, protocol, sources, Budgets(), today=lambda: date(2026, 1, 2))
    return answer([], question=QUESTION, agent=agent)


def golden(trace: Trace) -> dict[str, Any]:
    """What a golden file holds: who said what, in texts and ids, and what came of it."""
    return {
        "segments": [
            {"by": segment.by, "text": segment.text, "ids": " ".join(map(str, segment.ids or ()))}
            for segment in trace.segments
        ],
        "steps": [step.kind for step in trace.steps],
        "why": [step.why for step in trace.steps if step.kind == "plan_rejected"],
        "answer": trace.answer,
    }


def masked(trace: Trace) -> Iterator[tuple[int, bool]]:
    (sample,) = to_samples(trace)
    return zip(sample.ids, sample.mask, strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_script_gives_the_golden_texts_ids_and_mask(name: str):
    trace = rollout(name)
    wanted = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert golden(trace) == wanted
    segments = [(part["by"] == "policy", part["ids"].split()) for part in wanted["segments"]]
    assert list(masked(trace)) == [(int(number), sampled) for sampled, numbers in segments for number in numbers]


@pytest.mark.parametrize("name", NAMES)
def test_every_script_ends_with_the_answer_of_the_policy(name: str):
    trace = rollout(name)
    stopped = trace.stopped
    assert stopped is not None
    assert (stopped.reason, stopped.detail) == ("answered", "")
    assert trace.answer in {"Frank Herbert", "Frank \\text{Herbert}"}


@pytest.mark.parametrize("name", NAMES)
def test_marks_in_a_question_or_in_a_passage_are_text(name: str):
    """A mark in the question is never a control token; one in a passage is not even spelled."""
    trace = rollout(name)
    prompt = trace.segments[0]
    assert "the <search> novel" in prompt.text
    assert CODEC.id_of("<search>") not in (prompt.ids or ())
    text = "".join(segment.text for segment in trace.segments if segment.by == "environment")
    mark = protocol_of(name).closing("search")
    assert mark not in text


def test_every_golden_transcript_is_of_a_protocol():
    assert sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != "tokenizer") == sorted(NAMES)


if __name__ == "__main__":
    for each in NAMES:
        text = json.dumps(golden(rollout(each)), ensure_ascii=False, indent=1)
        (FOLDER / f"{each}.json").write_text(text + "\n", encoding="utf-8", newline="\n")
