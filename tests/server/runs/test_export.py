import re
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from agent.evidence import Passage
from agent.trace import Answered, Claim, Evidenced, Gathered, Quote, Searched, Stopped, Trace
from server.runs.export import bibtex, export, markdown

EVIL = '<script>alert(1)</script> [x](javascript:alert(1)) ![i](http://evil/i.png) `"\'> \\end{x} %$&#_~^ "'


def trace(text: str = "Lina Orr", url: str = "https://example.org/a?b=1&c=2") -> Trace:
    passages = (
        Passage(id="1", source="web", title=text, text=f"{text} directed it.", url=url, date="2021-03-04", number=1),
        Passage(id="2", source="kg", title="Orr", text="She is from Trieste.", number=2),
        Passage(id="1b", source="web", title=text, text="More of the same page.", url=url, date="2021-03-04", number=3),
    )
    claim = Claim(text=text, cites=(1,), check="verbatim", quotes=(Quote(number=1, start=0, end=len(text), text=text),))
    return Trace(
        id="abc",
        question=text,
        protocol="cairn",
        policy="scripted",
        steps=[
            Searched(round=1, node="A", source="web", query=text, passages=passages),
            Gathered(round=1, passages=passages),
            Evidenced(text=text, claims=(claim,)),
            Answered(text=text),
            Stopped(reason="answered"),
        ],
        passages=list(passages),
    )


class Tags(HTMLParser):
    """Every tag with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_a_page_shows_strange_text_as_text_and_loads_nothing():
    for url in ("javascript:alert(1)", 'https://x/"><img src=y>', "https://example.org/a", "data:text/html,x"):
        text = export(trace(EVIL, url), "html").text
        tags = Tags(text).found
        assert [tag for tag, _ in tags if tag in ("style", "script", "a", "img", "link")] == [
            "link", "style", "script", "script",
        ]  # fmt: skip
        assert {tag for tag, _ in tags} == set("html head meta link title style body div main h1 p script".split())
        assert not any(name.startswith("on") or name == "src" for _, attributes in tags for name in attributes)
        assert "default-src 'none'" in text


def test_markdown_shows_strange_text_as_text():
    made = markdown(trace(EVIL))
    bare = re.sub(r"\\.", "", made)
    assert "<script" not in bare
    assert "](" not in bare
    assert re.findall(r"<[^>]*>", bare) == ["<https://example.org/a?b=1&c=2>"] * 2
    assert [line for line in made.splitlines() if line.startswith("#")][1:] == [
        "## Evidence",
        "## Searches",
        "## Sources",
    ]


def test_markdown_shows_answer_evidence_searches_and_sources():
    made = markdown(trace())
    assert made.splitlines()[:3] == ["# Lina Orr", "", "Lina Orr"]
    assert "- Lina Orr \\[1\\] (verbatim)\n  > Lina Orr \\[1\\]" in made
    assert "- Lina Orr (web): 3 found" in made
    assert "- \\[1\\] Lina Orr · web · 2021-03-04 <https://example.org/a?b=1&c=2>" in made


def test_markdown_numbers_no_two_sources_alike_where_each_round_numbers_its_own():
    rome = Passage(id="1", source="web", title="Rome", text="Rome is in Italy.", number=1)
    orr = Passage(id="2", source="web", title="Orr", text="Lina Orr was born in Trieste.", number=1)
    claim = Claim(
        text="Lina Orr was born in Trieste.",
        cites=(1,),
        check="verbatim",
        quotes=(Quote(number=1, start=0, end=len(orr.text), text=orr.text),),
    )
    steps = [
        Gathered(round=1, passages=(rome,)),
        Gathered(round=2, passages=(orr,)),
        Evidenced(text=claim.text, claims=(claim,)),
        Gathered(round=3, passages=(rome.model_copy(update={"text": "Rome is large."}),)),
        Answered(text="Trieste"),
    ]
    shown = [passage for step in steps if isinstance(step, Gathered) for passage in step.passages]
    made = markdown(trace().model_copy(update={"steps": steps, "passages": shown}))
    assert re.findall(r"^- \\\[(\d)\\\] (\w+)", made, re.MULTILINE) == [("1", "Rome"), ("2", "Orr"), ("3", "Rome")]
    assert "- Lina Orr was born in Trieste. \\[2\\] (verbatim)\n  > Lina Orr was born in Trieste. \\[2\\]\n" in made


def test_bibtex_has_one_entry_for_each_document_with_a_key_of_its_own():
    made = bibtex(trace())
    assert re.findall(r"@misc\{([^,]+),", made) == ["lina-orr-2021", "orr"] or sorted(
        re.findall(r"@misc\{([^,]+),", made)
    ) == ["lina-orr-2021", "orr"]
    assert "  url = {https://example.org/a?b=1&c=2}," in made
    assert "  year = {2021}," in made
    same = trace()
    same.passages = [p.model_copy(update={"id": str(at), "url": ""}) for at, p in enumerate(same.passages * 3)]
    keys = re.findall(r"@misc\{([^,]+),", bibtex(same))
    assert len(keys) == len(set(keys)) == 9


@pytest.mark.parametrize("answer", ["1944.", "12) Yes", "- a", "+ b"])
def test_an_answer_that_begins_like_a_list_is_no_list_in_markdown(answer: str):
    made = markdown(trace().model_copy(update={"steps": [Answered(text=answer)]}))
    (line,) = [line for line in made.splitlines() if line.replace("\\", "") == answer]
    assert MarkdownIt().render(line) == f"<p>{answer}</p>\n"


def test_passages_of_one_file_are_one_entry_in_the_order_in_which_they_were_shown():
    passages = [Passage(id=id, source="web", title=id, text="") for id in ("b.pdf#2", "a.md#1", "b.pdf#3")]
    made = bibtex(trace().model_copy(update={"passages": passages}))
    assert re.findall(r"@misc\{([^,]+),", made) == ["b-pdf-2", "a-md-1"]


def test_bibtex_keeps_its_braces_whatever_a_title_says():
    made = bibtex(trace(EVIL, "https://x/}{"))
    assert made.count("{") == made.count("}"), "BibTeX counts those behind a backslash, too"
    assert bibtex(trace("What does { mean in C?")).count("{") == bibtex(trace("What does } mean?")).count("}")
    assert bibtex(trace().model_copy(update={"passages": [], "steps": []})).startswith("%")


@pytest.mark.parametrize("format", ["json", "markdown", "html", "bibtex"])
def test_a_run_without_an_answer_can_be_exported(format: str):
    bare = Trace(id="../../x y", question="Why?", protocol="cairn", policy="p")
    made = export(bare, format)  # pyright: ignore[reportArgumentType]
    assert made.text
    assert re.fullmatch(r"cairn-xy\.\w+", made.name)


def test_json_is_the_trace():
    assert Trace.model_validate_json(export(trace(), "json").text) == trace()


def test_every_source_has_a_key_of_its_own_whatever_the_titles_are():
    titles = ["X 3", "X", "X", "X 2", "X", "X 3"]
    passages = [Passage(id=f"{at}", source="web", title=title, text="") for at, title in enumerate(titles)]
    keys = re.findall(r"@misc\{([^,]+),", bibtex(trace().model_copy(update={"passages": passages})))
    assert len(set(keys)) == len(titles)
