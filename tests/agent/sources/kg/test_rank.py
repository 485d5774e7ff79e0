from hypothesis import given
from hypothesis import strategies as st

from agent.sources.kg.rank import rank_triples
from agent.sources.kg.triples import End, GraphTriple, pack, render, to_passages
from agent.sources.kg.words import estimate_tokens

LINA = [
    GraphTriple("Lina Orr", "occupation", "director"),
    GraphTriple("Lina Orr", "place of death", "Graz"),
    GraphTriple("Lina Orr", "place of birth", "Trieste"),
    GraphTriple("Aurora Falls", "director", "Lina Orr", found_by="tail"),
    GraphTriple("Night Ferry", "director", "Lina Orr", found_by="tail"),
]
names = st.sampled_from(["Aurora Falls", "Lina Orr", "Tom Vance", "Graz", "2019", "国立", "a b c d e f g h i j"])
relations = st.sampled_from(["directed_by", "place of birth", "starred actors", "P31"])
ends = st.sampled_from(["head", "tail"])


@st.composite
def triples(draw: st.DrawFn) -> GraphTriple:
    found_by: End = "head" if draw(st.booleans()) else "tail"
    return GraphTriple(draw(names), draw(relations), draw(names), found_by=found_by)


def best(query: str, facts: list[GraphTriple] = LINA) -> str:
    return render(pack(rank_triples(query, facts))[0])


def test_the_relation_that_the_question_wants_comes_first():
    assert best("where was Lina Orr born") == "Lina Orr | place of birth | Trieste"
    assert best("where did Lina Orr die") == "Lina Orr | place of death | Graz"
    assert best("which films did Lina Orr direct") == "Aurora Falls; Night Ferry | director | Lina Orr"


def test_a_relation_is_found_by_its_other_names():
    facts = [GraphTriple("A", "P40", "B"), GraphTriple("A", "P27", "C")]
    ranked = rank_triples("which passport has A", facts, aliases={"P27": ("passport",), "P40": ("offspring",)})
    assert ranked[0].tail == "C"


def test_words_of_the_name_itself_do_not_count():
    facts = [GraphTriple("The Writer", "writer", "Bo Lund"), GraphTriple("The Writer", "director", "Ann Ash")]
    assert best("who directed The Writer", facts) == "The Writer | director | Ann Ash"
    also_known = [GraphTriple("Q", r.relation, r.tail, mention="The Writer") for r in facts]
    assert best("who directed The Writer", also_known) == "Q | director | Ann Ash"


def test_a_name_at_the_other_end_that_the_question_wants_counts():
    facts = [GraphTriple("X", "member of", "Alpha Club"), GraphTriple("X", "ally of", "Beta Union")]
    assert best("is X in the Beta Union", facts) == "X | ally of | Beta Union"


def test_what_the_question_names_at_both_ends_is_not_cut_off():
    films = [GraphTriple(f"film {n}", "starred actors", "Tom Vance", found_by="tail") for n in range(200)]
    ranked = rank_triples("did Tom Vance star in film 150", films)
    assert (ranked[0].head, ranked[1].head, len(ranked)) == ("film 150", "film 0", 100)


def test_groups_that_fit_equally_well_share_the_room():
    many = [GraphTriple("A", "P1", f"one {n}") for n in range(50)] + [
        GraphTriple("A", "P2", f"two {n}") for n in range(50)
    ]
    ranked = rank_triples("what about A", many, limit=10)
    assert sorted(t.relation for t in ranked) == ["P1"] * 5 + ["P2"] * 5


def test_a_group_that_fits_better_goes_before_others():
    facts = [GraphTriple("A", "award", f"prize {n}") for n in range(50)] + [
        GraphTriple("A", "child", f"kid {n}") for n in range(50)
    ]
    ranked = rank_triples("the children of A", facts, limit=60)
    assert [t.relation for t in ranked] == ["child"] * 50 + ["award"] * 10


@given(st.text(max_size=60), st.lists(triples(), max_size=40), st.integers(0, 20), st.integers(0, 120))
def test_neither_triples_nor_tokens_pass_their_bounds(query: str, facts: list[GraphTriple], limit: int, tokens: int):
    ranked = rank_triples(query, facts, limit=limit, tokens=tokens)
    assert len(ranked) <= limit
    assert set(ranked) <= set(facts)
    assert sum(estimate_tokens(p.text) for p in to_passages(ranked, limit=1000)) <= tokens


@given(st.text(max_size=60), st.lists(triples(), max_size=20))
def test_nothing_is_lost_where_there_is_room(query: str, facts: list[GraphTriple]):
    ranked = rank_triples(query, facts, limit=1000, tokens=100_000)
    said = {(t.known, t.relation, t.news, t.found_by) for t in facts}
    assert {(t.known, t.relation, t.news, t.found_by) for t in ranked} == said
    assert len(ranked) == len(said)


def test_passages_hold_what_belongs_together():
    passages = to_passages(LINA, limit=3)
    assert [p.text for p in passages] == [
        "Lina Orr | occupation | director",
        "Lina Orr | place of death | Graz",
        "Lina Orr | place of birth | Trieste",
    ]
    assert [p.rank for p in passages] == [1, 2, 3]
    assert len({p.id for p in passages}) == 3


def test_each_triple_may_have_a_passage_of_its_own():
    passages = to_passages(LINA, limit=9, packed=False, url=lambda triple: f"https://x.test/{triple.head_id}")
    assert [p.text for p in passages[3:]] == ["Aurora Falls | director | Lina Orr", "Night Ferry | director | Lina Orr"]
    assert len({p.id for p in passages}) == 5
    assert passages[0].url == "https://x.test/"
