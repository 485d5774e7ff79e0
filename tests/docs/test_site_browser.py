"""What a browser makes of the site: it is served from one folder, requests nothing from other hosts, and its search finds."""

import threading
from collections.abc import Generator, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.browser import CHROMIUM, Page, browser
from tests.docs.test_site import build

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium on this machine"),
]

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
def address(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    folder = tmp_path_factory.mktemp("site")
    assert build(folder).returncode == 0
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with browser(tmp_path / "profile") as opened:
        yield opened


def test_the_site_requests_nothing_from_other_hosts_and_its_search_finds(page: Page, address: str):
    for name in ("index.html", "flow.html", "source/agent/loop/loop.py.html"):
        page.open(f"{address}/{name}", ready="!!document.querySelector('h1')")
        assert [url for url in page.requests if not url.startswith((address, "data:"))] == []
    page.open(f"{address}/quickstart.html", ready="!!document.querySelector('#properdocs-search-query')")
    page.wait_for(SEARCHED)
    assert [url for url in page.requests if not url.startswith((address, "data:"))] == []


def test_a_page_fits_a_phone(page: Page, address: str):
    page.open(f"{address}/operations.html", width=360, height=800, ready="!!document.querySelector('h1')")
    assert page.js("document.documentElement.scrollWidth <= innerWidth")
