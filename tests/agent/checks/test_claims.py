import pytest

from agent.checks.claims import checked, derived_claims, read_claims, shown_under
from agent.evidence import Passage
from agent.trace import Evidenced, Gathered, Merged, Reflected, Thought, Trace
from tests.conftest import PLAN_TURN, answer, make_agent


def passage(number: int, text: str, title: str = "Lina Orr") -> Passage:
    return Passage(id=f"{number}{text}", source="wiki", title=title, text=text, number=number)


def gathered(*passages: Passage, round: int = 1) -> Gathered:
    return Gathered(round=round, passages=passages)


BORN = passage(1, "She was born in Trieste.")
FALLS = passage(2, "Aurora Falls was directed by Lina Orr.", title="Aurora Falls")


def test_the_sentences_of_a_merge_that_cite_are_its_claims():
    claims = derived_claims("Lina Orr was born in Trieste [1]. Missing: the film. She directed it. [2]")
    assert [(claim.text, claim.cites, claim.derived) for claim in claims] == [
        ("Lina Orr was born in Trieste.", (1,), True),
        ("She directed it.", (2,), True),
    ]


@pytest.mark.parametrize(
    "said",
    [
        "She was born in St. Louis on Jan. 5, 1944 [1].",
        "Acme was led by Dr. J. Smith, e.g. Lina's uncle [1].",
        'She said "no one knows ca. 1200 of them" [1].',
    ],
)
def test_a_stop_behind_an_abbreviation_ends_no_claim(said: str):
    claims = derived_claims(f"{said} The film is by Orr [2]; its score is by Egge [3].")
    assert [claim.cites for claim in claims] == [(1,), (2,), (3,)]
    assert claims[0].text == read_claims(said)[0].text


def test_where_no_sentence_cites_each_about_the_world_is_a_claim():
    claims = derived_claims("Lina Orr was born in Trieste. What is missing: the film. Who directed it? I search on.")
    assert [claim.text for claim in claims] == ["Lina Orr was born in Trieste."]


def test_a_derived_claim_without_numbers_cites_where_it_is_found():
    claims = derived_claims("Aurora Falls was made by Lina Orr. Lina Orr was born in Rome.")
    first, second = checked(claims, [gathered(BORN, FALLS)])
    assert (first.check, first.cites) == ("close", (2,))
    assert (second.check, second.cites) == ("not_found", ())


def test_a_claim_of_the_evidence_without_numbers_is_never_found():
    (claim,) = checked(read_claims("- She was born in Trieste."), [gathered(BORN)])
    assert claim.check == "not_found"


def test_numbers_that_go_on_mean_all_rounds():
    shown = shown_under([gathered(BORN), gathered(FALLS, round=2)])
    assert shown == {1: (BORN,), 2: (FALLS,)}


def test_numbers_that_begin_again_mean_the_last_round():
    again = passage(1, "She lives in Rome.")
    shown = shown_under([gathered(BORN, FALLS), gathered(round=2), gathered(again, round=3)])
    assert shown == {1: (again,)}


def test_numbers_that_begin_again_for_each_query_mean_each_of_them():
    again = passage(1, "She lives in Rome.")
    assert shown_under([gathered(BORN, again)]) == {1: (BORN, again)}


def test_claims_are_checked_when_their_block_closes():
    turn = (
        "<merge>All about who wrote Dune [1]. All about Lina [2].</merge>\n"
        "<evidence>\n- All about who wrote Dune. [1]\n- Herbert wrote it. [1]\n</evidence>\n<answer>Herbert</answer>"
    )
    trace = answer([], agent=make_agent([PLAN_TURN, turn]))
    merged, evidenced = (next(s for s in trace.steps if isinstance(s, kind)) for kind in (Merged, Evidenced))
    assert [(claim.check, claim.derived) for claim in merged.claims] == [("verbatim", True), ("not_found", True)]
    assert [(claim.check, claim.derived) for claim in evidenced.claims] == [("verbatim", False), ("not_found", False)]
    assert trace.claims == evidenced.claims
    assert Trace.model_validate_json(trace.model_dump_json()) == trace


@pytest.mark.parametrize("kind", [Merged, Reflected])
def test_without_evidence_the_last_block_that_claims_carries_the_answer(kind: type[Merged] | type[Reflected]):
    trace = Trace(id="t", question="q", protocol="multisearch", policy="scripted")
    claims = derived_claims("She was born in Trieste [1].")
    trace.steps += [kind(text="…", claims=claims), kind(text="It seems right."), Thought(text="So.")]
    assert trace.claims == claims


def test_a_trace_that_was_written_before_claims_were_checked_still_loads():
    old = (
        '{"version":1,"id":"t","question":"q","protocol":"cairn","policy":"p","steps":['
        '{"kind":"merged","text":"m"},{"kind":"reflected","text":"r"},'
        '{"kind":"evidenced","text":"- c [1]","claims":[{"text":"c","cites":[1]}]}]}'
    )
    (claim,) = Trace.model_validate_json(old).claims
    assert (claim.check, claim.derived, claim.quotes) == ("unchecked", False, ())


def test_evidence_without_numbers_is_looked_for_in_all_that_was_shown_where_passages_have_no_numbers():
    claims = read_claims("Lina Orr was born in Trieste.")
    assert checked(claims, [gathered(BORN, FALLS)])[0].check == "not_found"
    (found,) = checked(claims, [gathered(BORN, FALLS)], numbered=False)
    assert (found.check, found.cites) == ("close", (1,))
