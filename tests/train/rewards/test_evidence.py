"""R-Search's rewards: F1, F1 of what a reader makes of the evidence, and the four values of the format."""

import pytest

from tests.train.rewards.rollouts import EVIDENCE, NEXT, QUERY, parts, rewarded, rollout, said
from train.rewards import RewardTools

BLOCK = "<original_evidence>Lina Orr was born in Trieste.</original_evidence>"


class Finds:
    """A reader that answers with the first of its words that is in the evidence."""

    def __init__(self, *words: str, fails: bool = False) -> None:
        self.words, self.fails = words, fails
        self.read_evidence: list[str] = []

    async def read(self, question: str, evidence: str) -> str | None:
        self.read_evidence.append(evidence)
        return None if self.fails else next((word for word in self.words if word in evidence), "unknown")


def tools() -> RewardTools:
    return RewardTools(reader=Finds("Trieste", "Rome"))


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ((QUERY, NEXT, EVIDENCE + said("Trieste")), (1.0, 1.0, 0.4)),
        # the evidence is right, the answer is not
        ((QUERY, NEXT, EVIDENCE + said("Rome")), (0.0, 1.0, 0.4)),
        # the answer is right, the evidence leads elsewhere
        ((QUERY, NEXT, "<original_evidence>Tom lives in Rome.</original_evidence>" + said("Trieste")), (1.0, 0.0, 0.4)),
        # S = 1, E = 0: no evidence, or two blocks of it, of which the last one is read
        ((QUERY, said("Trieste")), (1.0, 0.0, 0.2)),
        ((QUERY, NEXT, BLOCK + "And: " + BLOCK + said("Trieste")), (1.0, 1.0, 0.2)),
        # S = 0: the evidence's share is given, and r_e is 0
        ((said("Trieste"),), (1.0, 0.0, 0.4)),
        ((BLOCK + said("Trieste"),), (1.0, 0.0, 0.4)),
        # S = 0, A = 0; S = 1, E = 1, A = 0: its turn ended without an answer
        (("I do not search.",), (0.0, 0.0, 0.2)),
        ((QUERY, BLOCK + "It is Trieste."), (0.0, 1.0, 0.2)),
        ((QUERY, "It is Trieste."), (0.0, 0.0, 0.0)),
    ],
)
def test_the_printed_parts(turns: tuple[str, ...], expected: tuple[float, float, float]):
    found = parts("evidence", rollout("evidence", *turns), variant="printed", tools=tools())
    assert found == dict(zip(("answer", "evidence", "format"), expected, strict=True))


def test_grounded_hands_over_what_the_observations_say():
    reader = Finds("Trieste", "Rome")
    lied = EVIDENCE.replace("born in Trieste.", "born in Trieste.\nLina Orr was born in Rome.\nIt is Trieste.")
    trace = rollout("evidence", QUERY, NEXT, lied + said("Trieste"))
    parts("evidence", trace, tools=RewardTools(reader=reader), evidence_share=None)
    assert reader.read_evidence == ["Tarn Harbour was built by Lina Orr.\nLina Orr was born in Trieste."]


def test_ours_pays_an_honest_rollout_in_full():
    trace = rollout("evidence", QUERY, NEXT, EVIDENCE + said("Trieste"))
    assert parts("evidence", trace, tools=tools()) == {"answer": 1.0, "evidence": 1.0, "format": 0.4}


def test_without_a_reader_evidence_counts_that_holds_the_answer():
    trace = rollout("evidence", QUERY, NEXT, EVIDENCE + said("Rome"))
    assert parts("evidence", trace, reader="cover") == {"answer": 0.0, "evidence": 1.0, "format": 0.4}
    missed = rollout("evidence", QUERY, NEXT, EVIDENCE.replace("Lina Orr was born in Trieste.", "") + said("Trieste"))
    assert parts("evidence", missed, reader="cover")["evidence"] == 0.0


def test_a_reader_that_fails_masks_the_rollout():
    trace = rollout("evidence", QUERY, NEXT, EVIDENCE + said("Trieste"))
    assert rewarded("evidence", trace, tools=RewardTools(reader=Finds(fails=True))) is None


def test_a_reader_gets_no_request_where_there_is_nothing_to_read():
    reader = Finds("Trieste")
    for turns in ((QUERY, said("Trieste")), (BLOCK + said("Trieste"),)):
        parts("evidence", rollout("evidence", *turns), variant="printed", tools=RewardTools(reader=reader))
    assert not reader.read_evidence


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("Lina Orr was born in Trieste.", True),
        ("She was born in Trieste.", True),
        ("She lives in Trieste.", False),
        ("It is Trieste.", False),
        ("Trieste", False),
        ("in Trieste", False),
    ],
)
def test_a_line_must_say_more_than_the_answer_or_be_a_whole_sentence_that_was_shown(line: str, counts: bool):
    trace = rollout("evidence", QUERY, NEXT, f"<original_evidence>{line}</original_evidence>" + said("Trieste"))
    assert parts("evidence", trace, tools=tools())["evidence"] == float(counts)
