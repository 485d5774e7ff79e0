"""The site of docs/: it is built strictly, holds every page, and asks for nothing outside, in a browser, too."""

import re
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ParamSpec

import pytest

from tests.browser import CHROMIUM, Page, browser
from tests.docs.blocks import ROOT

pytestmark = pytest.mark.slow

P = ParamSpec("P")
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}
"""What a browser asks for by itself, by element."""


def build(into: Path, *, config: Path = ROOT / "properdocs.yml") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "properdocs", "build", "--strict", "--config-file", config, "--site-dir", into]
    return subprocess.run(command, cwd=config.parent, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    ended = build(folder)
    assert ended.returncode == 0, ended.stderr
    return folder


class Loads(HTMLParser):
    """Addresses that a page asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if value and name == LOADS.get(tag)]


def test_every_page_is_in_the_site_and_in_a_menu(site: Path):
    home = (site / "index.html").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").as_posix()
        made = re.sub(r"(README|index)\.md$", "index.html", name).replace(".md", ".html")
        assert (site / made).exists(), name
        assert f'href="{made}"' in home or made == "index.html", f"{name} is in no menu"


def test_the_site_asks_for_nothing_outside(site: Path):
    for page in site.rglob("*.html"):
        loads = Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        assert loads.found
        for address in loads.found:
            assert not re.match(r"(?i)[a-z]+:|//", address), f"{page.name} asks for {address}"
            path = re.split(r"[?#]", address)[0]
            there = site / path[1:] if path.startswith("/") else page.parent / path
            assert there.exists(), f"{page.name}: {address}"
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.findall(r"url\(['\"]?(?:https?:)?//|@import", text), sheet.name


def test_files_that_pages_link_to_are_pages_of_the_site(site: Path):
    shown = (site / "source" / "agent" / "loop" / "loop.py.html").read_text(encoding="utf-8")
    assert "class" in shown
    assert 'href="source/agent/loop/loop.py.html"' in (site / "flow.html").read_text(encoding="utf-8")
    assert 'href="../flow.html"' in (site / "source" / "CONTRIBUTING.md.html").read_text(encoding="utf-8")


def test_broken_links_and_pages_in_no_menu_fail_the_build(tmp_path: Path):
    config = _small(tmp_path)
    assert build(tmp_path / "site", config=config).returncode == 0
    wrong = "[a](no-page.md) [b](index.md#no-anchor) [c](../no-file.py)"
    (tmp_path / "docs" / "index.md").write_text(f"# Home\n\n{wrong}\n", encoding="utf-8")
    (tmp_path / "docs" / "in-no-menu.md").write_text("# Other\n", encoding="utf-8")
    ended = build(tmp_path / "site", config=config)
    assert ended.returncode != 0
    for name in ("no-page.md", "no-anchor", "no-file.py", "in-no-menu.md"):
        assert name in ended.stderr


def _small(folder: Path) -> Path:
    """A site of one page, with the settings of ours."""
    (folder / "docs" / "site").mkdir(parents=True)
    (folder / "docs" / "index.md").write_text("# Home\n", encoding="utf-8")
    for name in ("docs/site_hooks.py", "docs/site/site.css"):
        (folder / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    settings = (ROOT / "properdocs.yml").read_text(encoding="utf-8").split("\nnav:")[0]
    config = folder / "properdocs.yml"
    config.write_text(f"{settings}\nnav: [{{Home: index.md}}]\n", encoding="utf-8")
    return config


# In a browser


def in_chromium(test: Callable[P, None]) -> Callable[P, None]:
    there = pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium on this machine")
    return pytest.mark.browser(there(test))


SEARCHED = """(() => {
  const box = document.querySelector("#properdocs-search-query");
  box.value = "rebinding";
  box.dispatchEvent(new KeyboardEvent("keyup", {key: "g"}));
  return !!document.querySelector('#properdocs-search-results a[href*="security.html"]');
})()"""
"""Type, until the index is there and the page of the promise about DNS rebinding is found."""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and logs nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Generator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with browser(tmp_path / "profile") as opened:
        yield opened


@in_chromium
def test_the_site_requests_nothing_from_other_hosts_and_its_search_finds(page: Page, address: str):
    for name in ("index.html", "flow.html", "source/agent/loop/loop.py.html"):
        page.open(f"{address}/{name}", ready="!!document.querySelector('h1')")
        assert [url for url in page.requests if not url.startswith((address, "data:"))] == []
    page.open(f"{address}/quickstart.html", ready="!!document.querySelector('#properdocs-search-query')")
    page.wait_for(SEARCHED)
    assert [url for url in page.requests if not url.startswith((address, "data:"))] == []


@in_chromium
def test_a_page_fits_a_phone(page: Page, address: str):
    page.open(f"{address}/operations.html", width=360, height=800, ready="!!document.querySelector('h1')")
    assert page.js("document.documentElement.scrollWidth <= innerWidth")
