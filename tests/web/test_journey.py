"""What a person does on the page, in a real browser, held against the server's own word."""

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from docx import Document
from playwright.sync_api import Browser, expect
from pypdf import PdfReader

from agent.policies.local_servers import LocalServer
from agent.world import load_world
from tests.server.threaded import in_thread
from tests.web.documents import docx_of, drop, holding, pdf_of
from tests.web.pages import Watched, scripted, tab

pytestmark = pytest.mark.web


BIRTHPLACE, DIRECTOR = "Vellastad", "Odrun Keld"
"""In no other text, and in no question."""
BOOKLET = pdf_of(
    "Aurora Falls",
    "Aurora Falls is a film about a miller and his daughter. " + "The valley has a river and a mill. " * 26,
    f"Aurora Falls was directed by {DIRECTOR}. It was released in 1931.",
)
MILL = docx_of(
    "Silver Mill", {"Plot": "A miller finds a coin.", "Production": "Silver Mill is a film directed by Ada Quill."}
)
NOTES = {
    "people/hulda.md": f"# Hulda Ravnsborg\n\nHulda Ravnsborg was an engineer. She was born in {BIRTHPLACE} in 1871.\n",
    "ivo.md": "# Ivo Benn\n\nIvo Benn was a painter. He was born in Gdynia in 1902.\n",
}


def nodes_of(trace: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """`round.node` → its source, and how it ended."""
    found: dict[str, tuple[str, str]] = {}
    for step in trace["steps"]:
        if step["kind"] == "searched":
            found[f"{step['round']}.{step['node']}"] = (step["source"], "found" if step["passages"] else "empty")
        elif step["kind"] in ("search_failed", "skipped"):
            found[f"{step['round']}.{step['node']}"] = (step["source"], step["kind"].removeprefix("search_"))
    return found


def ask_example(page: Watched, place: int = 3) -> None:
    page.page.locator(".examples button").nth(place).click()
    page.page.wait_for_selector(".run .status")
    page.ended()


def test_the_first_page_says_what_the_embedded_policy_knows_and_how_to_connect_a_model(page: Watched) -> None:
    expect(page.page.locator(".banner")).to_contain_text("little world")
    expect(page.page.locator(".banner")).to_contain_text("--policy openai")
    assert page.page.locator(".examples button").count() >= 4


def test_a_model_server_of_this_machine_is_offered_with_a_command_to_copy(browser: Browser) -> None:
    local = LocalServer("Ollama", "http://127.0.0.1:11434/v1", ("a model & more", "qwen3:8b"))

    async def find() -> list[LocalServer]:
        return [local]

    granted = {"permissions": ["clipboard-read", "clipboard-write"]}
    with in_thread(scripted(local_models=find)) as address, tab(browser, address, **granted) as watched:
        line = watched.page.locator(".local-server")
        expect(line.locator("code")).to_have_text(local.command("a model & more"))
        expect(line).to_contain_text("Ollama runs on this machine")
        line.get_by_role("button", name="Copy").click()
        expect(line.get_by_role("button")).to_have_text("Copied")
        assert watched.page.evaluate("navigator.clipboard.readText()") == local.command("a model & more")


def test_where_no_model_server_runs_none_is_offered(page: Watched) -> None:
    expect(page.page.locator(".banner")).to_be_visible()
    assert page.page.locator(".local-server").count() == 0


def test_a_question_is_answered_and_its_trace_grows_on_the_page(page: Watched) -> None:
    page.page.evaluate("""() => {
        window.seen = []
        new MutationObserver(() => seen.push(document.querySelectorAll('.list .step').length))
            .observe(document.body, {childList: true, subtree: true})
    }""")
    ask_example(page)
    seen = page.page.evaluate("[...new Set(seen)]")
    trace = page.trace()
    steps = [
        s for s in trace["steps"] if s["kind"] not in ("searched", "search_failed", "skipped", "filled", "gathered")
    ]
    assert page.page.locator(".list > .step").count() == len(steps)
    assert len([n for n in seen if n]) > 3, "it came all at once"
    answer = next(s["text"] for s in trace["steps"] if s["kind"] == "answered")
    expect(page.page.locator(".answer-text")).to_contain_text(answer)


def test_a_citation_opens_the_exact_quote_with_its_source_and_check(page: Watched) -> None:
    ask_example(page)
    claims = next(s["claims"] for s in page.trace()["steps"] if s["kind"] == "evidenced")
    quoted = next(claim for claim in claims if claim["quotes"])
    chip = page.page.locator(".answer .claims li", has_text=quoted["text"]).locator(".chip").first
    chip.focus()
    peek = page.page.locator(".peek")
    expect(peek.locator("mark").first).to_have_text(quoted["quotes"][0]["text"])
    expect(peek.locator(".check")).to_have_text(quoted["check"].replace("_", " "))
    expect(peek.locator(".tag")).not_to_be_empty()
    page.page.keyboard.press("Escape")
    expect(peek).to_have_count(0)
    chip.hover()
    expect(peek).to_be_visible()


def test_graph_and_waterfall_agree_with_the_trace(page: Watched) -> None:
    ask_example(page)
    trace = page.trace()
    wanted = nodes_of(trace)
    page.page.click("#tab-graph")
    page.page.wait_for_selector(".vertex.node")
    drawn = page.page.eval_on_selector_all(
        ".vertex.node", "all => all.map(v => [v.dataset.key, [v.querySelector('.tag').textContent, v.dataset.state]])"
    )
    assert {key: tuple(state) for key, state in drawn} == wanted
    rounds = [s for s in trace["steps"] if s["kind"] == "planned"]
    assert page.page.locator(".vertex.merge").count() == len(rounds)
    roots = sum(not node["parents"] for s in rounds for node in s["plan"]["nodes"])
    edges = sum(len(node["parents"]) for s in rounds for node in s["plan"]["nodes"])
    parents = {f"{s['round']}.{p}" for s in rounds for node in s["plan"]["nodes"] for p in node["parents"]}
    assert page.page.locator(".edge").count() == roots + edges + len(wanted) - len(parents) + 1
    page.page.click("#tab-waterfall")
    bars = page.page.eval_on_selector_all(
        ".fall", "all => all.map(b => [b.dataset.key, b.dataset.kind, +b.dataset.from, +b.dataset.to])"
    )
    searches = {key: (start, end) for key, kind, start, end in bars if kind in ("search", "empty", "failed")}
    assert searches.keys() == {key for key, (_, how) in wanted.items() if how != "skipped"}
    for step in trace["steps"]:
        if step["kind"] == "searched":
            start, end = searches[f"{step['round']}.{step['node']}"]
            assert end == pytest.approx(step["seconds"])
            assert end - start == pytest.approx(step["took"], abs=1e-6)


def test_a_search_that_is_picked_in_one_view_is_picked_in_each(page: Watched) -> None:
    ask_example(page)
    page.page.locator(".nodes .node-head").nth(1).click()
    key = page.page.locator(".node[data-picked]").get_attribute("data-at")
    page.page.click("#tab-graph")
    expect(page.page.locator(".vertex[aria-pressed=true]")).to_have_attribute("data-key", key or "")
    page.page.click("#tab-waterfall")
    expect(page.page.locator(".fall[aria-pressed=true]").first).to_have_attribute("data-key", key or "")
    assert page.page.locator(".beside .passage").count() > 0


def test_the_raw_text_is_the_trace_s_to_the_letter_and_the_environment_is_tinted(page: Watched) -> None:
    ask_example(page)
    segments = page.trace()["segments"]
    page.page.click("#tab-raw")
    page.page.wait_for_selector(".piece")
    drawn = page.page.eval_on_selector_all(".piece", "all => all.map(p => [p.classList[1], p.textContent])")
    assert drawn == [[s["by"], s["text"]] for s in segments]
    colours = page.page.eval_on_selector_all(
        ".piece.environment, .piece.policy",
        "all => all.map(p => [p.classList[1], getComputedStyle(p).backgroundColor])",
    )
    assert len({tuple(pair) for pair in colours}) == 2
    tokens = sum(len(s["ids"]) for s in segments if s["by"] == "policy")
    expect(page.page.locator(".authors")).to_contain_text(f"{tokens} tokens")


def test_the_replay_goes_through_the_steps_in_every_view(page: Watched) -> None:
    ask_example(page)
    steps = sorted(page.trace()["steps"], key=lambda step: step["seconds"])
    first_plan = next(at for at, step in enumerate(steps) if step["kind"] == "planned")
    slider = page.page.locator(".replay input")
    slider.evaluate("(s, to) => { s.value = to; s.dispatchEvent(new Event('input', {bubbles: true})) }", first_plan + 1)
    expect(page.page.locator(".node.running")).to_have_count(
        sum(not node["parents"] for node in steps[first_plan]["plan"]["nodes"])
    )
    expect(page.page.locator(".answer-text")).to_have_count(0)
    page.page.click("#tab-graph")
    expect(page.page.locator(".vertex.answer.done")).to_have_count(0)
    page.page.click(".replay button")
    expect(page.page.locator(".vertex.answer.done")).to_have_count(1, timeout=20_000)


def test_a_follow_up_is_answered_in_the_same_conversation_with_the_turns_before_it(page: Watched) -> None:
    followup = next(q for q in load_world("test-v2").questions if q.question == "And her birth year?")
    ((question, answer),) = followup.history
    page.ask(question)
    page.ended()
    first = page.api(f"/api/runs/{page.run_id}")
    assert first["answer"] == answer
    page.ask(followup.question)
    page.page.wait_for_selector(".turn")
    page.ended()
    second = page.api(f"/api/runs/{page.run_id}")
    assert second["conversation"] == first["conversation"]
    assert second["trace"]["history"] == [[question, answer]]
    expect(page.page.locator(".turn")).to_contain_text(question)
    assert second["answer"] in followup.answers
    expect(page.page.locator(".answer-text")).to_contain_text(second["answer"])


def test_another_follow_up_of_an_earlier_turn_knows_nothing_of_the_first_one(page: Watched) -> None:
    followup = next(q for q in load_world("test-v2").questions if q.question == "And her birth year?")
    page.ask(followup.history[0][0])
    page.ended()
    first = page.run_id
    page.ask(followup.question)
    page.ended()
    page.page.click(".turn")
    page.page.wait_for_url(f"**/{first}")
    page.page.fill("#question", "And her")
    page.page.go_back()
    page.page.wait_for_selector(".turn")
    page.page.go_forward()
    expect(page.page.locator("#question")).to_have_value("And her")
    page.ask(followup.question)
    page.page.wait_for_selector(".turn")
    page.ended()
    assert page.trace()["history"] == [list(turn) for turn in followup.history]


def test_the_history_is_searched_and_a_run_is_removed_from_it(page: Watched) -> None:
    page.ask("What is zanzibar?")
    page.ended()
    gone = page.run_id
    page.page.fill("#sought", "zanzi")
    expect(page.page.locator(".entry")).to_have_count(1)
    page.page.fill("#sought", "nothing like that")
    expect(page.page.locator(".side .none")).to_be_visible()
    page.page.fill("#sought", "zanzi")
    page.page.locator(".entry").hover()
    page.page.locator(".bin").click()
    expect(page.page.locator(".entry")).to_have_count(0)
    assert page.page.request.get(f"{page.address}/api/runs/{gone}").status == 404


def test_every_export_is_the_server_s_file_and_the_shared_page_needs_no_server(page: Watched, tmp_path: Path) -> None:
    ask_example(page)
    page.page.click("#tab-evidence")
    for name, ending in (("JSON", "json"), ("Markdown", "md"), ("BibTeX", "bib")):
        with page.page.expect_download() as download:
            page.page.get_by_role("button", name=name, exact=True).click()
        assert download.value.suggested_filename.endswith(f".{ending}")
    with page.page.expect_download() as download:
        page.page.get_by_role("button", name="Share").click()
    text = download.value.path().read_text(encoding="utf-8")
    answer = page.api(f"/api/runs/{page.run_id}")["answer"]
    assert f"<p>{answer}</p>" in text
    shared = page.page.context.new_page()
    requests: list[str] = []
    shared.on("request", lambda request: requests.append(request.url))
    shared.goto(download.value.path().rename(tmp_path / "shared.html").as_uri())
    expect(shared.locator(".answer-text")).to_contain_text(answer)
    shared.click("#tab-graph")
    expect(shared.locator(".vertex.answer.done")).to_have_count(1)
    assert requests == [shared.url]


def test_the_bundle_is_copied_as_rstool_gives_it(page: Watched) -> None:
    ask_example(page)
    page.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.page.click("#tab-evidence")
    page.page.get_by_role("button", name="Copy as RSTool bundle").click()
    page.page.get_by_role("button", name="Copied").wait_for()
    copied = page.page.evaluate("navigator.clipboard.readText().then(JSON.parse)")
    assert copied == page.api(f"/api/runs/{page.run_id}/evidence")["bundle"]
    assert copied["outcome"] == "found"


def test_one_question_is_compared_under_two_protocols(page: Watched) -> None:
    ask_example(page)
    first = page.run_id
    page.page.get_by_label("Compare with").select_option("cairn/multisearch")
    page.page.get_by_role("button", name="Compare", exact=True).click()
    page.page.wait_for_selector(".compare")
    expect(page.page.locator(".column")).to_have_count(2)
    expect(page.page.locator(".column .step.stopped")).to_have_count(2)
    ids = page.page.url.split("/compare/")[1].split("/")
    assert ids[0] == first
    assert page.api(f"/api/runs/{ids[1]}")["protocol"] == "multisearch"
    headings = page.page.locator(".column h2").all_inner_texts()
    assert [heading.split()[0] for heading in headings] == ["cairn", "multisearch"]


def test_options_reach_the_run(page: Watched) -> None:
    page.page.get_by_role("button", name="Options").click()
    page.page.get_by_text("high", exact=True).click()
    page.page.locator(".pill", has_text="news").click()
    page.page.fill("input[type=date] >> nth=0", "2020-01-01")
    page.page.get_by_label("Protocol").select_option("cairn/reflect")
    page.ask("Which film was released last, The Gerta River or The Sputire Garden?")
    page.ended()
    trace = page.trace()
    assert trace["protocol"] == "reflect"
    assert trace["only"] == ["news"]
    assert trace["filters"] == [{"name": "after", "value": "2020-01-01"}]


@pytest.mark.timeout(300)
def test_a_new_user_asks_their_own_documents_takes_a_report_along_and_leaves_nothing_behind(
    browser: Browser, manual: str, data: Path, tmp_path: Path
):
    for name, text in NOTES.items():
        (tmp_path / "notes" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "notes" / name).write_text(text, encoding="utf-8")
    with tab(browser, manual) as watched:
        page = watched.page
        drop(watched, {"booklet.pdf": BOOKLET, "mill.docx": MILL, "picture.xyz": "no text"})
        expect(page.locator(".uploads")).to_contain_text(
            "3 files uploaded; ready; 1 file of the library could not", timeout=90_000
        )
        library = watched.api("/v1/vector_stores")["data"][0]["id"]
        expect(page.get_by_label("Search in")).to_have_value(library)
        page.goto(f"{manual}/#/library/{library}")
        page.locator("input[type=file]").last.set_input_files(tmp_path / "notes")
        expect(page.locator(".library > .meta")).to_contain_text("5 documents", timeout=30_000)
        expect(page.locator(".library .uploads").last).to_contain_text("5 files uploaded; ready", timeout=90_000)
        unread = page.locator(".cards li").filter(has_text="picture.xyz")
        expect(unread).to_contain_text("files of this kind are not read")
        page.get_by_role("button", name="Ask here").click()
        asks_and_opens(watched, "Who directed Aurora Falls?", DIRECTOR, "booklet.pdf", "page 2")
        asks_and_opens(watched, "Who directed Silver Mill?", "Ada Quill", "mill.docx", "Silver Mill › Production")
        asks_and_opens(
            watched, "Where was Hulda Ravnsborg born?", BIRTHPLACE, "notes/people/hulda.md", "Hulda Ravnsborg"
        )
        researches_and_takes_along(watched, "Aurora Falls and its director")
        page.locator(".entry", has_text="Where was Hulda Ravnsborg born?").click()
        watched.ended()
        watched.ask("And Ivo Benn?")
        watched.ended()
        expect(page.locator(".follow-up")).to_contain_text("You wrote: “And Ivo Benn?”")
        expect(page.locator(".answer-text")).to_contain_text("Gdynia")
        for word in (BIRTHPLACE, DIRECTOR):
            assert holding(data, word.split()[-1])
        page.goto(f"{manual}/#/library/{library}")
        page.get_by_role("button", name="Delete", exact=True).click()
        page.get_by_role("button", name="Delete it all").click()
        expect(page.get_by_text("There is no library yet.")).to_be_visible()
        assert watched.api("/v1/files")["data"] == []
        assert watched.api("/api/reports")["reports"] == []
        for word in (BIRTHPLACE, DIRECTOR):
            assert holding(data, word.split()[-1]) == []
        assert [path.name for path in (data / "libraries").rglob("*") if path.is_file()] == [".store"]


def asks_and_opens(watched: Watched, question: str, answer: str, file: str, place: str) -> None:
    """Ask in a new conversation, and open the first citation in its document."""
    page = watched.page
    page.locator("a.brand").click()
    watched.ask(question)
    watched.ended()
    expect(page.locator(".answer-text")).to_contain_text(answer)
    page.locator(".answer .chip").first.focus()
    page.locator(".peek-title a").click()
    expect(page.locator(".document h1")).to_have_text(file)
    expect(page.locator(".passage.here")).to_contain_text(place)
    expect(page.locator(".passage.here mark")).to_contain_text(answer)


def researches_and_takes_along(watched: Watched, question: str) -> None:
    """Have a report researched, open one of its citations, and save it as files."""
    page = watched.page
    page.locator("a.brand").click()
    page.get_by_text("Report", exact=True).click()
    page.fill("#question", question)
    page.press("#question", "Enter")
    expect(page.locator(".report .uploads")).to_contain_text("searches", timeout=30_000)
    expect(page.locator(".report .uploads")).to_contain_text("Done", timeout=200_000)
    expect(page.locator(".report section").first).to_contain_text(DIRECTOR)
    page.locator(".report section p .chip").first.click()
    expect(page.locator(".document .passage.here")).to_be_visible()
    page.go_back()
    saved = {name: saved_as(watched, name) for name in ("Markdown", "Word", "PDF")}
    assert DIRECTOR in saved["Markdown"].decode()
    assert DIRECTOR in "".join(paragraph.text for paragraph in Document(BytesIO(saved["Word"])).paragraphs)
    assert DIRECTOR in "".join(page.extract_text() for page in PdfReader(BytesIO(saved["PDF"])).pages)


def saved_as(watched: Watched, format: str) -> bytes:
    with watched.page.expect_download() as download:
        watched.page.get_by_role("button", name=format).click()
    return download.value.path().read_bytes()
