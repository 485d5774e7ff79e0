"""Your documents, follow-ups and settings on the page, in a real browser; test_journey.py goes all the way."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.web.documents import drop, pdf_of
from tests.web.pages import tab

pytestmark = [pytest.mark.web, pytest.mark.timeout(300)]

ENGINEER = """# Hulda Ravnsborg

Hulda Ravnsborg was an engineer. She was born in Trieste in 1871.

## Works

The lighthouse of Marielund is her best known work.
"""


def test_a_follow_up_checks_a_claim_again_and_says_what_is_used_again(browser: Browser, manual: str):
    with tab(browser, manual) as watched:
        page = watched.page
        drop(watched, {"engineer.md": ENGINEER})
        expect(page.locator(".uploads")).to_contain_text("1 file uploaded; ready", timeout=90_000)
        watched.ask("Where was Hulda Ravnsborg born?")
        watched.ended()
        expect(page.locator(".answer-text")).to_contain_text("Trieste")
        watched.ask("check the first claim again")
        watched.ended()
        expect(page.locator(".answer-text")).to_contain_text("Supported: a passage says it")
        expect(page.locator(".follow-up")).to_contain_text("You wrote: “check the first claim again”")
        expect(page.locator(".follow-up")).to_contain_text("Everything was searched again.")
        page.go_back()
        watched.ended()
        watched.ask("And Hulda Ravnsborg?")
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
            drop(watched, {"engineer.md": ENGINEER})
        expect(page.locator(".uploads")).to_contain_text("Uploading 1 file")
        assert not any("ready" in text for text in page.evaluate("seen"))
        for route in held:
            route.continue_()
        page.unroute("**/v1/vector_stores?*")
        expect(page.locator(".uploads")).to_contain_text("1 file uploaded; ready", timeout=90_000)


def test_quoted_words_on_the_second_page_of_a_passage_are_under_that_page(browser: Browser, manual: str):
    with tab(browser, manual) as watched:
        page = watched.page
        drop(watched, {"falls.pdf": pdf_of("Falls", "The film is long.", "Lina Orr directed it.")})
        expect(page.locator(".uploads")).to_contain_text("1 file uploaded; ready", timeout=90_000)
        file = watched.api("/v1/files")["data"][0]["id"]
        (passage,) = watched.api(f"/v1/files/{file}/text")["passages"]
        start = passage["text"].index("Lina Orr")
        page.goto(f"{manual}/#/document/{file}/1/{start}/{start + 8}")
        expect(page.locator(".passage.here mark")).to_have_text("Lina Orr")
        expect(page.locator(".passage.here .meta:has(+ p mark)")).to_have_text("page 2")


def test_a_library_is_named_filled_from_a_folder_and_shown_in_the_dark_on_a_small_screen(
    browser: Browser, manual: str, tmp_path: Path
):
    (tmp_path / "notes" / "deep").mkdir(parents=True)
    (tmp_path / "notes" / ".git").mkdir()
    (tmp_path / "notes" / ".git" / "config.md").write_text("A secret.\n", encoding="utf-8")
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
        assert [file["filename"] for file in watched.api("/v1/files")["data"] if "config" in file["filename"]] == []

        page.get_by_role("button", name="Ask this one").first.click()
        expect(page.get_by_label("Search in")).to_have_value(re.compile("^file-"))
        page.go_back()
        page.get_by_role("button", name="Delete", exact=True).last.click()
        page.get_by_role("button", name="Delete it all").click()
        expect(page.get_by_label("Name of a new library")).to_be_visible()
        assert json.loads(page.evaluate("sessionStorage.getItem('cairn.options')"))["scope"] == ""


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

        setting = page.locator(".setting:has(input[type=password])").first
        key, remove, save = (
            setting.locator("input"),
            setting.get_by_role("button"),
            page.get_by_role("button", name="Save"),
        )
        key.fill("first")
        save.click()
        expect(remove).to_have_text("Remove")
        key.fill("x")
        key.fill("")
        expect(save).to_be_disabled()
        remove.click()
        expect(remove).to_have_text("Will be removed; keep it")
        remove.click()
        expect(save).to_be_disabled()
    assert "qwen3:8b" in (tmp_path / "cairn" / "settings.toml").read_text("utf-8")
