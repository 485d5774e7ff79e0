import pytest

from agent.checks.claims import derived_claims
from agent.trace import Claim, Evidenced, Gathered, Merged, Reflected
from tests.train.evaluation.traces import HARBOUR, trace_of
from train.evaluation.support import claims_of, support_of
from train.evaluation.words import sentences

MERGED = "Tarn Harbour is old [1]. It rained. Ilse Marn built it [1][2]."


def test_a_claim_without_a_passage_that_was_shown_is_uncited():
    claims = (Claim(text="Marn built it", cites=()), Claim(text="She built it", cites=(9,)))
    trace = trace_of(Gathered(round=1, passages=(HARBOUR,)), Evidenced(text="", claims=claims), shown=(HARBOUR,))
    assert [support_of(claim, observed=[1]) for claim in claims_of(trace)] == ["uncited", "uncited"]


def test_claims_of_an_older_trace_are_checked_when_they_are_read():
    claims = (
        Claim(text="Ilse Marn built Tarn Harbour", cites=(1,)),
        Claim(text="It was built by Oda Lint", cites=(1,)),
    )
    trace = trace_of(Gathered(round=1, passages=(HARBOUR,)), Evidenced(text="", claims=claims), shown=(HARBOUR,))
    assert [support_of(claim, observed=[1]) for claim in claims_of(trace)] == ["close", "not_found"]


def test_claims_come_from_the_last_evidence_or_else_from_the_last_merge_or_reflection():
    merged = Merged(text=MERGED, claims=derived_claims(MERGED))
    reflected = Reflected(text="Old [3].", claims=derived_claims("Old [3]."))
    evidence = Evidenced(text="", claims=(Claim(text="It is old", cites=(1,), check="close"),))
    assert claims_of(trace_of(evidence, merged)) == evidence.claims
    assert [claim.cites for claim in claims_of(trace_of(merged))] == [(1,), (1, 2)]
    assert [claim.cites for claim in claims_of(trace_of(merged, reflected))] == [(3,)]
    assert claims_of(trace_of()) == ()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("J. R. Marn built it. It is old.", ["J. R. Marn built it.", "It is old."]),
        ("Dr. Lint came. He left", ["Dr. Lint came.", "He left"]),
        ("It cost 3.5 million. e.g. this", ["It cost 3.5 million. e.g. this"]),
        ("一つ。二つ。", ["一つ。", "二つ。"]),
        ("one\ntwo", ["one", "two"]),
        ("", []),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str, parts: list[str]):
    assert sentences(text) == parts
