"""Pictures of the page for the README, in both themes and two widths: `python -m tests.web.shots docs/ui`.

With `--all` every view is shot in both, to be looked at.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page

from agent.settings import load_settings
from server.launch import make_service
from tests.server.threaded import in_thread
from tests.web.pages import chromium, tab

KEPT = frozenset(
    "home-light-1440 list-light-1440 list-dark-1440 graph-light-1440 graph-dark-1440 waterfall-light-1440"
    " evidence-light-1440 raw-dark-1440 quote-light-1440 compare-light-1440 home-dark-360 list-light-360 graph-dark-360".split()
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
                page.wait_for_selector(".column:nth-child(2) .step.stopped")
                camera.keep("compare")


def main(folder: Path, *, everything: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with in_thread(make_service(load_settings(None, store="memory"))) as address, chromium() as browser:
        for scheme in ("light", "dark"):
            shoot(browser, address, folder, scheme, everything=everything)


if __name__ == "__main__":
    main(Path(sys.argv[1]), everything="--all" in sys.argv)
