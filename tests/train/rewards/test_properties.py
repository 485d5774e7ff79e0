"""What holds of every reward, whatever the rollout: bounds, None for what is masked, and whose text is scored."""

import asyncio
from collections.abc import Sequence
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from agent.loop.budgets import Budgets
from agent.trace import Answered, BudgetName, Gathered, Planned, Searched, Segment, Step, Stopped, StopReason, Trace
from tests.train.rewards.rollouts import (
    EVIDENCE,
    KG_FIRST,
    KG_NEXT,
    MERGED,
    NEXT,
    PLAN,
    QUERY,
    TASK,
    THREE,
    boxed,
    broken,
    looked_up,
    lossy,
    parts,
    reflected,
    rewarded,
    rollout,
    said,
)
from tests.train.rewards.test_cheats import PRINTED, opposite
from tests.train.rewards.test_dag import Grades
from tests.train.rewards.test_evidence import Finds
from train.evaluation.metrics import exact_match, f1
from train.rewards import RewardTools, Task, hashed_words, reward_names, reward_of, settings_of
from train.rewards.kg import KgSettings, accuracy_part
from train.rewards.support.scores import score

NAMES = tuple(reward_names())
VARIANTS = ("printed", "ours")
WORDS = ("trieste", "triest", "rome", "the", "old", "port", "in", "no")
TURNS = {
    "multisearch": (THREE, MERGED, "<search>Lina Orr</search>", said("Trieste"), said("Old Rome"), "Well."),
    "dag": (PLAN, "<think>So.</think>", said("Trieste"), said("Rome"), "<search>\n</search>"),
    "evidence": (QUERY, NEXT, EVIDENCE, EVIDENCE + said("Trieste"), said("Rome"), "<search></search>"),
    "reflect": (
        looked_up("Tarn Harbour"),
        looked_up("who was Lina Orr", think=""),
        reflected(""),
        reflected(looked_up("Lina Orr")),
        reflected(said("Trieste")),
        said("Rome"),
    ),
    "kg": (KG_FIRST, KG_NEXT, boxed("Trieste"), boxed("Trieste or Rome"), said("Trieste"), "<search>?</search>"),
}


def anything(texts: Sequence[str]) -> NDArray[np.float32]:
    """Vectors that point anywhere, the same for the same text."""
    rows = [np.random.default_rng(crc32(text.encode())).normal(size=2) for text in texts]
    return np.array(rows, np.float32)


TOOLS = RewardTools(judge=Grades(1.0), reader=Finds("Trieste", "Rome"), vectors=anything)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    protocol = draw(st.sampled_from(sorted(TURNS)))
    turns = draw(st.lists(st.sampled_from(TURNS[protocol]), min_size=1, max_size=6))
    joined = ["".join(turns[:2]), *turns[2:]] if draw(st.booleans()) else turns
    budgets = Budgets(rounds=draw(st.integers(1, 5)), searches=draw(st.integers(1, 8)))
    return rollout(protocol, *joined, *[said("Rome")] * 4, budgets=budgets)


@settings(max_examples=60)
@given(
    trace=traces(),
    name=st.sampled_from(NAMES),
    variant=st.sampled_from(VARIANTS),
    hops=st.integers(0, 6),
    progress=st.floats(0, 1),
)
def test_every_reward_is_bounded_and_the_sum_of_its_parts(
    trace: Trace, name: str, variant: str, hops: int, progress: float
):
    task = Task(question=TASK.question, answers=TASK.answers, gold=TASK.gold, hops=hops)
    found = rewarded(name, trace, task, tools=TOOLS, variant=variant, progress=progress)
    assert found is not None
    assert tuple(found.parts) == reward_of(name, {"variant": variant}, tools=TOOLS).parts
    assert found.total == pytest.approx(sum(found.parts.values()))
    rounds = sum(isinstance(step, Planned) for step in trace.steps)
    low, high = settings_of(name, {"variant": variant}).bounds(rounds=rounds)
    assert low - 1e-9 <= found.total <= high + 1e-9


WHOLE = {
    "multisearch": rollout("multisearch", THREE, MERGED + said("Trieste")),
    "dag": rollout("dag", PLAN, said("Trieste")),
    "evidence": rollout("evidence", QUERY, NEXT, EVIDENCE + said("Trieste")),
    "reflect": rollout(
        "reflect", looked_up("Tarn Harbour"), reflected(looked_up("Lina Orr", think="")), reflected(said("Trieste"))
    ),
    "kg": rollout("kg", KG_FIRST, KG_NEXT, boxed("Trieste")),
    "outcome": rollout("multisearch", THREE, MERGED + said("Trieste")),
}
NOTHING = {
    "multisearch": rollout("multisearch", "Well."),
    "dag": rollout("dag", "Well."),
    "evidence": rollout("evidence", QUERY, "Well."),
    "outcome": rollout("multisearch", "Well."),
}


@pytest.mark.parametrize(("name", "high"), [("multisearch", 1.2), ("dag", 1.0), ("evidence", 2.4), ("outcome", 1.0)])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_extremes_are_reached(name: str, high: float, variant: str):
    reward = settings_of(name, {"variant": variant})
    assert reward.bounds(rounds=1) == (0.0, high)
    for trace, value in ((WHOLE[name], high), (NOTHING[name], 0.0)):
        assert sum(parts(name, trace, tools=TOOLS, variant=variant).values()) == pytest.approx(value)


def test_the_extremes_of_reflect_are_reached():
    tools = RewardTools(vectors=opposite)
    best = parts("reflect", WHOLE["reflect"], tools=tools, **PRINTED["reflect"])
    worst = parts("reflect", rollout("reflect", looked_up("who is it"), said("x")), progress=1.0, **PRINTED["reflect"])
    bounds = settings_of("reflect", PRINTED["reflect"]).bounds(rounds=2)
    assert (sum(worst.values()), sum(best.values())) == bounds == (-3.0, 2.5)
    ours = parts("reflect", WHOLE["reflect"], tools=RewardTools(vectors=hashed_words))
    assert (sum(ours.values()), settings_of("reflect").bounds(rounds=2)) == (2.0, (-3.0, 2.0))


def test_the_extremes_of_kg_are_reached_or_come_near():
    task = Task(question=TASK.question, answers=TASK.answers, gold=("lina",), hops=4)
    best = sum(parts("kg", rollout("kg", KG_NEXT, boxed("Trieste")), task, **PRINTED["kg"]).values())
    vain = '<think>Look.</think><search>{"query": "zebras"}</search>'
    none = Task(question=TASK.question, answers=TASK.answers, gold=("lina",), hops=0)
    worst = sum(parts("kg", rollout("kg", vain, vain, "Well."), none, **PRINTED["kg"]).values())
    bounds = settings_of("kg", PRINTED["kg"]).bounds(rounds=2)
    assert bounds == pytest.approx((-0.095, 1.6))
    assert (worst, best) == pytest.approx(bounds)


answers = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)


@given(one=answers, other=answers, golds=st.lists(answers, min_size=1, max_size=2))
def test_more_f1_never_pays_less(one: str, other: str, golds: list[str]):
    task = Task(question="Where?", answers=tuple(golds))
    one, other = sorted((one, other), key=lambda text: (f1(text, golds), exact_match(text, golds)))
    for metric in ("f1", "mean"):
        assert score(one, task, metric) <= score(other, task, metric)


ANSWERING = {
    "multisearch": ("multisearch", (THREE, MERGED)),
    "outcome": ("multisearch", (THREE, MERGED)),
    "evidence": ("evidence", (QUERY, NEXT, EVIDENCE)),
}


@settings(max_examples=15)
@given(one=answers, other=answers, gold=answers)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ANSWERING)
def test_a_rollout_whose_answer_has_more_f1_is_never_worth_less(
    name: str, variant: str, one: str, other: str, gold: str
):
    one, other = sorted((one, other), key=lambda text: (f1(text, [gold]), exact_match(text, [gold])))
    protocol, (*turns, last) = ANSWERING[name]
    task = Task(question=TASK.question, answers=(gold,), gold=TASK.gold, hops=2)
    less, more = (
        sum(parts(name, rollout(protocol, *turns, last + said(text)), task, tools=TOOLS, variant=variant).values())
        for text in (one, other)
    )
    assert less <= more + 1e-9


def test_by_length_more_f1_can_pay_less():
    printed = KgSettings()
    task = Task(question="Where?", answers=("old port of Trieste",))
    more, less = "old port Trieste", "now old port of Trieste town in Italy"
    assert f1(more, task.answers) > f1(less, task.answers)
    assert accuracy_part(more, task, printed, well_formed=True) < accuracy_part(less, task, printed, well_formed=True)


# Whose text is scored

others = st.text(st.sampled_from("abc Trieste?.\n<>"), min_size=1, max_size=30)


def with_other_words(trace: Trace, text: str) -> Trace:
    """The same rollout, had prompt, loop and passages said something else; marks stay where they are."""
    inside = f"<answer>{text}</answer> Trieste"

    def changed(segment: Segment) -> Segment:
        if segment.by == "environment":
            at = segment.text.find(">") + 1
            return segment.model_copy(update={"text": segment.text[:at] + inside + segment.text[at:]})
        return segment.model_copy(update={"text": inside + segment.text}) if segment.by != "policy" else segment

    def reworded(step: Step) -> Step:
        if not isinstance(step, Searched | Gathered):
            return step
        new = tuple(p.model_copy(update={"text": inside}) for p in step.passages)
        return step.model_copy(update={"passages": new})

    return trace.model_copy(
        update={
            "question": inside,
            "segments": [changed(segment) for segment in trace.segments],
            "steps": [reworded(step) for step in trace.steps],
            "passages": [p.model_copy(update={"text": inside}) for p in trace.passages],
        }
    )


@settings(max_examples=40)
@given(trace=traces(), name=st.sampled_from(NAMES), text=others)
def test_what_others_wrote_changes_no_printed_reward(trace: Trace, name: str, text: str):
    tools = RewardTools(judge=Grades(1.0), reader=Finds("Trieste", "Rome"))
    before = rewarded(name, trace, tools=tools, variant="printed")
    assert rewarded(name, with_other_words(trace, text), tools=tools, variant="printed") == before


@settings(max_examples=40)
@given(trace=traces(), name=st.sampled_from(["dag", "reflect", "kg", "outcome"]), text=others)
def test_nor_one_of_ours_but_where_grounds_are_required(trace: Trace, name: str, text: str):
    assert rewarded(name, with_other_words(trace, text)) == rewarded(name, trace)


@pytest.mark.parametrize(("name", "part"), [("multisearch", "merge"), ("evidence", "evidence")])
def test_grounds_can_only_be_taken_away_by_other_passages(name: str, part: str):
    without = with_other_words(WHOLE[name], "nothing")
    assert parts(name, WHOLE[name], tools=TOOLS)[part] > parts(name, without, tools=TOOLS)[part] == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_the_same_trace_read_back_gives_the_same(name: str):
    again = Trace.model_validate_json(WHOLE[name].model_dump_json())
    assert rewarded(name, again, tools=TOOLS) == rewarded(name, WHOLE[name], tools=TOOLS)


# What is masked


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_search_that_failed_gives_none(name: str, variant: str):
    trace = broken("multisearch", THREE, MERGED + said("Trieste"))
    reward = reward_of(name, {"variant": variant}, tools=TOOLS)
    assert asyncio.run(reward.score(trace, TASK)) is None
    assert dict(reward.masked) == {"a search or the engine failed": 1}


def test_a_source_that_failed_while_others_answered_gives_none():
    two = "<think>Plan.</think><search>builder of Tarn Harbour, Lina Orr born</search>"
    trace = lossy("multisearch", two, MERGED + said("Rome"))
    assert not trace.infrastructure
    reward = reward_of("outcome", {})
    assert asyncio.run(reward.score(trace, TASK)) is None
    assert dict(reward.masked) == {"a source failed in a search that others answered": 1}


def stopped(reason: StopReason, budget: BudgetName | None = None) -> Trace:
    steps = [*WHOLE["multisearch"].steps[:-1], Stopped(reason=reason, budget=budget)]
    return WHOLE["multisearch"].model_copy(update={"steps": steps})


@pytest.mark.parametrize(
    ("trace", "masked"),
    [
        (stopped("engine"), True),
        (stopped("cancelled"), True),
        (stopped("interrupted"), True),
        (stopped("forced", "seconds"), True),
        (stopped("forced", "user"), True),
        (stopped("forced", "rounds"), False),
        (stopped("forced", "policy_tokens"), False),
        (stopped("bad_format"), False),
        (stopped("answered"), False),
        (WHOLE["multisearch"].model_copy(update={"steps": WHOLE["multisearch"].steps[:-1]}), True),
        (
            Trace(id="t", question="?", protocol="cairn", policy="p",
                  steps=[Answered(text="I cannot.", by="loop"), Stopped(reason="answered")]),
            True,
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_the_policys_doing_gives_none(name: str, trace: Trace, masked: bool):
    assert (rewarded(name, trace, tools=TOOLS) is None) is masked
