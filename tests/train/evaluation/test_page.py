"""The HTML pages as text; what a browser makes of them is in test_page_browser.py."""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

import pytest

from agent.trace import Trace
from agent.trace.page import source_hash, view_script, view_style
from tests.train.evaluation.runs import SETTINGS, failed, passage, result, trace
from train.evaluation.report import summarise
from train.evaluation.report_html import LIMIT, report_page
from train.evaluation.result import QuestionResult

HOSTILE = "</script ><script>alert(1)</script><!-- <script \u2028\u2029 <img src=x onerror=alert(2)> ]]> \ud800"


def page_of(
    results: Sequence[QuestionResult], traces: Sequence[Trace] = (), *, limit: int = LIMIT, title: str = "t"
) -> str:
    figures = summarise(results, SETTINGS)
    return report_page(figures, results, lambda: traces, title=title, measured="2026-01-31", limit=limit)


class Reader(HTMLParser):
    """Every element with its attributes, and the text of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[str] = []
        self.inside = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside = tag in ("script", "style")
        if self.inside:
            self.inline.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.inline[-1] += data

    @property
    def data(self) -> dict[str, Any]:
        form = next(a["data-form"] for _, a in self.elements if a.get("id") == "data")
        text = self.inline[1]
        return json.loads(text if form == "json" else zlib.decompress(base64.b64decode(text)))


def hostile_run() -> tuple[list[QuestionResult], list[Trace]]:
    results = [
        result(1, HOSTILE, question=HOSTILE, type=HOSTILE, said=HOSTILE, id=HOSTILE, citations=(HOSTILE,)),
        failed(2).model_copy(update={"detail": HOSTILE}),
    ]
    found = passage(1, HOSTILE * 3, title=HOSTILE, url="javascript:alert(3)")
    return results, [trace(1, [found], thought=HOSTILE, answer=HOSTILE)]


@pytest.mark.parametrize("repeat", [1, 200], ids=["plain", "deflated"])
def test_no_text_from_elsewhere_becomes_markup(repeat: int):
    results, traces = hostile_run()
    traces[0] = traces[0].model_copy(update={"id": "t1"})
    more = [result(n, f"{n} {HOSTILE}" * 5, said=f"{n}{HOSTILE}") for n in range(10, 10 + 4 * repeat)]
    reader = Reader(page_of([*results, *more], traces, title=HOSTILE))
    assert [tag for tag, _ in reader.elements if tag in ("script", "style", "img", "iframe", "link", "a", "base")] == [
        "link", "style", "script", "script", "script",
    ]  # fmt: skip
    assert not [name for _, attributes in reader.elements for name in attributes if name.startswith("on")]
    assert "alert(1)" in json.dumps(reader.data)
    assert reader.data["texts"]
    assert not set("<>&\u2028\u2029") & set(reader.inline[1])


def test_the_page_allows_its_own_style_and_script_and_nothing_else():
    reader = Reader(page_of([result(1)], [trace(1, [])]))
    policy = next(a["content"] or "" for _, a in reader.elements if a.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert (rules["img-src"], rules["base-uri"], rules["form-action"]) == ("data:", "'none'", "'none'")
    style, _, _, script = reader.inline
    for name, text, view in (("style-src", style, view_style()), ("script-src", script, view_script())):
        assert rules[name] == f"'{source_hash(text)}' '{source_hash(view)}'"
    assert not [a for _, a in reader.elements if "style" in a]


def test_the_page_names_no_address():
    text = page_of([result(1)], [trace(1, [passage(1, "One.")])])
    assert not re.findall(r"""(?:src|href|action)\s*=\s*["']?(?!data:,)[^"'\s>]+""", text.split('id="data"')[0])
    assert not re.findall(r"https?://|url\(|@import|fetch\(|XMLHttpRequest|WebSocket|eval\(|innerHTML", text)


def test_the_page_says_what_was_measured_and_keeps_failures_apart():
    text = page_of([result(1), result(2, "no"), failed(3, "timeout")], title="questions.jsonl: cairn")
    for said in ("<h1>questions.jsonl: cairn</h1>", "scripted", "cairn 1", "2026-01-31", "no answer within the time"):
        assert said in text
    assert "1 of 3 questions failed for reasons outside of the agent" in text
    assert "failed for reasons" not in page_of([result(1)])


def test_every_metric_stands_with_its_definition():
    text = page_of([result(1, evidence_support=0.5)])
    assert '<td>Supported claims</td><td class="number">0.500</td>' in text
    assert "verbatim or close in a passage that they cite" in text


def long_run(questions: int, *, words: int) -> tuple[list[QuestionResult], list[Trace]]:
    """Questions with two rounds' worth of passages, none of them twice: what packs worst."""
    vocabulary = [hashlib.sha256(str(n).encode()).hexdigest()[: 4 + n % 7] for n in range(4000)]

    def text(seed: int) -> str:
        return " ".join(vocabulary[(seed * 7919 + n * n * 31 + n * 17) % 4000] for n in range(words))

    results = [result(n, "yes" if n % 3 else "no", seconds=n / 100, searches=n % 5) for n in range(questions)]
    passages = [
        [passage(n * 10 + p, text(n * 10 + p), title=f"Page {n}.{p}") for p in range(6)] for n in range(questions)
    ]
    return results, [trace(n, passages[n], thought=text(n)[:300]) for n in range(questions)]


@pytest.mark.slow
def test_a_thousand_questions_with_their_traces_stay_under_five_megabytes():
    results, traces = long_run(1000, words=100)
    text = page_of(results, traces)
    data = Reader(text).data
    assert sum(len(t.model_dump_json()) for t in traces) > 10_000_000
    assert len(text.encode()) < 5_000_000
    assert sum("trace" in question for question in data["questions"]) == 1000


def test_a_page_that_would_be_too_large_cuts_texts_and_says_so():
    results, traces = long_run(60, words=400)
    text = page_of(results, traces, limit=260_000)
    assert len(text.encode()) <= 260_000
    assert "To keep this page small" in Reader(text).data["note"]


def test_the_same_run_gives_the_same_page():
    results, traces = long_run(30, words=50)
    assert page_of(results, traces) == page_of(results[::-1], traces)
