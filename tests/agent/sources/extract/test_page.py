"""What comes out of a page's bytes. These run the extractors in this process; the worker's tests run them in theirs."""

import time
from typing import Any

import pytest

from agent.sources.extract import page as page_module
from agent.sources.extract.page import MAX_HTML_CHARS, MAX_TEXT_CHARS, MAX_WHOLE_CHARS, How, read_page
from agent.sources.extract.text import Extracted, Kind, decode
from tests.agent.sources.extract.files import make_pdf
from tests.agent.sources.extract.pages import ADVERT, ARTICLE, BROKEN, COOKIES, STORY, TABLE, pdf

GERMAN = "Die Leuchttürme an der Küste sind größer, als man hören möchte: fünf von ihnen überragen die Dächer. "


def read(body: str | bytes, *, kind: Kind = "html", how: How = "whole", **more: Any) -> Extracted:
    data = body.encode() if isinstance(body, str) else body
    return read_page(data, kind=kind, how=how, seconds=5.0, **more)


def test_an_article_comes_without_its_clutter_and_with_what_it_says_of_itself():
    found = read(ARTICLE)
    assert all(paragraph in found.text for paragraph in STORY)
    assert not [
        clutter for clutter in (ADVERT, COOKIES, "Log in", "Imprint", "tracking", "color: red") if clutter in found.text
    ]
    assert (found.title, found.date, found.language, found.how) == (
        "The lighthouse on Skerry Point",
        "2021-06-14",
        "en",
        "trafilatura",
    )


def test_the_fast_extractor_finds_the_article_too():
    found = read(ARTICLE, how="fast")
    assert all(paragraph in found.text for paragraph in STORY)
    assert "tracking" not in found.text
    assert (found.date, found.language, found.how) == ("2021-06-14", "en", "resiliparse")
    assert "Skerry Point" in found.title


def test_a_table_is_read():
    found = read(TABLE)
    assert all(cell in found.text for cell in ("Skerry Point", "31 m", "1871", "Rote Klippe"))
    assert found.language == "de"


@pytest.mark.parametrize("how", ["whole", "fast"])
def test_broken_markup_is_read(how: How):
    found = read(BROKEN, how=how)
    assert STORY[0] in found.text
    assert STORY[2] in found.text


def test_a_page_that_is_long_for_the_best_extractor_is_read_fast():
    paragraph = "<p>" + STORY[0] + "</p>"
    html = f"<html><body><article>{paragraph * (MAX_WHOLE_CHARS // len(paragraph) + 1)}</article></body></html>"
    assert read(html).how == "resiliparse"


def test_a_page_that_is_too_long_is_cut():
    paragraph = "<p>" + STORY[0] + "</p>"
    html = (
        "<html><body><article>"
        + paragraph * (MAX_HTML_CHARS // len(paragraph) + 10)
        + "END OF IT</article></body></html>"
    )
    found = read(html)
    assert found.how == "resiliparse"
    assert "END OF IT" not in found.text
    assert 100_000 < len(found.text) <= MAX_TEXT_CHARS


@pytest.mark.parametrize("body", [b"", b"<html></html>", b"<html><body><script>x()</script></body></html>", b"\0\1\2"])
def test_a_page_without_text_gives_none(body: bytes):
    assert read(body).text == ""


def test_control_characters_and_lone_surrogates_do_not_come_through():
    found = read("A\x00B\x1b[31mC\x85D\r\nE\ufffe \ufeffF\n\n\n\n\nG", kind="text")
    assert found.text == "AB[31mCD\nE F\n\nG"


def test_a_pdf_is_read_page_by_page_with_its_title():
    found = read(pdf(STORY[0], STORY[1], title="Skerry Point"), kind="pdf")
    assert found.text == f"{STORY[0]}\n\n{STORY[1]}"
    assert (found.title, found.how) == ("Skerry Point", "pypdf")


def test_a_damaged_pdf_gives_what_can_be_read():
    whole = pdf(*STORY)
    broken = whole.replace(b"/Contents 8 0 R", b"/Contents << 1 ]")
    assert broken != whole
    assert read(broken, kind="pdf").text.startswith(STORY[0])
    unknown = make_pdf([STORY[0]], ["x"], [STORY[2]])
    second = unknown.rindex(b"<< /Length", 0, unknown.index(b"(x) Tj"))
    unknown = unknown[:second] + unknown[second:].replace(b"<< /Length", b"<< /Filter /Foo /Length", 1)
    assert read(unknown, kind="pdf").text == f"{STORY[0]}\n\n{STORY[2]}"
    assert read(whole[:40], kind="pdf").text == ""
    assert read(b"%PDF-1.4 nothing", kind="pdf").text == ""


def test_a_long_pdf_is_read_until_its_time_is_up():
    found = read_page(pdf(*STORY * 5), kind="pdf", seconds=0.0)
    assert found.text == STORY[0]


@pytest.mark.parametrize(
    ("body", "declared", "text"),
    [
        ("Größe".encode(), "", "Größe"),
        ("Größe".encode(), "iso-8859-1", "Größe"),
        (GERMAN.encode("latin-1"), "", GERMAN),
        (GERMAN.encode("latin-1"), "utf-8", GERMAN),
        (GERMAN.encode("latin-1"), "no-such-charset", GERMAN),
        ("“Größe”".encode("cp1252"), "iso-8859-1", "“Größe”"),
        ("Größe".encode("utf-8-sig"), "", "Größe"),
        ("Größe".encode("utf-16"), "", "Größe"),
        ("Größe".encode("utf-16-le"), "utf-16-le", "Größe"),
        ("燈台の光".encode("shift_jis"), "shift_jis", "燈台の光"),
        ("燈台の光".encode("iso-2022-jp"), "ISO-2022-JP", "燈台の光"),
        (b'<meta charset="windows-1251">' + "Маяк".encode("cp1251"), "", '<meta charset="windows-1251">Маяк'),
        (b'<meta charset="utf-8">' + "Маяк".encode("koi8-r"), "koi8-r", '<meta charset="utf-8">Маяк'),
        ("Größe".encode()[:-2] + "ß".encode()[:1], "", "Grö"),
        (b"", "utf-16", ""),
    ],
)
def test_bytes_become_text_whatever_the_server_says_of_them(body: bytes, declared: str, text: str):
    assert decode(body, declared, cut=True) == text


def test_any_bytes_become_text():
    for byte in range(256):
        assert isinstance(decode(bytes([byte]) * 50), str)


def test_a_stranger_s_date_is_a_date_or_nothing(monkeypatch: pytest.MonkeyPatch):
    def fake(html: str, url: str) -> Extracted:
        return Extracted("text " * 100, "a\n\x00 title", "yesterday, I think")

    monkeypatch.setattr(page_module, "_by_trafilatura", fake)
    found = read("<html></html>")
    assert (found.title, found.date) == ("a title", "")


def test_the_fast_extractor_is_used_where_the_best_one_finds_hardly_anything(monkeypatch: pytest.MonkeyPatch):
    def fake(html: str, url: str) -> Extracted:
        return Extracted("Short.", "Its title")

    monkeypatch.setattr(page_module, "_by_trafilatura", fake)
    found = read(ARTICLE)
    assert STORY[3] in found.text
    assert (found.title, found.how) == ("Its title", "resiliparse")


def test_reading_is_fast_enough_for_an_answer_that_a_user_waits_for():
    read(ARTICLE)
    start = time.perf_counter()
    for _ in range(5):
        read(ARTICLE)
    assert (time.perf_counter() - start) / 5 < 0.5
