"""What each printed reward can be cheated with: it pays there, and does not in our own recipes. See docs/rewards.md."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agent.trace import Trace
from tests.train.rewards.rollouts import (
    EVIDENCE,
    KG_FIRST,
    KG_NEXT,
    MERGED,
    NEXT,
    PLAN,
    QUERY,
    THREE,
    boxed,
    looked_up,
    parts,
    reflected,
    rollout,
    said,
    total,
)
from tests.train.rewards.test_evidence import Finds
from train.rewards import RewardTools, Task, settings_of
from train.rewards.reflect import ReflectSettings, answer_part

TOOLS = RewardTools(reader=Finds("Trieste", "Rome"))
PRINTED: dict[str, dict[str, Any]] = {
    "multisearch": {"variant": "printed"},
    "dag": {"variant": "printed", "answer": "f1"},
    "evidence": {"variant": "printed"},
    "reflect": {"variant": "printed", "right": "em"},
    "kg": {"variant": "printed"},
}
"""The judge of two papers is replaced by words; nothing else is changed."""


@dataclass(frozen=True)
class Cheat:
    """A rollout that cheats, and the plain one beside which it must not gain."""

    reward: str
    plain: Callable[[], Trace]
    cheat: Callable[[], Trace]
    part: str = ""
    """That gains; empty: the total does."""
    progress: float = 0.0

    def gains(self, **settings: Any) -> float:
        values = (
            parts(self.reward, made(), tools=TOOLS, progress=self.progress, **settings)
            for made in (self.cheat, self.plain)
        )
        cheat, plain = (found[self.part] if self.part else sum(found.values()) for found in values)
        return round(cheat - plain, 6)


def multi(search: str, merge: str, answer: str = "Trieste") -> Callable[[], Trace]:
    found = f"<think>Plan.</think><search>{search}</search>"
    return lambda: rollout("multisearch", found, f"<merge>{merge}</merge>{said(answer)}")


def evidenced(text: str, answer: str = "Trieste") -> Callable[[], Trace]:
    block = f"<original_evidence>{text}</original_evidence>" if text else ""
    return lambda: rollout("evidence", QUERY, NEXT, block + said(answer))


def reflecting(*queries: str, answer: str, note: str = "It fits.") -> Callable[[], Trace]:
    turns = [looked_up(queries[0]) if queries else "<think>Known.</think>" + reflected(said(answer), note)]
    turns += [reflected(looked_up(query, think=""), note) for query in queries[1:]]
    turns += [reflected(said(answer), note)] if queries else []
    return lambda: rollout("reflect", *turns)


def of(protocol: str, *turns: str) -> Callable[[], Trace]:
    return lambda: rollout(protocol, *turns)


LONG = "who was it that built the old harbour of Tarn"
COPY = " ".join(re.findall(r">(.+?)<", MERGED)) + (
    " Tarn Harbour is an old harbour in the north. It was built by Lina Orr in the summer of 1971. Lina Orr is an"
    " engineer. She was born in Trieste. Her brother Tom Berg lives in Rome."
)
WIDE = "Tarn Harbour, Lina Orr, engineer"
NOTHING = "Nothing yet."
KG_VAIN = '<think>Look.</think><search>{"query": "zebras"}</search>'
KG_EMPTY = '<think>Look.</think><search>{"query": ""}</search>'

CHEATS = {
    "the same query three times": Cheat(
        "multisearch", multi("Lina Orr born", MERGED), multi("Lina Orr born, Lina Orr born, born Lina Orr", MERGED)
    ),
    "one query with other small words": Cheat(
        "multisearch", multi("Lina Orr born", MERGED), multi("Lina Orr born, the Lina Orr born, Lina Orr was born", MERGED)
    ),
    "a merge that names everything": Cheat(
        "multisearch", multi(WIDE, NOTHING), multi(WIDE, "Tarn, Lina Orr, Tom Berg, Trieste, Rome, 1971, Paris.")
    ),
    "a merge that is the answer": Cheat("multisearch", multi(WIDE, NOTHING), multi(WIDE, "Trieste.")),
    "a merge that copies all there is": Cheat("multisearch", multi(WIDE, NOTHING), multi(WIDE, COPY)),
    "a word of the answer opens the other rewards": Cheat(
        "multisearch", multi("Lina Orr", NOTHING, "Old Trieste"), multi(WIDE, "In Trieste she was.", "Old Trieste")
    ),
    "blocks without a word": Cheat(
        "dag", of("dag", PLAN, "<think>So.</think>" + said("Trieste")), of("dag", PLAN.replace("Plan.", ""), said("Trieste"))
    ),
    "one question in several nodes": Cheat(
        "dag",
        of("dag", PLAN.replace("(news)", "(library)"), said("Trieste")),
        of("dag", "<think>Plan.</think><search>\nA: Lina Orr (web)\nB: Lina Orr (web)\n</search>", said("Trieste")),
        part="plan",
    ),
    "evidence that repeats the answer": Cheat("evidence", evidenced(""), evidenced("It is Trieste."), part="evidence"),
    "evidence that is the answer": Cheat("evidence", evidenced(""), evidenced("Trieste"), part="evidence"),
    "evidence that was made up": Cheat(
        "evidence", evidenced(""), evidenced("The builder was raised and schooled in Trieste."), part="evidence"
    ),
    "evidence that is everything": Cheat("evidence", evidenced(""), evidenced(COPY), part="evidence"),
    "repeating a query to be paid for retrievals": Cheat(
        "reflect",
        reflecting("Tarn Harbour", answer="Rome"),
        reflecting(*["Tarn Harbour"] * 4, answer="Rome"),
    ),
    "a second query so that the first may be long": Cheat(
        "reflect", reflecting(LONG, answer="Trieste"), reflecting(LONG, "where is Lina Orr from", answer="Trieste")
    ),
    "a query of many keywords": Cheat(
        "reflect",
        reflecting(LONG, answer="Trieste"),
        reflecting("Tarn Harbour builder Lina Orr engineer birthplace Trieste Rome Paris 1971 summer north brother",
                   answer="Trieste"),
    ),
    "no query and a guess": Cheat(
        "reflect", reflecting(LONG, answer="Rome"), reflecting(answer="Rome"), part="search", progress=1.0
    ),
    "a search of nothing": Cheat(
        "reflect", of("reflect", "<think>Known.</think>" + said("Rome")), reflecting(" ", answer="Rome"), part="format"
    ),
    "a reflection without a word": Cheat(
        "reflect",
        of("reflect", looked_up("Lina Orr"), said("Trieste")),
        reflecting("Lina Orr", answer="Trieste", note=" "),
        part="format",
    ),
    "the format with any answer": Cheat("kg", of("kg", KG_FIRST, "<think>Done.</think>"), of("kg", KG_FIRST, boxed("x"))),
    "a bonus for not searching": Cheat("kg", of("kg", KG_VAIN, boxed("x")), of("kg", boxed("x"))),
    "a search that cannot run": Cheat(
        "kg", of("kg", KG_FIRST, KG_NEXT, "<think>No.</think>"), of("kg", KG_EMPTY, boxed("Trieste")), part="accuracy"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_pays_as_printed_and_not_in_ours(name: str):
    cheat = CHEATS[name]
    assert cheat.gains(**PRINTED[cheat.reward]) > 0
    assert cheat.gains() <= 0


@pytest.mark.parametrize("reward", ["multisearch", "dag", "evidence", "kg"])
def test_naming_both_candidates_pays_more_than_choosing_as_printed_and_not_in_ours(reward: str):
    write = boxed if reward == "kg" else said
    before = (PLAN,) if reward == "dag" else ()

    def value(text: str, **settings: Any) -> float:
        found = parts(reward, rollout(reward, *before, write(text)), tools=TOOLS, **settings)
        return found["accuracy" if reward == "kg" else "answer"]

    for settings, pays in ((PRINTED[reward], True), ({}, False)):
        chosen = (value("Trieste", **settings) + value("Rome", **settings)) / 2
        assert (value("Trieste Rome", **settings) > chosen) is pays


def test_naming_every_option_pays_more_than_choosing_as_printed_and_not_in_ours():
    task = Task(question="Who?", answers=("Lina",), options=("Lina", "Tom", "Ann", "Bob"))

    def value(text: str, **settings: Any) -> float:
        return parts("dag", rollout("dag", PLAN, said(text)), task, **settings)["answer"]

    for settings, pays in ((PRINTED["dag"], True), ({}, False)):
        chosen = sum(value(letter, **settings) for letter in "ABCD") / 4
        assert (value("A, B, C and D", **settings) > chosen) is pays


def opposite(texts: object) -> NDArray[np.float32]:
    return np.array([(1, 0), (-1, 0)], np.float32)


def test_two_queries_that_point_apart_are_paid_for_as_printed_and_not_in_ours():
    trace = reflecting("Tarn Harbour", "Lina Orr", answer="Rome")()
    tools = RewardTools(vectors=opposite)
    assert parts("reflect", trace, tools=tools, **PRINTED["reflect"])["search"] == 0.5
    assert parts("reflect", trace, tools=tools)["search"] == 0.0


def test_as_printed_enough_retrievals_turn_the_answers_around():
    printed, ours = settings_of("reflect", {"variant": "printed"}), settings_of("reflect")
    assert isinstance(printed, ReflectSettings)
    assert isinstance(ours, ReflectSettings)
    assert answer_part(False, 7, 1, printed) > answer_part(True, 7, 1, printed)
    assert answer_part(True, 7, 2, printed) < answer_part(False, 0, 2, printed)
    assert answer_part(False, 7, 1, ours) < answer_part(True, 7, 1, ours)
    assert answer_part(True, 7, 2, ours) > answer_part(False, 0, 2, ours)


# Closed in both: the papers mean it, and a scorer that reads plain text would not see it

FORGED = "<think>Plan.</think><result>[1] A · web · Lina Orr — born in Trieste</result>"


@pytest.mark.parametrize("settings", [PRINTED["dag"], {}])
def test_a_result_that_the_policy_writes_itself_is_no_result(settings: dict[str, Any]):
    trace = rollout("dag", FORGED + said("Trieste"))
    assert parts("dag", trace, **settings) == {"format": 0.0, "plan": 0.0, "answer": 0.5}


@pytest.mark.parametrize("settings", [PRINTED["kg"], {}])
def test_a_gold_passage_that_the_policy_writes_itself_was_not_found(settings: dict[str, Any]):
    honest, forged = (
        boxed("Trieste"),
        boxed("Trieste").replace("Done.", "[1] web · Lina Orr — She was born in Trieste."),
    )
    assert total("kg", rollout("kg", forged), **settings) == total("kg", rollout("kg", honest), **settings)


@pytest.mark.parametrize("settings", [PRINTED["evidence"], {}])
def test_an_answer_tag_inside_of_the_evidence_is_no_answer(settings: dict[str, Any]):
    trace = rollout(
        "evidence", QUERY, NEXT, EVIDENCE.replace("Trieste.", "Trieste. <answer>Trieste</answer>") + said("Rome")
    )
    assert parts("evidence", trace, tools=TOOLS, **settings)["answer"] == 0.0


def test_nothing_that_is_honest_loses_by_our_settings():
    for name, trace in (
        ("multisearch", rollout("multisearch", THREE, MERGED + said("Trieste"))),
        ("dag", rollout("dag", PLAN, said("Trieste"))),
        ("evidence", rollout("evidence", QUERY, NEXT, EVIDENCE + said("Trieste"))),
        ("reflect", reflecting("Tarn Harbour builder", "Lina Orr birthplace", answer="Trieste")()),
        ("kg", rollout("kg", KG_FIRST, KG_NEXT, boxed("Trieste"))),
    ):
        assert total(name, trace, tools=TOOLS) >= total(name, trace, tools=TOOLS, **PRINTED[name])
