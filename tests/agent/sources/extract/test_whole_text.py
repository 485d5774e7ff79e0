"""Nothing of a document's text is lost."""

from email.message import EmailMessage

import pytest

from agent.sources.extract.mail import mail_text
from agent.sources.extract.word import rtf_text
from tests.agent.sources.extract.packages import chapter, epub_parts, packed
from tests.agent.sources.extract.test_formats import message, read


def test_an_e_mail_is_read_whole_where_one_part_of_it_is_plain():
    mailing = message(Subject="Budget")
    mailing.set_content("<p>The budget is 4,200 euros.</p>", subtype="html")
    mailing.make_mixed()
    footer = EmailMessage()
    footer.set_content("You get this as a member of the list.")
    mailing.attach(footer)
    text = mail_text(bytes(mailing)).text
    assert "The budget is 4,200 euros." in text
    assert "member of the list" in text
    blank = message(Subject="Budget")
    blank.set_content(" ")
    blank.add_alternative("<p>The budget is 4,200 euros.</p>", subtype="html")
    assert "The budget is 4,200 euros." in mail_text(bytes(blank)).text


@pytest.mark.parametrize("last", ["calendar", "x-amp-html"])
def test_the_text_of_a_mail_is_read_whatever_form_comes_last(last: str):
    invitation = message(Subject="Board")
    invitation.set_content(" ")
    invitation.add_alternative("<p>The board meets in Trieste.</p>", subtype="html")
    invitation.add_alternative("BEGIN:VCALENDAR\nEND:VCALENDAR", subtype=last)
    assert "The board meets in Trieste." in mail_text(bytes(invitation)).text


@pytest.mark.parametrize("depth", [100, 3_000])
@pytest.mark.parametrize("kind", ["mail", "html", "epub"])
def test_what_is_nested_deep_is_read_and_what_follows_it(kind: str, depth: int):
    replies = "".join(f"<blockquote><div><div><p>Reply {number}.</p>" for number in range(depth))
    body = f"{replies}{'</div></div></blockquote>' * depth}<p>The end.</p>"
    thread = message(Subject="Owls")
    thread.set_content(body, subtype="html")
    raw = {
        "mail": bytes(thread),
        "html": f"<html><head><title>Owls</title></head><body><main>{body}</main></body></html>".encode(),
        "epub": packed(epub_parts({"a.xhtml": chapter(body)})),
    }[kind]
    found = read(kind, raw)
    assert found.title == ("" if kind == "epub" else "Owls")
    lines = [line for line in found.text.split("\n") if line.startswith(("Reply", "The end"))]
    assert lines == [*(f"Reply {number}." for number in range(depth)), "The end."]


def test_a_path_in_rich_text_is_no_binary_data():
    text = (
        rb"{\rtf1\ansi Run C:\\Games\\bin64\\run.exe; a licence costs 40 euros a year; please ask Lina Orr about it.}"
    )
    assert "costs 40 euros a year; please ask Lina Orr" in rtf_text(text).text
