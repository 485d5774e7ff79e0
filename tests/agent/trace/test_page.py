"""The page of one trace as text; what a browser makes of it is in tests/web and in the report of an evaluation."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

from agent.evidence import Passage
from agent.trace import Answered, Gathered, Segment, Stopped, Trace
from agent.trace.page import trace_page

HOSTILE = "</script ><script>alert(1)</script><!-- <script \u2028\u2029 <img src=x onerror=alert(2)> ]]> \ud800"


def hostile() -> Trace:
    passage = Passage(id="1", source="web", title=HOSTILE, text=HOSTILE, url="javascript:alert(3)", score=float("nan"))
    return Trace(
        id="t",
        question=HOSTILE,
        protocol="cairn",
        policy="scripted",
        segments=[Segment(by="policy", text=HOSTILE, ids=(1, 2), logprobs=(-0.1, -0.2))],
        steps=[Gathered(round=1, passages=(passage,)), Answered(text=HOSTILE), Stopped(reason="answered")],
    )


def elements(page: str) -> list[str]:
    found: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: found.append(tag)
    parser.feed(page)
    return found


def data_of(page: str) -> Any:
    return json.loads(page.split('id="data">')[1].split("</script>")[0])


def test_a_trace_is_data_that_cannot_end_its_element():
    page = trace_page(hostile())
    assert elements(page) == "html head meta meta meta meta link title style body div main h1 p script script".split()
    assert not set("<>&\u2028\u2029") & set(page.split('id="data">')[1].split("</script>")[0])
    trace = data_of(page)["trace"]
    assert trace["question"] == HOSTILE.replace("\ud800", "?")
    assert trace["steps"][0]["passages"][0]["score"] is None
    assert trace["segments"][0]["ids"] == [1, 2]
    assert "logprobs" not in trace["segments"][0]


def test_the_policy_of_the_page_allows_its_own_style_and_script_and_nothing_else():
    page = trace_page(hostile())
    rules = dict(rule.split(" ", 1) for rule in re.findall(r'Policy" content="([^"]*)"', page)[0].split("; "))
    style = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)[0]
    script = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)[0]
    assert rules.pop("style-src") == f"'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'"
    assert rules.pop("script-src") == f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
    assert rules == {"default-src": "'none'", "img-src": "data:", "base-uri": "'none'", "form-action": "'none'"}


def test_without_javascript_the_page_shows_the_question_and_the_answer():
    trace = Trace(id="t", question="1 < 2?", protocol="cairn", policy="p", steps=[Answered(text="<b>Yes</b>")])
    assert "<main><h1>1 &lt; 2?</h1><p>&lt;b&gt;Yes&lt;/b&gt;</p></main>" in trace_page(trace)
