"""Traces written by hand, of which every figure can be worked out on paper."""

from collections.abc import Sequence

from agent.evidence import Passage
from agent.plan import Node, Plan
from agent.sources.questions import GoldQuestion
from agent.trace import (
    Answered,
    Claim,
    Evidenced,
    Gathered,
    Merged,
    Planned,
    Searched,
    SearchFailed,
    Skipped,
    Step,
    Stopped,
    Timings,
    Trace,
    Usage,
)

QUESTION = GoldQuestion(
    id="q1", question="Where was the builder of Tarn Harbour born?", answers=("Dell",), supporting=("harbour", "marn")
)


def passage(key: str, text: str, *, number: int = 0, title: str = "", url: str = "") -> Passage:
    return Passage(id=key, source="web", title=title or key.title(), text=text, url=url, number=number)


HARBOUR = passage("harbour", "Tarn Harbour is old. It was built by Ilse Marn.", number=1)
FERRY = passage("ferry", "The ferry to Brell leaves at noon.", number=2)
MARN = passage("marn", "Ilse Marn was an engineer. She was born in Dell in 1871.", number=3)


def trace_of(*steps: Step, shown: Sequence[Passage] = (), usage: Usage | None = None) -> Trace:
    return Trace(
        id="t1",
        question=QUESTION.question,
        protocol="cairn",
        policy="scripted",
        steps=list(steps),
        passages=list(shown),
        usage=usage or Usage(),
        timings=Timings(total=2.0, policy=1.5, search=0.5, first_token=0.1),
    )


def whole() -> Trace:
    """Two rounds, four queries of which one failed, one repeated an earlier one and one was skipped."""
    first = Plan(
        nodes=(Node(id="A", query="builder of Tarn Harbour", source="web"), Node(id="B", query="Tarn", source="news"))
    )
    second = Plan(
        nodes=(
            Node(id="A", query="birthplace of Ilse Marn", source="web"),
            Node(id="B", query=" builder of  tarn harbour", source="web"),
            Node(id="C", query="birthplace of Ilse Marn", source="web"),
        )
    )
    return trace_of(
        Planned(round=1, plan=first),
        Searched(round=1, node="A", source="web", query="builder of Tarn Harbour", passages=(HARBOUR, FERRY)),
        SearchFailed(round=1, node="B", source="news", query="Tarn", why="no route"),
        Gathered(round=1, passages=(HARBOUR, FERRY)),
        Merged(text="Ilse Marn built Tarn Harbour [1]. The weather is fine there. Missing: her birthplace."),
        Planned(round=2, plan=second),
        Searched(round=2, node="A", source="web", query="birthplace of Ilse Marn", passages=(MARN,)),
        Searched(round=2, node="B", source="web", query=" builder of  tarn harbour", passages=()),
        Skipped(round=2, node="C", why="the budget of searches has ended"),
        Gathered(round=2, passages=(MARN,)),
        Evidenced(
            text="…",
            claims=(
                Claim(text="Ilse Marn was an engineer.", cites=(3,)),
                Claim(text="Ilse Marn was born in Dell", cites=(3, 7)),
                Claim(text="The ferry is late", cites=(2,)),
                Claim(text="Tarn is large", cites=()),
            ),
        ),
        Answered(text="Dell"),
        Stopped(reason="answered"),
        shown=(HARBOUR, FERRY, MARN),
        usage=Usage(
            prompt_tokens=10, policy_tokens=80, answer_tokens=2, rounds=2, searches=4, passages=3, credits=2, usd=0.01
        ),
    )
