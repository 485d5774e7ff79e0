"""Little worlds: what they hold, what their difficulty changes, and that nothing leaks between splits and shards."""

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.world import Question, World
from agent.world.difficulty import Difficulty
from agent.world.names import SPLITS, Split, split_of
from agent.world.records import Document
from agent.world.relations import LISTINGS, RELATIONS
from agent.world.wordings.base import wordings
from train.world.frames import frames
from train.world.grammar import article, fill
from train.world.population import WorldEntity
from train.world.questions import counts_of, mix_of
from train.world.reader import answer_from
from train.world.shards import make_shard, make_world, people_for


@pytest.fixture(scope="module")
def world() -> World:
    return make_world(3, split="dev", questions=150)


def of_type(world: World, kind: str) -> list[Question]:
    return [question for question in world.questions if question.type == kind]


def test_the_same_seed_gives_the_same_world(world: World) -> None:
    again = make_world(3, split="dev", questions=150)
    assert (again.documents, again.questions) == (world.documents, world.questions)


def test_another_seed_gives_another_world(world: World) -> None:
    assert make_world(4, split="dev").documents != world.documents


def test_every_type_of_question_is_drawn(world: World) -> None:
    assert {question.type for question in world.questions} == set(mix_of(Difficulty()))


@given(seed=st.integers(0, 10_000), split=st.sampled_from(SPLITS), people=st.integers(6, 60))
@settings(max_examples=12, deadline=None)
def test_a_world_of_any_size_uses_only_words_of_its_split(seed: int, split: Split, people: int) -> None:
    shard = make_shard(seed, 0, split=split, people=people, difficulty=Difficulty())
    words = World.of("any", shard.documents).invented_words
    assert {split_of(word) for word in words} == {split}


def test_shards_of_one_world_share_no_name_but_first_names() -> None:
    labels: Counter[str] = Counter()
    for number in (0, 1, 2, 3, 4, 700, 1279):
        shard = make_shard(9, number, split="dev", difficulty=Difficulty())
        labels.update({entity.name for entity in shard.universe.entities.values()})
    assert [name for name, count in labels.items() if count > 1] == []


def test_the_well_known_pages_are_the_same_in_every_world_and_split() -> None:
    shards = (
        make_shard(1, 0, split="train", difficulty=Difficulty()),
        make_shard(8, 0, split="test", difficulty=Difficulty(noise=1, paraphrase=1)),
    )
    pages = {tuple(d.text for d in shard.documents if "-known-" in d.id) for shard in shards}
    assert len(pages) == 1
    assert len(pages.pop()) > 30


def test_there_are_several_hundred_templates() -> None:
    templates = {text for of in (*RELATIONS.values(), *LISTINGS.values()) for text in wordings(of)} | set(frames())
    assert len(templates) > 700


def test_texts_read_like_texts() -> None:
    """No template is left open, nothing is said twice in a row, and every sentence begins with a capital letter."""
    shard = make_shard(12, 0, split="train", difficulty=Difficulty(paraphrase=0.5))
    for document in shard.documents:
        text = document.text
        assert "{" not in text
        assert "  " not in text
        assert not re.search(r"\b(\w+) \1\b", text, re.IGNORECASE), text
        assert not re.search(r"\b[Aa] [AEIOUaeiou]", text.replace(" a university", "")), text
        if document.source != "kg":
            assert text.endswith((".", "?")), text
            assert all(sentence[0].isupper() or sentence[0].isdigit() for sentence in re.split(r"(?<=[.?]) ", text)), (
                text
            )


def test_an_article_fits_its_noun_and_names_bring_their_own() -> None:
    assert (article("engineer"), article("poet")) == ("an engineer", "a poet")
    event = WorldEntity("event-1", "event", "the Sortian Prize")
    assert fill("The jury of the {s} met.", event) == "The jury of the Sortian Prize met."


def test_a_page_is_a_few_sentences_about_one_subject(world: World) -> None:
    pages = [d for d in world.documents if d.source == "web" and len(d.states) > 2]
    assert len({d.text.split(".")[0].split(" is ")[-1] for d in pages}) > 10
    assert sum(d.text.count(".") for d in pages) / len(pages) > 3


def test_a_follow_up_needs_its_history(world: World) -> None:
    for question in of_type(world, "followup"):
        ((earlier, answered),) = question.history
        (lookup,) = question.plan[0]
        assert earlier.endswith("?")
        assert answered
        named = lookup.subject in question.question
        assert named == (
            question.question.removeprefix("And ").lower().startswith(("what about", lookup.subject.lower()))
        )


def test_a_question_without_an_answer_looks_like_one_with_an_answer(world: World) -> None:
    questions = of_type(world, "unanswerable")
    assert all(q.unanswerable and not q.answers and not q.plan[-1][-1].gold for q in questions)
    assert {q.answers == () for q in world.questions if q.type != "unanswerable"} == {False}


def test_a_count_needs_every_passage_that_it_counts() -> None:
    world = make_world(6, split="train", questions=120, mix={"count": 1.0})
    scattered = [q for q in world.questions if len(q.supporting) > len(q.plan)]
    assert scattered
    for question in scattered:
        gold = [world.document(key) for key in question.supporting]
        assert answer_from(gold, question) == question.answers[0]
        assert answer_from(gold[:-1], question) not in question.answers


@pytest.mark.parametrize(("people", "seed"), [(10, 2), (14, 1), (20, 3)])
def test_a_small_world_that_has_one_of_a_kind_compares_what_it_has_two_of(people: int, seed: int) -> None:
    world = make_world(seed, split="train", people=people, questions=12, mix={"comparison": 1.0})
    assert {question.type for question in world.questions} == {"comparison"}
    assert all(len(set(question.candidates)) == 2 for question in world.questions)


def test_questions_about_time_ask_for_a_year_for_what_was_before_and_since_when(world: World) -> None:
    many = make_world(6, split="train", questions=60, mix={"time": 1.0})
    assert {q.plan[0][0].when for q in many.questions} == {"in", "before", "since"}


def test_a_year_is_answered_by_who_it_was_then_and_not_by_who_it_is_now() -> None:
    world = make_world(6, split="train", questions=80, mix={"time": 1.0})
    then = [q for q in world.questions if q.plan[0][0].when == "in"]
    now = [answer_from(world.documents, q.model_copy(update={"plan": plan_now(q)})) for q in then]
    assert any(value not in q.answers for q, value in zip(then, now, strict=True))
    assert all(answer_from(world.documents, q) in q.answers for q in then)


def plan_now(question: Question) -> object:
    return ((question.plan[0][0].model_copy(update={"when": "", "what": ""}),),)


def test_noise_adds_documents_that_state_nothing() -> None:
    quiet, loud = (make_shard(1, 1, split="train", difficulty=Difficulty(noise=noise)).documents for noise in (0, 1))
    assert not [d for d in quiet if not d.states]
    assert len([d for d in loud if not d.states]) > len(loud) / 4


def test_paraphrase_decides_whether_pages_use_the_words_of_the_query() -> None:
    def near(paraphrase: float) -> int:
        difficulty = Difficulty(paraphrase=paraphrase, noise=0)
        documents = make_shard(1, 1, split="train", difficulty=difficulty).documents
        return sum("was born in" in d.text or "birthplace" in d.text for d in documents if len(d.states) > 1)

    assert near(0) > 2 * near(1) > 0


def test_exclusive_facts_are_in_one_source() -> None:
    def sources(exclusivity: float) -> float:
        difficulty = Difficulty(exclusivity=exclusivity, contradiction=0)
        found_in: dict[tuple[str, str], set[str]] = {}
        for document in make_shard(1, 1, split="train", difficulty=difficulty).documents:
            for s in document.states:
                if s.relation in RELATIONS and not RELATIONS[s.relation].changes:
                    found_in.setdefault((s.subject, s.relation), set()).add(document.source)
        return sum(len(each) for each in found_in.values()) / len(found_in)

    assert sources(1) == 1
    assert sources(0) > 1.8


def test_staleness_is_the_share_of_changing_facts_whose_page_is_outdated() -> None:
    def stale(staleness: float) -> float:
        universe = make_shard(1, 1, split="train", difficulty=Difficulty(staleness=staleness)).universe
        changing = [fact for fact in universe.facts.values() if fact.tenures]
        return sum(bool(fact.stale) for fact in changing) / len(changing)

    assert stale(0) == 0
    assert 0.4 < stale(0.5) < 0.6
    assert stale(1) == 1


def test_a_contradiction_is_older_from_a_forum_and_never_believed() -> None:
    world = make_world(2, split="train", questions=60, difficulty=Difficulty(contradiction=0.6))
    doubtful = [d for d in world.documents if any(s.doubtful for s in d.states)]
    assert len(doubtful) > 100
    assert all(d.url.startswith("https://forum.") and d.date < "2024" for d in doubtful)
    answerable = [q for q in world.questions if not q.unanswerable]
    assert all(answer_from(world.documents, q) in q.answers for q in answerable)


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_no_chain_is_longer_than_the_difficulty_says(hops: int) -> None:
    mix = mix_of(Difficulty(hops=hops))
    assert max(int(kind[-1]) for kind in mix if kind.startswith("chain")) == hops
    assert sum(mix.values()) == pytest.approx(1)


def test_the_shares_of_special_questions_are_those_of_the_difficulty() -> None:
    mix = mix_of(Difficulty(unanswerable=0.3, well_known=0.2))
    assert (round(mix["unanswerable"], 6), mix["known"]) == (0.3, 0.2)


@pytest.mark.parametrize("size", [100, 1000, 10_000, 1_000_000])
def test_a_world_has_about_as_many_documents_as_are_wanted(size: int) -> None:
    shards, people = people_for(size, Difficulty())
    documents = len(make_shard(0, 1, split="test", people=people, difficulty=Difficulty()).documents)
    assert 0.75 * size < shards * documents < 1.35 * size


def test_more_documents_than_there_are_names_for_is_refused() -> None:
    with pytest.raises(ValueError, match="at most"):
        people_for(100_000_000, Difficulty())


def test_what_documents_state_stands_in_their_text(world: World) -> None:
    def missing(document: Document) -> list[str]:
        text = f"{document.title} {document.text}".casefold()
        return [value for s in document.states for value in s.values if value.casefold() not in text]

    assert [document.id for document in world.documents if missing(document)] == []


def test_pronouns_follow_the_person() -> None:
    she = WorldEntity("person-1", "person", "Lina Orr", "chemist", pronoun="she")
    assert fill("And where did {he} study, and {p} mentor?", she) == "And where did she study, and her mentor?"


def test_a_shard_stands_for_itself() -> None:
    """Shard 5 is made without the ones before it."""
    one = make_shard(4, 5, split="train", difficulty=Difficulty())
    make_shard(4, 0, split="train", difficulty=Difficulty())
    assert make_shard(4, 5, split="train", difficulty=Difficulty()).documents == one.documents


def test_a_large_list_asks_the_closed_set_only_as_often_as_it_has_questions() -> None:
    world = make_world(5, split="dev", questions=200, mix={"known": 1.0})
    assert len({q.question for q in world.questions}) == 200
    assert counts_of(100_000, mix_of(Difficulty()))["known"] == 200
    assert sum(counts_of(100_000, mix_of(Difficulty())).values()) == 100_000


def test_no_person_marries_or_teaches_themselves_and_marriage_goes_both_ways(world: World) -> None:
    spouse: dict[str, str] = {}
    for document in world.documents:
        for stated in document.states:
            assert stated.subject not in stated.values
            if stated.relation == "spouse" and not stated.doubtful:
                spouse[stated.subject] = stated.values[0]
    assert spouse
    assert all(spouse.get(spouse[one], one) == one for one in spouse)


def test_a_page_is_outdated_exactly_where_a_later_report_says_otherwise(world: World) -> None:
    current: dict[tuple[str, str], tuple[str, ...]] = {}
    changing = [
        (document, stated)
        for document in sorted(world.documents, key=lambda document: document.date)
        for stated in document.states
        if stated.relation in RELATIONS and RELATIONS[stated.relation].changes and not stated.doubtful
    ]
    for _, stated in changing:
        current[stated.subject, stated.relation] = stated.values
    outdated = [stated for _, stated in changing if stated.outdated]
    assert len(outdated) > 10
    assert all(stated.values != current[stated.subject, stated.relation] for stated in outdated)


def test_every_kind_of_source_holds_documents_and_some_facts_are_in_one_only(world: World) -> None:
    assert set(Counter(d.source for d in world.documents)) == {"web", "news", "arxiv", "kg"}
    sources: dict[str, set[str]] = {}
    for document in world.documents:
        for stated in document.states:
            sources.setdefault(stated.relation, set()).add(document.source)
    assert "arxiv" in sources["first_author"]
    assert sources["host"] == {"news"}
