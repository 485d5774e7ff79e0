"""Runs that never ran: results, traces and folders for the tests of reports."""

import json
from collections.abc import Sequence
from pathlib import Path

from agent.evidence import Passage
from agent.plan import Node, Plan
from agent.trace import (
    Answered,
    Claim,
    Evidenced,
    Gathered,
    Merged,
    Planned,
    Searched,
    Segment,
    Stopped,
    Thought,
    Timings,
    Trace,
    Usage,
)
from train.evaluation.result import QuestionResult

SETTINGS = {"policy": "scripted", "protocol": "cairn 1", "questions": "questions.jsonl", "cairn": "0"}


def result(number: int, prediction: str = "yes", **facts: object) -> QuestionResult:
    """A scored question whose gold answer is "yes"; facts that are no field of a result are metrics."""
    right = float(prediction == "yes")
    fields: dict[str, object] = {
        "id": f"q{number}",
        "question": f"Is it number {number}?",
        "type": "chain",
        "hops": 1 + number % 2,
        "answers": ("yes",),
        "prediction": prediction,
        "stopped": "answered",
        "trace": f"t{number}",
    }
    metrics: dict[str, object] = {"em": right, "f1": right, "cover": right}
    for name, value in facts.items():
        (fields if name in QuestionResult.model_fields else metrics)[name] = value
    return QuestionResult.model_validate(fields | {"metrics": metrics})


def failed(number: int, failure: str = "engine") -> QuestionResult:
    return result(number, "", status="failed", failure=failure, detail="no route", stopped="", metrics={})


def passage(number: int, text: str, *, title: str = "A title", url: str = "") -> Passage:
    return Passage(id=f"p{number}", source="web", title=title, text=text, url=url, rank=1, node="A", number=1)


def trace(number: int, passages: Sequence[Passage], *, thought: str = "Look it up.", answer: str = "yes") -> Trace:
    shown = tuple(p.model_copy(update={"number": n}) for n, p in enumerate(passages, start=1))
    information = "".join(f"[{p.number}] {p.title} — {p.text}\n" for p in shown)
    node = Node(id="A", query="number?", source="web")
    return Trace(
        id=f"t{number}",
        question=f"Is it number {number}?",
        protocol="cairn",
        policy="scripted",
        segments=[
            Segment(
                by="prompt", text=f"Search well. {'Rules. ' * 40}Question: Is it number {number}?\n", ids=(1, 2, 3)
            ),
            Segment(by="policy", text=f"<think>{thought}</think>", ids=(4, 5), logprobs=(-0.1, -0.2)),
            Segment(by="environment", text=f"<information>\n{information}</information>", ids=(6,)),
            Segment(by="policy", text=f"<answer>{answer}</answer>"),
        ],
        steps=[
            Thought(text=thought, seconds=0.5),
            Planned(round=1, plan=Plan(nodes=(node,))),
            Searched(round=1, node="A", source="web", query="number?", passages=shown, took=0.25, backend="tavily"),
            Gathered(round=1, passages=shown),
            Merged(text="It is [1]."),
            Evidenced(text="- It is. [1]", claims=(Claim(text="It is.", cites=(1,)),)),
            Answered(text=answer),
            Stopped(reason="answered"),
        ],
        passages=list(shown),
        usage=Usage(policy_tokens=20, rounds=1, searches=1),
        timings=Timings(total=1.5),
    )


def stored(
    folder: Path,
    results: Sequence[QuestionResult],
    traces: Sequence[Trace] = (),
    *,
    settings: dict[str, str] | None = None,
) -> Path:
    """The folder of such a run."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(SETTINGS | (settings or {})), encoding="utf-8")
    (folder / "results.jsonl").write_text("".join(r.model_dump_json() + "\n" for r in results), encoding="utf-8")
    (folder / "traces.jsonl").write_text("".join(t.model_dump_json() + "\n" for t in traces), encoding="utf-8")
    return folder
