"""Pictures of the page for the README, in both themes and two widths: `python -m tests.web.shots docs/ui`.

With `--all` every view is shot in both, to be looked at.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, FilePayload, Page

from agent.settings import load_settings
from server.launch import make_service
from tests.server.threaded import in_thread
from tests.web.pages import chromium, tab

KEPT = frozenset(
    "home-light-1440 list-light-1440 list-dark-1440 graph-light-1440 graph-dark-1440 waterfall-light-1440"
    " evidence-light-1440 raw-dark-1440 quote-light-1440 compare-light-1440 home-dark-360 list-light-360 graph-dark-360"
    " library-light-1440 document-light-1440 report-light-1440 settings-light-1440 library-dark-360".split()
)
"""The rest is looked at, and not committed."""
WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 360, "height": 740}


@dataclass(frozen=True)
class Camera:
    page: Page
    folder: Path
    name: str
    """Theme and width."""
    everything: bool

    def keep(self, view: str) -> None:
        file = f"{view}-{self.name}"
        if self.everything or file in KEPT:
            self.page.wait_for_timeout(400)
            self.page.screenshot(path=self.folder / f"{file}.png")


def shoot(browser: Browser, address: str, folder: Path, scheme: str, *, everything: bool) -> None:
    """Every view of one run in one theme."""
    for size in (WIDE, NARROW):
        with tab(browser, address, viewport=size, color_scheme=scheme, device_scale_factor=1) as watched:
            page = watched.page
            camera = Camera(page, folder, f"{scheme}-{size['width']}", everything)
            page.wait_for_selector(".examples button")
            camera.keep("home")
            page.locator(".examples button").nth(3).click()
            watched.ended()
            camera.keep("list")
            for view in ("graph", "waterfall", "evidence", "raw"):
                page.click(f"#tab-{view}")
                if size is NARROW:
                    page.locator(".panel").evaluate("panel => panel.scrollIntoView()")
                camera.keep(view)
            page.evaluate("scrollTo(0, 0)")
            page.click("#tab-list")
            page.locator(".answer .chip").first.focus()
            camera.keep("quote")
            if size is WIDE:
                page.keyboard.press("Escape")
                page.get_by_label("Compare with").select_option("cairn/multisearch")
                page.get_by_role("button", name="Compare", exact=True).click()
                page.wait_for_selector(".column:nth-child(2) .step.stopped")
                camera.keep("compare")


def shoot_documents(browser: Browser, address: str, folder: Path, scheme: str, *, everything: bool) -> None:
    """Your documents, one of them at a quote, a report over them, and the settings."""
    for size in (WIDE, NARROW):
        with tab(browser, address, viewport=size, color_scheme=scheme, device_scale_factor=1) as watched:
            page = watched.page
            camera = Camera(page, folder, f"{scheme}-{size['width']}", everything)
            page.goto(f"{address}/#/library")
            page.get_by_label("Name of a new library").fill("Harbour")
            page.keyboard.press("Enter")
            page.locator("input[type=file]").first.set_input_files(DOCUMENTS)
            page.get_by_text("Ask this one").nth(len(DOCUMENTS) - 2).wait_for(timeout=60_000)
            camera.keep("library")
            page.get_by_role("button", name="Ask here").click()
            watched.ask("Where was Hulda Ravnsborg born?")
            watched.ended()
            page.locator(".answer .chip").first.focus()
            page.locator(".peek-title a").click()
            page.locator(".passage.here").wait_for()
            camera.keep("document")
            page.goto(f"{address}/#/")
            page.get_by_text("Report", exact=True).click()
            page.fill("#question", "Hulda Ravnsborg and her works")
            page.press("#question", "Enter")
            page.get_by_role("button", name="Markdown").wait_for(timeout=300_000)
            camera.keep("report")
            page.goto(f"{address}/#/settings")
            page.get_by_role("button", name="Check").click()
            page.locator(".said").first.wait_for(timeout=60_000)
            page.evaluate("scrollTo(0, 0)")  # below are the folders of this machine
            camera.keep("settings")


DOCUMENTS: list[FilePayload] = [
    {
        "name": "engineer.md",
        "mimeType": "text/markdown",
        "buffer": b"# Hulda Ravnsborg\n\nHulda Ravnsborg was an engineer. She was born in Trieste in 1871. She studied in "
        b"Vienna.\n\n## Works\n\nThe lighthouse of Marielund was designed by Hulda Ravnsborg. It was lit in 1911.\n",
    },
    {
        "name": "ferry.html",
        "mimeType": "text/html",
        "buffer": b"<html><head><title>The ferry Marielund</title></head><body><h1>The ferry Marielund</h1><p>The ferry "
        b"Marielund was built in Gdynia in 1987. Her master is Anton Lisk.</p></body></html>",
    },
    {"name": "drawing.svg", "mimeType": "image/svg+xml", "buffer": b"<svg/>"},
]
"""Made up; the last one is of no kind that is read."""


def main(folder: Path, *, everything: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    little = load_settings(None, world="test-v2", fetch=False, store="memory")
    with in_thread(make_service(little)) as address, chromium() as browser:
        for scheme in ("light", "dark"):
            shoot(browser, address, folder, scheme, everything=everything)
    settings = load_settings(None, world="", store="memory")
    with in_thread(make_service(settings)) as address, chromium() as browser:
        for scheme in ("light", "dark"):
            shoot_documents(browser, address, folder, scheme, everything=everything)


if __name__ == "__main__":
    main(Path(sys.argv[1]), everything="--all" in sys.argv)
