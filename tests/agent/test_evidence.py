import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.checks.claims import read_claims
from agent.evidence import Passage, gather
from agent.trace import Claim


def passage(text: str, *, url: str = "", id: str = "", title: str = "") -> Passage:
    return Passage(id=id or text, source="web", title=title, text=text, url=url)


def texts(passages: tuple[Passage, ...]) -> list[str]:
    return [p.text for p in passages]


def test_a_passage_that_two_queries_found_is_shown_once():
    assert texts(gather([[passage("a"), passage("b")], [passage("b"), passage("c")]], budget=99)) == ["a", "b", "c"]


def test_the_same_text_from_another_page_is_kept():
    assert len(gather([[passage("a", url="https://a.org"), passage("a", url="https://b.org")]], budget=99)) == 2


def test_what_an_earlier_round_showed_is_not_shown_again():
    shown = gather([[passage("a")]], budget=99)
    assert texts(gather([[passage("a"), passage("b")]], budget=99, seen=shown)) == ["b"]


def test_numbers_go_on_from_the_first_one():
    kept = gather([[passage("a")], [passage("b")]], budget=99, first_number=4)
    assert [(p.number, p.text) for p in kept] == [(4, "a"), (5, "b")]


def test_a_short_budget_takes_lower_ranks_before_the_last_query():
    found = [[passage("aaa"), passage("AAA")], [passage("bbb"), passage("BBB")]]
    assert texts(gather(found, budget=7)) == ["aaa", "bbb"]
    assert texts(gather(found, budget=9)) == ["aaa", "AAA", "bbb"]


def test_a_limit_of_passages_is_shared_in_the_same_way():
    found = [[passage("a"), passage("A")], [passage("b"), passage("B")]]
    assert texts(gather(found, budget=99, limit=3)) == ["a", "A", "b"]
    assert gather(found, budget=99, limit=0) == ()


def test_a_long_page_is_cut_at_a_word_rather_than_left_out():
    (kept,) = gather([[passage("word " * 100, title="T")]], budget=101)
    assert kept.text == "word " * 18 + "word…"
    assert len(kept.title) + len(kept.text) <= 101


@pytest.mark.parametrize("text", [" " * 900 + "word " * 100, "\n" * 900 + "x" * 900])
def test_a_long_page_that_begins_with_white_space_is_cut_behind_it(text: str):
    (kept,) = gather([[passage(text)]], budget=101)
    assert kept.text.startswith(text.strip()[:9])
    assert len(kept.text) <= 101


def test_a_long_page_of_nothing_but_white_space_is_no_error():
    assert texts(gather([[passage(" " * 900)]], budget=101)) == ["…"]


def test_a_long_page_leaves_short_ones_whole():
    kept = gather([[passage("x" * 9 + " " + "y" * 900)], [passage("short")]], budget=200)
    assert texts(kept)[1] == "short"


sizes = st.lists(st.lists(st.integers(1, 300), max_size=4), max_size=5)


@given(sizes, st.integers(0, 600), st.integers(0, 8))
def test_nothing_passes_the_budget_and_the_order_of_the_nodes_stays(found: list[list[int]], budget: int, limit: int):
    lists = [
        [Passage(id=f"{node}.{rank}", source="web", title="", text="w " * (size // 2 + 1), node=str(node))
         for rank, size in enumerate(ranks)]
        for node, ranks in enumerate(found)
    ]  # fmt: skip
    kept = gather(lists, budget=budget, limit=limit)
    assert sum(len(p.title) + len(p.text) for p in kept) <= budget
    assert len(kept) <= limit
    assert [p.node for p in kept] == sorted(p.node for p in kept)
    assert [p.number for p in kept] == list(range(1, len(kept) + 1))


# Claims


@pytest.mark.parametrize(
    ("line", "claim"),
    [
        ("- Lina Orr was born in Trieste. [3]", Claim(text="Lina Orr was born in Trieste.", cites=(3,))),
        ("* a [1][3]", Claim(text="a", cites=(1, 3))),
        ("a [1] [3], and b [1, 12].", Claim(text="a, and b.", cites=(1, 3, 12))),
        ("2. a [2-4]", Claim(text="a", cites=(2, 3, 4))),
        ("- in 1. FC Köln's [x] year [4-2]", Claim(text="in 1. FC Köln's [x] year", cites=(4, 2))),
        ("no cite at all", Claim(text="no cite at all", cites=())),
    ],
)
def test_a_claim_is_a_line_with_the_numbers_that_it_cites(line: str, claim: Claim):
    assert read_claims(f"\n {line} \n\n") == (claim,)


def test_a_line_of_nothing_but_numbers_claims_nothing():
    assert read_claims("- [1]\n-\n") == ()


@given(st.text(max_size=80))
def test_any_evidence_can_be_read(text: str):
    assert all(claim.text for claim in read_claims(text))


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "JavaScript:alert(1)", " javascript:alert(1)", "data:text/html,<script>", "file:///etc/passwd",
     "vbscript:x", "//evil.example", "/relative", "mailto:a@b.c", "http://", "https:///path", "http://[bad", "https:evil",
     "java\nscript:alert(1)", "https://a.org/\nb", "https://a.org/\x00", "http:\\\\a.org", "https://" + "a" * 5_000],
)  # fmt: skip
def test_an_address_that_no_browser_should_open_is_left_out(url: str):
    assert passage("a", url=url).url == ""


@pytest.mark.parametrize("url", ["https://a.org", "HTTP://a.org/x?y=1#z", "http://[::1]:80/", "https://é.org/ü", ""])
def test_an_address_of_a_page_is_kept(url: str):
    assert passage("a", url=url).url == url


def test_an_address_with_blanks_is_written_as_browsers_do():
    assert passage("a", url=" https://a.org/a b.pdf ").url == "https://a.org/a%20b.pdf"


@given(st.text(max_size=60), st.sampled_from(["", "javascript:", "http://", "https://a.org/", "HTTPS://[", "data:"]))
def test_every_address_is_empty_or_on_the_web(text: str, scheme: str):
    url = passage("a", url=scheme + text).url
    assert url == "" or (url.lower().startswith(("http://", "https://")) and len(url.splitlines()) == 1)
