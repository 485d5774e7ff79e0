from agent.errors import Failure
from agent.evidence import Passage
from agent.trace import Answered, Gathered, Searched, SearchFailed, Step
from agent.trace.attempts import not_in_passages, nothing_found, unsearched

FOUND = Passage(id="1", source="web", title="T", text="t", number=1)


def searched(query: str, source: str = "web") -> Step:
    return Searched(round=1, node="A", source=source, query=query, passages=())


def failed(query: str) -> Step:
    return SearchFailed(round=1, node="B", source="news", query=query, why="no route", error="timeout")


def test_where_nothing_was_found_the_sentence_says_what_was_tried():
    sentence = nothing_found([searched("who wrote  Dune"), failed("Dune"), Gathered(round=1, passages=())])
    assert sentence == (
        "Nothing was found, so no passage supports this. Tried: “who wrote Dune” (web), “Dune” (news failed: timeout)."
    )


def test_where_every_search_failed_it_is_not_said_that_nothing_was_found():
    assert nothing_found([failed("Dune")]).startswith("Every search failed, so no passage supports this.")


def test_what_failed_of_several_sources_is_named():
    partly = Searched(round=1, node="A", source="all", query="Dune", passages=(), lost=("web", "kg"))
    failures = (Failure("tavily", "rate", "x"), Failure("tavily", "quota", "x"), Failure("kg", "upstream", "x"))
    wholly = SearchFailed(round=1, node="B", source="all", query="Emma", why="z", error="quota", failures=failures)
    assert nothing_found([partly, wholly]).endswith(
        "Tried: “Dune” (all, of which web, kg failed), “Emma” (all failed: quota in tavily, upstream in kg)."
    )


def test_many_searches_are_counted_and_equal_ones_named_once():
    sentence = nothing_found([searched("a"), searched("a"), *(searched(str(n)) for n in range(8))])
    assert sentence.endswith("“4” (web) and 3 more.")


def test_with_a_passage_or_without_a_search_there_is_nothing_to_say():
    assert nothing_found([searched("a"), Gathered(round=1, passages=(FOUND,))]) == ""
    assert nothing_found([Answered(text="42")]) == ""


def test_an_answer_of_the_policys_own_is_distinguished_from_what_the_product_says():
    assert unsearched([Answered(text="42")])
    assert not unsearched([Answered(text="I know the little world alone.", by="loop")])
    assert not unsearched([searched("a"), Answered(text="42")])
    assert not unsearched([])


def test_what_was_looked_at_is_named_where_the_policy_does_not_know():
    looked = [searched("a"), Gathered(round=1, passages=(FOUND, FOUND))]
    assert FOUND.title in not_in_passages("I do not know", looked)
    assert not_in_passages("I do not know", looked).startswith("The passages that were found do not say it.")
    assert not_in_passages("I don't know.", looked).endswith("Looked at: T.")
    assert not_in_passages("Trieste", looked) == ""
    assert not_in_passages("I do not know", [searched("a")]) == ""
