"""Your documents on the page: dropped, read, searched, opened where they are quoted, and deleted, in a real browser."""

import base64
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from agent.settings import load_settings
from server.launch import make_service
from tests.agent.models.case import put_base_into_cache
from tests.server.threaded import in_thread
from tests.web.pages import Watched, tab

pytestmark = [pytest.mark.web, pytest.mark.timeout(300)]

WORD = "Ravnsborg"
"""In no other text."""
ENGINEER = f"""# Hulda {WORD}

Hulda {WORD} was an engineer. She was born in Trieste in 1871.

## Works

The lighthouse of Marielund is her best known work.
"""
FERRY = (
    "<html><head><title>The ferry Marielund</title></head><body><p>The ferry Marielund was built in Gdynia in 1987.</p>"
)
DROP = """([box, files]) => {
    const data = new DataTransfer()
    for (const [name, body] of files) {
        const bytes = Uint8Array.from(atob(body), c => c.charCodeAt(0))
        data.items.add(new File([bytes], name))
    }
    for (const kind of ["dragover", "drop"])
        box.dispatchEvent(new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true}))
}"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def manual(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A server as `make serve` starts it: the manual, and the policy that reads English."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        put_base_into_cache()
        settings = load_settings(None, world="", store=str(data / "runs.sqlite"), library_folder=data / "libraries")
        service = make_service(settings)
    assert service.agent.policy.name == "small-v1"
    with in_thread(service) as address:
        yield address


def drop(page: Watched, box: str, **files: str) -> None:
    named = [[name.replace("__", "."), base64.b64encode(text.encode()).decode()] for name, text in files.items()]
    page.page.evaluate(f"args => ({DROP})([document.querySelector(args[0]), args[1]])", [box, named])


def holding(folder: Path, word: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


def test_documents_are_dropped_searched_opened_at_the_quote_and_deleted(browser: Browser, manual: str, data: Path):
    with tab(browser, manual) as watched:
        page = watched.page
        drop(watched, ".box", engineer__md=ENGINEER, ferry__html=FERRY, picture__xyz="no text")
        expect(page.locator(".uploads")).to_contain_text(
            "3 files uploaded; ready; 1 file could not be read", timeout=90_000
        )
        expect(page.get_by_label("Search in")).to_have_value(watched.api("/v1/vector_stores")["data"][0]["id"])
        watched.ask(f"Where was Hulda {WORD} born?")
        watched.ended()
        expect(page.locator(".answer-text")).to_contain_text("Trieste")
        page.locator(".answer .chip").first.focus()
        page.locator(".peek-title a").click()
        expect(page.locator(".document h1")).to_have_text("engineer.md")
        expect(page.locator(".passage.here")).to_contain_text("Hulda Ravnsborg was an engineer")
        expect(page.locator(".passage.here mark")).to_contain_text("born in Trieste")
        page.get_by_role("link", name="Your documents").first.click()
        page.get_by_role("link", name="My documents").click()
        expect(page.locator(".cards li").filter(has_text="picture.xyz")).to_contain_text(
            "files of this kind are not read"
        )
        page.locator(".cards li").filter(has_text="ferry.html").get_by_role("button", name="Ask this one").click()
        watched.ask("Where was the ferry Marielund built?")
        watched.ended()
        expect(page.locator(".answer-text")).to_contain_text("Gdynia")
        assert holding(data, WORD)
        page.get_by_role("link", name="Your documents").first.click()
        page.get_by_role("link", name="My documents").click()
        page.get_by_role("button", name="Delete", exact=True).click()
        page.get_by_role("button", name="Delete it all").click()
        expect(page.get_by_text("There is no library yet.")).to_be_visible()
        assert watched.api("/v1/files")["data"] == []
        assert holding(data, WORD) == []


def test_a_follow_up_checks_a_claim_again_and_says_what_is_used_again(browser: Browser, manual: str):
    with tab(browser, manual) as watched:
        page = watched.page
        drop(watched, ".box", engineer__md=ENGINEER)
        expect(page.locator(".uploads")).to_contain_text("1 file uploaded; ready", timeout=90_000)
        watched.ask(f"Where was Hulda {WORD} born?")
        watched.ended()
        expect(page.locator(".answer-text")).to_contain_text("Trieste")
        watched.ask("check the first claim again")
        watched.ended()
        expect(page.locator(".answer-text")).to_contain_text("Supported: a passage says it")
        expect(page.locator(".follow-up")).to_contain_text("You wrote: “check the first claim again”")
        expect(page.locator(".follow-up")).to_contain_text("Everything was searched again.")
        page.go_back()
        watched.ended()
        watched.ask(f"And Hulda {WORD}?")
        watched.ended()
        expect(page.locator(".follow-up")).to_contain_text("of the run before used again, 0 new")
        expect(page.locator(".answer-text")).to_contain_text("Trieste")


def test_a_library_is_called_ready_only_when_the_server_says_so_after_the_upload(browser: Browser, manual: str):
    with tab(browser, manual) as watched:
        page = watched.page
        page.evaluate("""() => {
            window.seen = []
            new MutationObserver(() => seen.push(document.querySelector('.uploads')?.textContent ?? ''))
                .observe(document.body, {childList: true, subtree: true, characterData: true})
        }""")
        held: list[Route] = []
        page.route("**/v1/vector_stores?*", lambda route: held.append(route))
        with page.expect_request(lambda request: "/v1/vector_stores?" in request.url):
            drop(watched, ".box", engineer__md=ENGINEER)
        expect(page.locator(".uploads")).to_contain_text("Uploading 1 file")
        assert not any("ready" in text for text in page.evaluate("seen"))
        for route in held:
            route.continue_()
        page.unroute("**/v1/vector_stores?*")
        expect(page.locator(".uploads")).to_contain_text("1 file uploaded; ready", timeout=90_000)


def test_a_library_is_named_filled_from_a_folder_and_shown_in_the_dark_on_a_small_screen(
    browser: Browser, manual: str, tmp_path: Path
):
    (tmp_path / "notes" / "deep").mkdir(parents=True)
    (tmp_path / "notes" / "a.md").write_text("# A\n\nThe first note.\n", encoding="utf-8")
    (tmp_path / "notes" / "deep" / "b.txt").write_text("The second note.\n", encoding="utf-8")
    shape: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}
    with tab(browser, manual, **shape) as watched:
        page = watched.page
        page.goto(f"{manual}/#/library")
        page.get_by_label("Name of a new library").fill("Notes")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Name of the library")).to_have_value("Notes")
        page.locator("input[type=file]").last.set_input_files(tmp_path / "notes")
        expect(page.locator(".cards li")).to_have_count(2)
        expect(page.locator(".cards")).to_contain_text("notes/deep/b.txt")
        expect(page.locator(".library > .meta")).to_contain_text("2 documents")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, "nothing is wider than the screen"


def test_a_report_is_researched_on_the_page_and_taken_along(browser: Browser, manual: str):
    with tab(browser, manual) as watched:
        page = watched.page
        drop(watched, ".box", engineer__md=ENGINEER, ferry__html=FERRY)
        expect(page.locator(".uploads")).to_contain_text("ready", timeout=90_000)
        page.get_by_text("Report", exact=True).click()
        page.fill("#question", f"The works of Hulda {WORD}")
        page.press("#question", "Enter")
        expect(page.locator(".report .uploads")).to_contain_text("searches", timeout=30_000)
        expect(page.locator(".report .uploads")).to_contain_text("Done", timeout=200_000)
        expect(page.locator(".report section").first).to_contain_text(WORD)
        page.locator(".report section p .chip").first.click()
        expect(page.locator(".document .passage.here")).to_be_visible()
        page.go_back()
        with page.expect_download() as download:
            page.get_by_role("button", name="Markdown").click()
        assert WORD in download.value.path().read_text("utf-8")
        with page.expect_download() as download:
            page.get_by_role("button", name="Word").click()
        assert download.value.path().read_bytes().startswith(b"PK")


def test_settings_are_checked_and_saved_on_the_page(
    browser: Browser, manual: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with tab(browser, manual) as watched:
        page = watched.page
        page.get_by_role("link", name="Settings").click()
        page.get_by_label("Address").fill("http://127.0.0.1:9/v1")
        page.get_by_label("Name").fill("qwen3:8b")
        page.get_by_role("button", name="Check").click()
        expect(page.locator(".setting").filter(has_text="Address")).to_contain_text("start the server", timeout=60_000)
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("restart the server to use it")).to_be_visible()
    assert "qwen3:8b" in (tmp_path / "cairn" / "settings.toml").read_text("utf-8")
