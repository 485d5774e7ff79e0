"""What becomes of a finished trace: claims, quotations, sources, and how much of it fits."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent.rstool import EvidenceBundle, SizeBudget, bundle_of
from agent.rstool.budget import estimate_tokens
from agent.trace import Claim, Evidenced, Gathered, Merged, Quote, Restated, Step, Stopped, Trace
from tests.agent.rstool.traces import passage, quoted, trace_of

SCHEMA = Path(__file__).parents[3] / "docs" / "evidence.schema.json"

HERBERT = passage(3, "Dune is a novel. Frank Herbert wrote it. It is long.")
BIRTH = passage(7, "Frank Herbert was born in Tacoma.", title="Frank Herbert", source="kg")


def test_a_claim_comes_with_the_words_of_its_source_and_their_place():
    claim = quoted("Frank Herbert wrote Dune.", HERBERT, "Frank Herbert wrote it.")
    bundle = bundle_of(trace_of([HERBERT, BIRTH], [claim]))
    assert bundle.outcome == "found"
    (said,) = bundle.claims
    assert (said.text, said.check, said.sources) == ("Frank Herbert wrote Dune.", "close", (1,))
    (quote,) = said.quotes
    assert HERBERT.text[quote.start : quote.end] == quote.text == "Frank Herbert wrote it."
    (source,) = bundle.sources
    assert (source.number, source.id, source.title, source.url) == (1, "web-3", "Dune", HERBERT.url)


def test_sources_are_numbered_again_in_the_order_in_which_claims_cite_them():
    claims = [quoted("a", BIRTH, "Tacoma"), quoted("b", HERBERT, "novel"), quoted("c", BIRTH, "Frank")]
    bundle = bundle_of(trace_of([HERBERT, BIRTH], claims))
    assert [claim.sources for claim in bundle.claims] == [(1,), (2,), (1,)]
    assert [source.id for source in bundle.sources] == ["kg-7", "web-3"]


def test_an_unchecked_claim_quotes_the_whole_of_what_it_cites():
    bundle = bundle_of(trace_of([HERBERT], [Claim(text="It is long.", cites=(3,))]))
    (quote,) = bundle.claims[0].quotes
    assert (quote.start, quote.end, quote.text) == (0, len(HERBERT.text), HERBERT.text)


def test_a_claim_that_was_not_found_is_kept_and_marked():
    bundle = bundle_of(trace_of([HERBERT], [Claim(text="It is short.", cites=(3,), check="not_found")]))
    assert bundle.claims[0].quotes == ()
    assert bundle.claims[0].sources == (1,)
    assert "NOT FOUND in what it cites: do not rely on it" in bundle.to_prompt()


def test_a_cite_of_a_passage_that_was_never_shown_leads_nowhere():
    bundle = bundle_of(trace_of([HERBERT], [Claim(text="x", cites=(9,))]))
    assert bundle.claims[0].sources == ()
    assert bundle.sources == ()


def test_a_number_means_the_passage_that_had_it_when_the_claim_was_written():
    first, second = passage(1, "old"), passage(1, "new", title="Later")
    claims = (Claim(text="new", cites=(1,), derived=True),)
    trace = trace_of([first])
    end = trace.steps.pop()
    trace.steps += [Gathered(round=2, passages=(second,)), Merged(text="new [1].", claims=claims)]
    trace.steps += [Merged(text="Nothing new."), Gathered(round=3, passages=(passage(1, "newest"),)), end]
    bundle = bundle_of(trace)
    assert bundle.sources[0].title == "Later"
    assert bundle.claims[0].derived


def test_where_each_query_starts_the_numbers_again_a_quote_names_the_document_that_says_it():
    birth = passage(1, "Frank Herbert was born in Tacoma.", title="Frank Herbert", source="kg")
    tides = passage(1, "The moon moves the tides.", title="Tides", source="news")
    claims = [quoted("Frank Herbert was born in Tacoma.", birth, birth.text), Claim(text="It rains.", cites=(1,))]
    bundle = bundle_of(trace_of([birth, tides], claims))
    assert [(source.number, source.title) for source in bundle.sources] == [(1, "Frank Herbert"), (2, "Tides")]
    assert [claim.sources for claim in bundle.claims] == [(1,), (1, 2)]
    assert [(quote.source, quote.text) for quote in bundle.claims[1].quotes] == [(1, birth.text), (2, tides.text)]


@pytest.mark.parametrize("reason", ["engine", "cancelled", "interrupted"])
def test_a_rollout_that_was_cut_off_without_a_claim_has_failed(reason: str):
    stopped = Stopped.model_validate({"reason": reason, "detail": "no one listens"})
    bundle = bundle_of(trace_of(stopped=stopped))
    assert bundle.outcome == "failed"
    assert bundle.ended.detail == "no one listens"
    assert "no one listens" in bundle.why_empty


# Size


def many(count: int) -> Trace:
    passages = [passage(n, f"Fact {n} stands here in some words. " * 4) for n in range(1, count + 1)]
    return trace_of(passages, [quoted(f"Claim {p.number}.", p, p.text) for p in passages])


def test_whole_claims_are_left_out_from_the_end_and_it_is_said():
    bundle = bundle_of(many(9), budget=SizeBudget(chars=1500))
    kept = len(bundle.claims)
    assert 0 < kept < 9
    assert [claim.text for claim in bundle.claims] == [f"Claim {n}." for n in range(1, kept + 1)]
    assert bundle.size.dropped_claims == 9 - kept
    assert len(bundle.sources) == kept
    assert f"({9 - kept} more claims were left out for want of room.)" in bundle.to_prompt()
    assert bundle_of(many(9)).size.dropped_claims == 0


def test_a_budget_of_tokens_binds_too():
    bundle = bundle_of(many(9), budget=SizeBudget(chars=8000, tokens=300))
    assert bundle.size.tokens == estimate_tokens(bundle.to_prompt()) <= 300


def test_evidence_of_which_nothing_fits_is_not_called_an_empty_find():
    long = passage(1, "word " * 400)
    bundle = bundle_of(trace_of([long], [quoted("x", long, long.text)]), budget=SizeBudget(chars=600))
    assert (bundle.outcome, bundle.claims, bundle.size.dropped_claims) == ("found", (), 1)
    assert "ask for more room" in bundle.to_prompt()
    assert "Not one of 1 claims" in bundle.why_empty


@given(
    texts=st.lists(st.text(max_size=300), max_size=8),
    queries=st.lists(st.text(max_size=400), max_size=6),
    chars=st.integers(600, 3000),
    tokens=st.none() | st.integers(150, 900),
)
def test_the_text_form_never_weighs_more_than_the_budget(
    texts: list[str], queries: list[str], chars: int, tokens: int | None
):
    passages = [passage(n, text, title=text) for n, text in enumerate(texts, start=1)]
    trace = trace_of(passages, [Claim(text=p.text, cites=(p.number,)) for p in passages], failed=queries)
    bundle = bundle_of(trace, budget=SizeBudget(chars=chars, tokens=tokens))
    prompt = bundle.to_prompt()
    assert len(prompt) == bundle.size.chars <= chars
    assert tokens is None or estimate_tokens(prompt) == bundle.size.tokens <= tokens
    assert len(bundle.claims) + bundle.size.dropped_claims == len(texts)
    assert EvidenceBundle.model_validate_json(bundle.model_dump_json()) == bundle


@pytest.mark.parametrize("given", [{"chars": 599}, {"tokens": 149}])
def test_a_budget_without_room_for_the_label_is_refused(given: dict[str, int]):
    with pytest.raises(ValueError, match="at least 600 characters"):
        SizeBudget(**given)


# The schema


def test_the_committed_schema_is_the_one_of_the_code():
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == EvidenceBundle.model_json_schema(mode="serialization"), (
        "write it again: python docs/make_evidence_schema.py"
    )


def test_an_undeclared_field_is_refused():
    given = bundle_of(trace_of()).model_dump()
    with pytest.raises(ValidationError):
        EvidenceBundle.model_validate(given | {"colour": 1})


def test_quotes_of_passages_that_the_claim_does_not_cite_are_left_out():
    quote = Quote(number=7, start=0, end=5, text="Frank")
    claim = Claim(text="x", cites=(3,), check="close", quotes=(quote,))
    assert bundle_of(trace_of([HERBERT, BIRTH], [claim])).claims[0].quotes == ()


def test_a_restated_question_is_given_beside_the_original_one():
    trace = trace_of([HERBERT], [Claim(text="x", cites=(3,))])
    trace.history = (("Who wrote Dune?", "Frank Herbert"),)
    trace.steps.insert(0, Restated(text="When was Dune written?"))
    bundle = bundle_of(trace)
    assert (bundle.history, bundle.restated) == (trace.history, "When was Dune written?")


def test_the_last_evidence_counts():
    old, new = (Claim(text="old", cites=(3,)),), (Claim(text="new", cites=(3,)),)
    trace = trace_of([HERBERT], old)
    trace.steps.insert(-1, Evidenced(text="…", claims=new))
    assert [claim.text for claim in bundle_of(trace).claims] == ["new"]


@given(count=st.integers(0, 300), room=st.integers(600, 30_000))
def test_as_many_claims_are_kept_as_fit_and_few_forms_are_tried_for_it(count: int, room: int):
    budget = Weighing(chars=room)
    trace = trace_of([HERBERT], [quoted(f"Fact {n}.", HERBERT, "Frank Herbert") for n in range(count)])
    bundle = bundle_of(trace, budget=budget)
    kept = len(bundle.claims)
    assert (budget.forms <= 10, kept + bundle.size.dropped_claims) == (True, count)
    one_more = SizeBudget(chars=30_000 + 600)
    if kept < count and kept:
        more = bundle_of(trace.model_copy(update={"steps": _cut(trace, kept + 1)}), budget=one_more)
        line = "(999 more claims were left out for want of room.)\n"
        assert len(more.to_prompt()) + len(line) > room


@dataclass(frozen=True, kw_only=True)
class Weighing(SizeBudget):
    """Counts how often something is weighed."""

    weighed: list[int] = field(default_factory=list[int])

    @property
    def forms(self) -> int:
        return len(self.weighed)

    def holds(self, text: str) -> bool:
        self.weighed.append(len(text))
        return super().holds(text)


def _cut(trace: Trace, count: int) -> list[Step]:
    """Its steps, with the first claims alone."""
    return [
        step.model_copy(update={"claims": step.claims[:count]}) if isinstance(step, Evidenced) else step
        for step in trace.steps
    ]
