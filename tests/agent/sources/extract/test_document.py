import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, NumberObject, PdfObject, TextStringObject

from agent.sources.extract.document import html_text, pdf_text, plain_text, unwrap
from agent.sources.extract.text import Extracted, ExtractError, clean
from tests.agent.sources.extract.files import make_pdf
from tests.agent.sources.extract.pages import ADVERT, BOX_LINES, BOXES, STORY

PDF = make_pdf(["Aurora Falls is a film."], ["Second (2) page."], title="Films")


def encrypted(password: str, algorithm: str = "RC4-128") -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(PDF)))
    writer.encrypt(password, "owner", algorithm=algorithm)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"caf\xc3\xa9", "café"),
        (b"\xef\xbb\xbfcaf\xc3\xa9", "café"),
        (b"\xff\xfec\x00\xe9\x00", "cé"),
        (b"<meta charset='iso-8859-2'>\xb1", "<meta charset='iso-8859-2'>ą"),
        (b'<meta http-equiv="x" content="text/html; charset=windows-1252">\x93', "“"),
        (b"<meta charset=no-such-charset>caf\xe9s in Orl\xe9ans", "cafés in Orléans"),
        (b"", ""),
    ],
)
def test_bytes_are_read_in_the_charset_of_their_mark_or_word_or_look(raw: bytes, text: str):
    assert plain_text(raw).endswith(text)


def test_bytes_of_no_text_are_refused():
    with pytest.raises(ExtractError, match="zero bytes"):
        plain_text(b"\x7fELF\0\0\0")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_text_or_refused(raw: bytes):
    try:
        assert isinstance(plain_text(raw), str)
    except ExtractError:
        assert b"\0" in raw


def test_a_date_that_only_the_words_of_a_page_hold_is_none_that_it_states():
    page = html_text(b"<title>A &amp; B</title><p>Written on 3 May 2024. Copyright 2026, all rights reserved.</p>")
    assert (page.title, page.date, page.url) == ("A & B", "", "")


def test_words_that_are_set_off_have_no_stars():
    raw = b"<p>The <b>grey <i>owl</i></b> and the <strong>elk</strong> are <em>never</em> seen together.</p>"
    assert html_text(raw).text == "The grey owl and the elk are never seen together."


def test_a_page_without_main_text_gives_what_it_has():
    assert "Home" in html_text(b"<html><body><nav><a href='/'>Home</a><a href='/b'>Birds</a></nav></body></html>").text


@pytest.mark.parametrize("around", ["<nav>MENU</nav><main>TEXT</main>", "<div role='main'>TEXT</div>", "TEXT"])
def test_a_list_of_links_in_the_text_stays_and_a_menu_does_not(around: str):
    menu = "<ul><li><a href='/'>Home</a></li><li><a href='/news'>News</a></li></ul>"
    staff = (
        "<ul><li><a href='/1'>Anna Berg, director</a></li><li><a href='/2'>Ulf Stone, curator of coins</a></li></ul>"
    )
    said = ["These people look after the collection of the museum.", "The museum is open on all days but Monday. " * 8]
    text = f"<p>{said[0]}</p>{staff}<p>{said[1]}</p>"
    page = f"<html><body>{around.replace('MENU', menu).replace('TEXT', text)}</body></html>"
    assert html_text(page.encode()).text.split("\n") == [
        said[0],
        "",
        "- Anna Berg, director",
        "- Ulf Stone, curator of coins",
        "",
        said[1].strip(),
    ]


def test_notes_figures_and_forms_in_the_text_stay_and_the_bar_beside_it_does_not():
    text = html_text(BOXES.encode()).text
    assert [line for line in text.split("\n") if line in BOX_LINES] == BOX_LINES
    assert STORY[-1] in text
    assert ADVERT not in text


@pytest.mark.parametrize("raw", [b"", b"<html><body></body></html>", b"<script>let x = 1</script>", b"<!-- a -->"])
def test_a_page_without_text_is_reported(raw: bytes):
    with pytest.raises(ExtractError, match="holds no text"):
        html_text(raw)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(["<p>", "</div>", "word ", "<table", ">", "&#0;", "\ud7ff", "<![CDATA[", "'", "\f"])))
def test_any_page_gives_clean_text_or_a_sentence(parts: list[str]):
    try:
        text = html_text("".join(parts).encode()).text
    except ExtractError:
        return
    assert text == clean(text) != ""


def test_a_pdf_gives_its_pages():
    found = pdf_text(PDF)
    assert found == Extracted("Aurora Falls is a film.\n\nSecond (2) page.", title="Films", pages=(0, 25))
    assert [found.page(at) for at in (0, 24, 25, 30)] == [1, 1, 2, 2]


@pytest.mark.parametrize("title", ["", "untitled", "Microsoft Word - thesis.doc", "paper.dvi", "(none)"])
def test_a_title_that_a_program_made_up_is_none(title: str):
    assert pdf_text(make_pdf(["x"], title=title)).title == ""


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-128", "AES-256"])
def test_a_pdf_that_only_its_owner_may_change_can_be_read(algorithm: str):
    assert pdf_text(encrypted("", algorithm)).title == "Films"


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (encrypted("secret"), "it is encrypted"),
        (encrypted("secret", "AES-256"), "it is encrypted"),
        (make_pdf([], []), r"none of its pages holds text.*ocrmypdf"),
        (make_pdf(), "none of its pages"),
        (b"", "it is not a readable PDF"),
        (b"%PDF-1.7\nnothing", "it is not a readable PDF"),
        (PDF[: len(PDF) // 2], "it is not a readable PDF"),
        (PDF.replace(b"/Kids", b"/Kidz"), "broken|not a readable PDF|none of its pages"),
    ],
)
def test_a_pdf_that_cannot_be_read_is_reported_with_the_reason(raw: bytes, why: str):
    with pytest.raises(ExtractError, match=why):
        pdf_text(raw)


@pytest.mark.parametrize("content", ["<< /Length 3 /Filter /Foo >>", "<< /Length 21 >>"])
def test_a_page_that_cannot_be_read_is_empty_and_the_others_keep_their_numbers(content: str):
    raw = make_pdf(["One."], ["BAD"], ["Three."])
    stream = re.search(rb"<< /Length \d+ >>(?=\nstream\n[^\n]*BAD)", raw)
    assert stream
    broken = raw.replace(stream[0], content.encode()).replace(b"(BAD) Tj", b"[ (BAD) 12 Tj")
    assert pdf_text(broken) == Extracted("One.\n\n\n\nThree.", pages=(0, 6, 8))
    with pytest.raises(ExtractError, match="broken"):
        pdf_text(make_pdf(["BAD"]).replace(b"(BAD) Tj", b"[ (BAD) 12 Tj"))


def test_what_was_filled_into_a_form_is_read_below_its_page():
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(make_pdf(["Name"], ["Second page."]))))

    def widget(**entries: PdfObject) -> PdfObject:
        kind = {"/Type": NameObject("/Annot"), "/Subtype": NameObject("/Widget")}
        own = {f"/{name}": value for name, value in entries.items()}
        return writer._add_object(DictionaryObject({NameObject(name): value for name, value in (kind | own).items()}))  # pyright: ignore[reportPrivateUsage]

    name, town = TextStringObject("Jane Orr"), TextStringObject("Trieste")
    fields = [
        widget(V=name, TU=TextStringObject("Your name")),
        widget(Parent=DictionaryObject({NameObject("/V"): town})),
        widget(V=ArrayObject([TextStringObject("owls"), TextStringObject("bats")])),
        widget(V=NameObject("/Yes")),
        widget(V=TextStringObject("unseen"), F=NumberObject(2)),
        widget(),
    ]
    writer.pages[0][NameObject("/Annots")] = ArrayObject(fields)
    out = io.BytesIO()
    writer.write(out)
    assert pdf_text(out.getvalue()).text == "Name\nYour name: Jane Orr\nTrieste\nowls\nbats\n\nSecond page."


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(PDF) - 1), st.binary(min_size=1, max_size=4))
def test_a_damaged_pdf_gives_text_or_a_sentence(at: int, damage: bytes):
    try:
        found = pdf_text(PDF[:at] + damage + PDF[at + len(damage) :])
    except ExtractError:
        return
    assert found.text


def test_the_lines_of_a_printed_paragraph_are_one_again():
    printed = (
        "A printed page has lines that are all about as long, and di-\n"
        "vides words at their ends; the text goes on until the end of\n"
        "its paragraph.\n"
        "• one\n"
        "• two"
    )
    assert unwrap(printed) == (
        "A printed page has lines that are all about as long, and divides words at their ends; the text goes on until "
        "the end of its paragraph.\n• one\n• two"
    )


def test_what_is_no_text_is_taken_out():
    assert clean(" a\r\nb\x00\x1b[1m\ud800c\td \n") == "a\nb[1mc\td"
