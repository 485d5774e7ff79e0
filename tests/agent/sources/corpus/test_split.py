import re

from hypothesis import given
from hypothesis import strategies as st

from agent.sources.corpus.split import PASSAGE_CHARS, split_markdown, split_page, split_text

MARKDOWN = """Before all.

# Guide #

Welcome.

## Setup

Run it:
```sh
# no heading
```
### Linux
Here.
## Use
#hashtag is no heading
"""


def test_markdown_is_cut_at_headings_whose_path_is_the_title():
    assert [(title, MARKDOWN[start:end].strip()) for title, start, end in split_markdown(MARKDOWN, "guide")] == [
        ("guide", "Before all."),
        ("Guide", "Welcome."),
        ("Guide › Setup", "Run it:\n```sh\n# no heading\n```"),
        ("Guide › Setup › Linux", "Here."),
        ("Guide › Use", "#hashtag is no heading"),
    ]


UNDERLINED = """Owls
====

At night.

Prey of owls
---

Mice.
They are small.
---
> said so
---
- a list
---

| a | b |
| --- | --- |

---
```
Code
====
```
    code
    ----
1 = 2
== ==

End
==="""


def test_a_line_that_is_underlined_is_a_heading_and_a_break_a_table_or_code_is_none():
    sections = [(title, UNDERLINED[start:end].strip()) for title, start, end in split_markdown(UNDERLINED, "x")]
    rest = UNDERLINED[UNDERLINED.index("Mice.") : UNDERLINED.index("End")].strip()
    assert sections == [("x", ""), ("Owls", "At night."), ("Owls › Prey of owls", rest), ("End", "End\n===")]
    assert [title for title, _, _ in split_page(UNDERLINED, "x")] == ["x"]


def test_a_separator_of_unicode_ends_no_line_of_markdown():
    text = "# Falls\u2028of the north\na\u2028# no heading\x0c# none\n# Plot\nb"
    sections = [(title, text[start:end].strip()) for title, start, end in split_markdown(text, "x")]
    assert sections == [
        ("x", ""),
        ("Falls\u2028of the north", "a\u2028# no heading\x0c# none"),
        ("Plot", "b"),
    ]


def test_a_page_has_its_title_before_its_headings_but_not_twice():
    titles = [title for title, _, _ in split_page("a\n# Falls\nb\n## Plot\nc\n# Cast\nd", "Falls")]
    assert titles == ["Falls", "Falls", "Falls › Plot", "Falls › Cast"]


def test_a_longer_heading_takes_the_place_of_a_title_that_it_repeats():
    titles = [title for title, _, _ in split_page("# Planning permission was refused\nb\n## Plan\nc", "Plan")]
    assert titles == ["Plan", "Planning permission was refused", "Planning permission was refused › Plan"]


def test_a_heading_with_nothing_under_it_is_what_it_says():
    text = "# Manual\n## Emergency number 555\n\n## Use\nRead.\n### Contact Xaver\n# \n## End"
    found = [(title, text[start:end].strip()) for title, start, end in split_markdown(text, "x")]
    assert [one for one in found if one[1]] == [
        ("Manual › Emergency number 555", "## Emergency number 555"),
        ("Manual › Use", "Read."),
        ("Manual › Use › Contact Xaver", "### Contact Xaver"),
        ("End", "## End"),
    ]


markdown_like = st.text(alphabet=st.sampled_from(list("ab#`~ \n\r.\u2028=-")), max_size=80)


@given(markdown_like)
def test_sections_lie_in_order_and_lose_nothing_but_headings(text: str):
    end = 0
    for _, start, stop in split_markdown(text, "x"):
        lost = re.findall(r"[^\r\n]+(?:\r\n|\r|\n)?|\r\n|\r|\n", text[end:start])
        assert (
            not lost
            or (len(lost) == 1 and lost[0].startswith("#"))
            or (len(lost) == 2 and lost[1].strip(" =-\r\n") == "")
        )
        assert start <= stop
        end = stop
    assert end == len(text)


@given(st.lists(st.sampled_from([*"aé.!\n ", "word ", "\n\n"]), max_size=60).map(lambda parts: "".join(parts) * 60))
def test_pieces_are_short_and_lose_nothing_but_space(text: str):
    pieces = split_text(text, 0, len(text))
    assert all(0 < end - start <= PASSAGE_CHARS for start, end in pieces)
    assert all(text[start:end] == text[start:end].strip() for start, end in pieces)
    gaps = zip([0, *(end for _, end in pieces)], [*(start for start, _ in pieces), len(text)], strict=True)
    assert all(not text[end:start].strip() and end <= start for end, start in gaps)


def test_text_is_cut_after_a_paragraph_rather_than_after_a_sentence():
    first = "A sentence. " * 60
    text = first + "\n\n" + "Another one. " * 60
    assert split_text(text, 0, len(text))[0] == (0, len(first.rstrip()))
