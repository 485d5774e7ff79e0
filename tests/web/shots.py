"""Pictures of the page for the README, in both themes and two widths: `python -m tests.web.shots docs/ui`."""

import sys
from pathlib import Path

from playwright.sync_api import Browser

from agent.settings import load_settings
from server.launch import make_service
from tests.server.threaded import in_thread
from tests.web.pages import chromium, tab

WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 360, "height": 740}


def shoot(browser: Browser, address: str, folder: Path, scheme: str) -> None:
    """Every view of one run in one theme."""
    for size in (WIDE, NARROW):
        with tab(browser, address, viewport=size, color_scheme=scheme, device_scale_factor=1) as watched:
            page, name = watched.page, f"{scheme}-{size['width']}"

            def keep(view: str, name: str = name) -> None:
                page.wait_for_timeout(400)
                page.screenshot(path=folder / f"{view}-{name}.png")

            page.wait_for_selector(".examples button")
            keep("home")
            page.locator(".examples button").nth(3).click()
            watched.ended()
            keep("list")
            for view in ("graph", "waterfall", "evidence", "raw"):
                page.click(f"#tab-{view}")
                if size is NARROW:
                    page.locator(".panel").evaluate("panel => panel.scrollIntoView()")
                keep(view)
            page.evaluate("scrollTo(0, 0)")
            page.click("#tab-list")
            page.locator(".answer .chip").first.focus()
            keep("quote")
            if size is WIDE:
                page.keyboard.press("Escape")
                page.get_by_label("Compare with").select_option("cairn/multisearch")
                page.wait_for_selector(".column:nth-child(2) .step.stopped")
                keep("compare")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with in_thread(make_service(load_settings(None, store="memory"))) as address, chromium() as browser:
        for scheme in ("light", "dark"):
            shoot(browser, address, folder, scheme)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
