from hypothesis import given, settings
from hypothesis import strategies as st

from agent.sources.corpus.split import split_markdown, split_tables, split_text
from agent.sources.extract.markdown import Markdown

PIECES = ["a", " ", "\n", "#", "# ", "```", "~~~", "|", "\u2028", "\x85", "\t", "-", "\r"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
KINDS = st.sampled_from(["paragraph", "item", "heading", "table"])


def write(out: Markdown, kind: str, text: str) -> None:
    match kind:
        case "paragraph":
            out.paragraph(text)
        case "item":
            out.item(1, text)
        case "heading":
            out.heading(2, text)
        case _:
            out.table([[text, "x"], ["y", text]])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(KINDS, TEXTS), max_size=8))
def test_only_headings_are_headings_whatever_the_text_looks_like(blocks: list[tuple[str, str]]) -> None:
    out = Markdown()
    out.paragraph("begin")
    for kind, text in blocks:
        write(out, kind, text)
    headings = sum(kind == "heading" and bool(text.split()) for kind, text in blocks)
    assert len(list(split_markdown(out.extracted().text, ""))) == 1 + headings


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.tuples(KINDS, TEXTS), max_size=3), min_size=1, max_size=5))
def test_what_is_written_on_a_page_is_found_on_it(pages: list[list[tuple[str, str]]]) -> None:
    out = Markdown()
    for number, blocks in enumerate(pages, start=1):
        out.page()
        for kind, text in blocks:
            write(out, kind, text)
        out.paragraph(f"end of {number}.")
    found = out.extracted()
    assert [found.page(found.text.index(f"end of {number}.")) for number in range(1, len(pages) + 1)] == list(
        range(1, len(pages) + 1)
    )


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=40), st.integers(0, 700))
def test_every_passage_of_a_table_begins_with_its_header_or_names_its_columns(rows: list[int], before: int) -> None:
    out = Markdown()
    out.paragraph("o" * before)
    out.table([["Name", "Place"], *(["w" * length, "far"] for length in rows)])
    text = out.extracted().text
    for _, start, end in split_tables(text, split_markdown(text, "")):
        for at, to in split_text(text, start, end):
            assert (
                text[at:to].strip("o\n").startswith(("| Name | Place |\n| --- | --- |\n", "- Name: "))
                or text[at:to] == "o" * before
            )
