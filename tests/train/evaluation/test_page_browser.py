"""What a browser makes of the pages: no request leaves, nothing runs that should not, all of it works on a phone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import CHROMIUM, Page, browser
from tests.train.evaluation.runs import failed, passage, result, stored, trace
from train.evaluation.compare import compared
from train.evaluation.compare_html import compare_page
from train.evaluation.report_files import read_run, write_report

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium on this machine"),
]

HOSTILE = "<img src=x onerror=document.title='owned'></script><script>document.title='owned'</script>"
NO_SCROLL = "document.documentElement.scrollWidth <= innerWidth"
FRAME = "document.querySelector('iframe.trace').contentDocument"
DRAWN = "[...document.querySelectorAll('iframe.trace')].every((f) => f.contentDocument.querySelector('.list .step'))"
ROWS = "document.querySelectorAll('tr.row').length"


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with browser(tmp_path / "profile") as opened:
        yield opened


def a_report(folder: Path, *, many: int = 0) -> Path:
    """A run with everything in it, and hostile text wherever text may stand."""
    found = [
        passage(1, f"It is. {HOSTILE} {'long' * 100}", title=HOSTILE, url="https://example.org/" + "x" * 200),
        passage(2, "Two."),
    ]
    results = [
        result(1, supporting=("p1", "gone"), searches=1, rounds=1, policy_tokens=20, seconds=1.5, usd=0.0),
        result(2, HOSTILE, type=HOSTILE, searches=3, rounds=2, policy_tokens=90, seconds=2.5),
        result(3, "I do not know", abstained=True, type="choice"),
        failed(4, "timeout"),
        *(result(n, "yes" if n % 2 else "no") for n in range(10, 10 + many)),
    ]
    traces = [
        trace(1, found),
        trace(2, found, thought=HOSTILE, answer=HOSTILE),
        *(trace(n, found) for n in range(10, 10 + many)),
    ]
    run = read_run(stored(folder, results, traces))
    return write_report(folder, run.figures(), run.results, title=HOSTILE, measured="2026-01-31")[-1]


def click(page: Page, selector: str) -> None:
    page.js(f"document.querySelector({selector!r}).click()")


def open_question(page: Page, id_: str) -> None:
    click(page, f"tr.row[data-id={id_}] .ask")
    page.wait_for("!!document.querySelector('td.detail')")
    page.wait_for(DRAWN)


@pytest.mark.parametrize("many", [0, 1500], ids=["plain data", "deflated data"])
def test_the_page_works_alone_and_runs_nothing_foreign(page: Page, tmp_path: Path, many: int):
    path = a_report(tmp_path / "run", many=many)
    page.open(path)
    assert page.js("document.getElementById('data').dataset.form") == ("deflate" if many else "json")
    for id_ in ("q4", "q2", "q1"):
        page.js(f"location.hash = '#q={id_}'")
        page.wait_for(f"!!document.querySelector('tr.row[data-id={id_}].open')")
    page.wait_for(DRAWN)
    page.js("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    assert page.js("document.title") == HOSTILE
    assert page.js("document.querySelectorAll('#questions img, #questions script, #questions a').length") == 0
    assert HOSTILE in page.js("document.body.textContent")
    frames = "[...document.querySelectorAll('iframe.trace')].map((f) => f.contentDocument)"
    page.js(f"{frames}.forEach((d) => d.querySelector('.node-head').click())")
    page.wait_for(f"{frames}.every((d) => d.querySelector('.passage'))")
    assert page.js(f"{frames}.every((d) => d.title === 'Trace')")
    assert page.js(f"{frames}.flatMap((d) => [...d.querySelectorAll('#app :is(img, script, iframe)')]).length") == 0
    assert HOSTILE in page.js(f"{frames}.map((d) => d.querySelector('#app').textContent).join()")
    assert [url for url in page.requests if url != path.resolve().as_uri()] == []
    assert page.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_is_wider_than_the_screen_and_text_is_legible(page: Page, tmp_path: Path, width: int, scheme: str):
    page.open(a_report(tmp_path / "run"), width=width, height=780, scheme=scheme)
    assert page.js(NO_SCROLL)
    open_question(page, "q1")
    page.js("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    assert page.js(NO_SCROLL)
    assert page.js(f"{FRAME}.documentElement.scrollWidth <= {FRAME}.documentElement.clientWidth")
    assert page.js(f"{FRAME}.querySelector('.list').getBoundingClientRect().width") > 200
    for body in ("document.body", f"{FRAME}.body"):
        ink, paper = (page.js(f"getComputedStyle({body}).{name}") for name in ("color", "backgroundColor"))
        light = [sum(int(part) for part in colour[4:-1].split(",")) for colour in (ink, paper)]
        assert (light[1] > light[0] + 400) if scheme == "light" else (light[0] > light[1] + 400)


def test_the_theme_can_be_chosen_against_the_system(page: Page, tmp_path: Path):
    page.open(a_report(tmp_path / "run"), scheme="light")
    before = page.js("getComputedStyle(document.body).backgroundColor")
    click(page, "#theme")
    after = page.js("getComputedStyle(document.body).backgroundColor")
    assert before != after
    assert page.js("document.getElementById('theme').textContent") == "Light"
    page.prefer("dark")
    assert page.js("getComputedStyle(document.body).backgroundColor") == after


def test_questions_are_filtered_searched_and_sorted(page: Page, tmp_path: Path):
    page.open(a_report(tmp_path / "run"))
    assert page.js(ROWS) == 4
    page.js(
        "{const s = document.querySelector('.tools select'); s.value = 'wrong'; s.dispatchEvent(new Event('change'))}"
    )
    assert page.js("[...document.querySelectorAll('tr.row')].map((r) => r.dataset.id).join()") == "q2"
    assert page.js("document.querySelector('[role=status]').textContent") == "1 of 4 questions"
    page.js("{const s = document.querySelector('.tools select'); s.value = ''; s.dispatchEvent(new Event('change'))}")
    page.js(
        "{const s = document.querySelector('[type=search]'); s.value = 'NUMBER 3'; s.dispatchEvent(new Event('input'))}"
    )
    assert page.js("[...document.querySelectorAll('tr.row')].map((r) => r.dataset.id).join()") == "q3"
    page.js("{const s = document.querySelector('[type=search]'); s.value = ''; s.dispatchEvent(new Event('input'))}")
    click(page, "th[data-name=seconds] button")
    click(page, "th[data-name=seconds] button")
    assert page.js("document.querySelector('th[data-name=seconds]').getAttribute('aria-sort')") == "descending"
    assert page.js("document.querySelector('tr.row').dataset.id") == "q2"


def test_a_trace_opens_by_keyboard_marks_gold_and_cites_lead_to_passages(page: Page, tmp_path: Path):
    page.open(a_report(tmp_path / "run"))
    page.js("document.querySelector('tr.row[data-id=q1] .ask').focus()")
    page.press("Enter")
    page.wait_for("!!document.querySelector('td.detail')")
    page.wait_for(DRAWN)
    page.js(f"{FRAME}.querySelector('.node-head').click()")
    page.wait_for(f"{FRAME}.querySelectorAll('.node .tag.gold').length == 2")  # of the search, and of its passage
    assert "never shown: gone" in page.js("document.querySelector('td.detail').textContent")
    page.js(f"{FRAME}.querySelector('.chip').click()")
    page.wait_for(f"{FRAME}.querySelector('.peek').textContent.includes('It is.')")
    page.js(f"{FRAME}.querySelector('#tab-raw').click()")
    page.wait_for(f"{FRAME}.querySelectorAll('.raw .environment').length == 1")
    page.press("Escape")
    assert page.js("document.querySelector('td.detail')") is None


def test_an_address_leads_to_a_question_also_far_down(page: Page, tmp_path: Path):
    page.open(a_report(tmp_path / "run", many=300), at="#q=q305")
    page.wait_for("!!document.querySelector('td.detail')")
    assert page.js("document.querySelector('tr.row.open').dataset.id") == "q305"
    assert page.js("document.querySelectorAll('tr.row').length") > 100


def test_a_comparison_shows_both_traces_side_by_side(page: Page, tmp_path: Path):
    found = [passage(1, f"One. {HOSTILE}")]
    before = stored(
        tmp_path / "before", [result(1, HOSTILE), result(2)], [trace(1, found, thought=HOSTILE), trace(2, found)]
    )
    after = stored(tmp_path / "after", [result(1), result(2, "no")], [trace(1, found), trace(2, found)])
    runs = read_run(before), read_run(after)
    path = tmp_path / "compare.html"
    path.write_text(compare_page(compared(*runs), *runs), encoding="utf-8")
    page.open(path, width=360)
    assert page.js("[...document.querySelectorAll('tr.row .verdict')].map((v) => v.textContent).join()") == (
        "now right,✗ wrong,✓ right,no longer right,✓ right,✗ wrong"
    )
    assert "[object" not in page.js("document.body.textContent")
    open_question(page, "q1")
    assert page.js("document.querySelectorAll('.side-by-side iframe.trace').length") == 2
    assert page.js(NO_SCROLL)
    assert [url for url in page.requests if url != path.resolve().as_uri()] == []
    assert page.complaints == []
