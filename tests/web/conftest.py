"""One browser for all tests of the page, and the little world's server."""

from collections.abc import Generator

import pytest
from playwright.sync_api import Browser

from agent.settings import load_settings
from server.launch import make_service
from tests.server.threaded import in_thread
from tests.web.pages import Watched, chromium, tab


@pytest.fixture(scope="session")
def browser() -> Generator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="session")
def world() -> Generator[str]:
    """The address of a server as `cairn serve` starts it: the embedded policy in the little world."""
    with in_thread(make_service(load_settings(None, store="memory"))) as address:
        yield address


@pytest.fixture
def page(browser: Browser, world: str) -> Generator[Watched]:
    with tab(browser, world) as watched:
        yield watched
