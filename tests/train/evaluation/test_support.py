import pytest

from agent.evidence import Passage
from agent.trace import Claim, Evidenced, Merged, Reflected
from tests.train.evaluation.traces import FERRY, HARBOUR, MARN, passage, trace_of
from train.evaluation.support import Support, check, check_claims, claims_of
from train.evaluation.words import sentences

LONG = passage(
    "long",
    "Ilse Marn built Tarn Harbour in 1901. The works took six years. She never visited Brell. Oda Lint was mayor then.",
)


@pytest.mark.parametrize(
    ("claim", "support"),
    [
        ("Ilse Marn built Tarn Harbour in 1901.", "verbatim"),
        ("ilse marn built TARN harbour", "verbatim"),
        ("Tarn Harbour, built by Ilse Marn, took six years of works", "close"),
        ("Tarn Harbour was built by Ilse Marn in 1902", "not_found"),
        ("Tarn Harbour was built by Oda Lint in 1901", "not_found"),
        ("Ilse Marn built Tarn Harbour and Oda Lint was mayor", "not_found"),
        ("She visited Brell", "not_found"),
        ("Ilse Marn did not build Tarn Harbour", "not_found"),
        ("", "not_found"),
        ("…", "not_found"),
    ],
)
def test_a_claim_stands_in_a_passage_verbatim_closely_or_not(claim: str, support: Support):
    assert check(claim, [FERRY, LONG]) == support


def test_the_title_counts_as_part_of_the_passage():
    marn = passage("m", "She was born in Dell.", title="Ilse Marn")
    assert check("Ilse Marn was born in Dell", [marn]) == "close"
    assert check("Ilse Marn was born in Dell", [passage("m", "She was born in Dell.")]) == "not_found"


def test_two_passages_do_not_support_a_claim_together():
    assert check("Tarn Harbour is old and Ilse Marn was born in Dell", [HARBOUR, MARN]) == "not_found"


def test_a_claim_without_a_passage_that_was_shown_is_uncited():
    trace = trace_of(
        Evidenced(text="", claims=(Claim(text="Marn built it", cites=()), Claim(text="She built it", cites=(9,)))),
        shown=(HARBOUR,),
    )
    assert [claim.support for claim in check_claims(trace)] == ["uncited", "uncited"]


def test_claims_come_from_the_last_evidence_or_else_from_what_a_last_merge_cites():
    merged = Merged(text="It is old [1]. It rained. Ilse Marn built it [1][2].")
    evidence = Evidenced(text="", claims=(Claim(text="It is old", cites=(1,)),))
    assert claims_of(trace_of(evidence, merged)) == evidence.claims
    assert [claim.cites for claim in claims_of(trace_of(merged))] == [(1,), (1, 2)]
    assert [claim.cites for claim in claims_of(trace_of(merged, Reflected(text="Old [3].")))] == [(3,)]
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


@pytest.mark.parametrize(
    "claim", ["The birth year of Wastim Harvane is 1994.", "A birth year of Wastim Harvane: 1994."]
)
def test_an_article_at_the_beginning_of_a_claim_is_no_name(claim: str):
    text = "Wastim Harvane is a singer. The birth year is 1994."
    page = Passage(id="p", source="web", title="Wastim Harvane", text=text)
    assert check(claim, [page]) == "close"
