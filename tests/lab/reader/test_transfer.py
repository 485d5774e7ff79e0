"""The comparison of what a reader makes of evidence and of plain retrieval."""

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from agent.rstool import bundle_of
from agent.settings import CairnSettings
from agent.trace import Claim, Quote
from lab.reader.report import report, verdict
from lab.reader.transfer import (
    CONDITIONS,
    ROOM,
    Condition,
    Scored,
    Transfer,
    evidence_given,
    measure,
    pages_of,
    summarise,
)
from tests.agent.rstool.traces import passage, quoted, trace_of
from tests.train.reader.test_reading import reader

pytestmark = pytest.mark.train

ORR = passage(3, "Lina Orr is a poet. She was born in Trieste.", title="Lina Orr")
KG = passage(4, "Trieste | country | Italy", title="", source="kg")
DUNE = passage(5, "Dune is a novel by Frank Herbert.")


def scored(number: int, **em: float) -> Scored:
    scores: dict[Condition, float] = {name: em.get(name, 0.0) for name in CONDITIONS}
    return Scored(
        id=str(number),
        type="chain1" if number % 2 else "chain2",
        em=scores,
        agent_em=1.0,
        outcome="found",
        chars=dict.fromkeys(CONDITIONS, 100),
        gold_given=scores,
        said=dict.fromkeys(CONDITIONS, "x"),
    )


def better(count: int, of: int) -> Transfer:
    """Evidence is right on `count` questions more than plain retrieval, which is right on none but the first."""
    rows = [scored(n, top_5=float(n == 0), evidence=float(n <= count)) for n in range(of)]
    return summarise("w", rows)


def test_a_bundle_becomes_one_page_a_claim_and_source_with_what_is_quoted():
    claims = [
        quoted("Lina Orr was born in Trieste.", ORR, "She was born in Trieste."),
        quoted("Trieste is in Italy.", KG, KG.text),
    ]
    first, second = pages_of(bundle_of(trace_of([ORR, KG], claims)))
    assert (first.head, first.text) == (
        "web 2026-01-02 Lina Orr",
        "Lina Orr was born in Trieste. She was born in Trieste.",
    )
    assert (second.head, second.text) == ("kg 2026-01-02", "Trieste is in Italy. Trieste | country | Italy")


def test_a_claim_that_was_not_found_is_no_page_and_one_that_cites_nothing_has_no_head():
    claims = [Claim(text="lost", cites=(3,), check="not_found"), Claim(text="bare", cites=())]
    assert [(page.head, page.text) for page in pages_of(bundle_of(trace_of([ORR], claims)))] == [("", "bare")]


def test_a_claim_that_cites_two_sources_is_two_pages():
    quotes = tuple(Quote(number=p.number, start=0, end=7, text=p.text[:7]) for p in (ORR, KG))
    claim = Claim(text="c", cites=(3, 4), check="close", quotes=quotes)
    assert [page.text for page in pages_of(bundle_of(trace_of([ORR, KG], [claim])))] == ["c Lina Or", "c Trieste"]


def test_a_source_counts_as_given_only_where_a_page_of_it_was():
    claims = [
        quoted("Lina Orr was born in Trieste.", ORR, "She was born in Trieste."),
        Claim(text="Trieste is in Austria.", cites=(4,), check="contradicted"),
        quoted("long " * (ROOM // 5), DUNE, DUNE.text),
    ]
    bundle = bundle_of(trace_of([ORR, KG, DUNE], claims))
    assert {source.id for source in bundle.sources} == {"web-3", "kg-4", "web-5"}
    pages, given = evidence_given(bundle)
    assert [page.head for page in pages] == ["web 2026-01-02 Lina Orr"]
    assert given == {"web-3"}


def test_evidence_is_compared_with_the_better_plain_retrieval_and_paired():
    rows = [scored(n, top_5=float(n < 3), as_many_as_fit=float(n < 5), evidence=float(n > 0)) for n in range(10)]
    figures = summarise("w", rows)
    assert figures.plain == "as_many_as_fit"
    assert figures.gain.difference.value == pytest.approx(0.4)
    assert (figures.gain.better, figures.gain.worse) == (5, 1)
    assert figures.by_type["chain1"]["n"] == 5
    assert figures.as_dict()["em_evidence"] == pytest.approx(0.9)


def test_the_bound_wants_a_tenth_and_an_interval_without_zero():
    assert better(30, 100).holds
    assert "is met" in verdict(better(30, 100))
    assert not better(8, 100).holds
    assert not better(1, 5).holds  # a fifth, but of five questions
    assert "is not met" in verdict(better(1, 5))


def test_all_conditions_are_measured_on_the_same_questions_in_the_same_room():
    shown: list[tuple[int, int]] = []

    def show(done: int, total: int) -> None:
        shown.append((done, total))

    figures = measure(CairnSettings(world="test-v1"), reader(), limit=6, show=show)
    assert figures.n == 6
    assert shown[-1] == (6, 6)
    assert figures.chars["alone"] == 0
    assert 0 < figures.chars["evidence"] <= ROOM
    assert figures.chars["top_5"] <= figures.chars["as_many_as_fit"] <= ROOM
    assert figures.gold_given["as_many_as_fit"] >= figures.gold_given["top_5"]
    page = report([figures], reader())
    assert "## test-v1, 6 questions" in page
    assert "| from our evidence |" in page
