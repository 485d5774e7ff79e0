"""One browser for all tests of the page, and two servers: one of the little world, one of the manual."""

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from agent.settings import load_settings
from server.launch import make_service
from tests.server.threaded import in_thread
from tests.web.documents import manual_server
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


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server of the manual keeps runs and documents."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="session")
def manual(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """The address of a server as `make serve` starts it, which takes documents."""
    with manual_server(data, tmp_path_factory.mktemp("cache")) as address:
        yield address


@pytest.fixture
def page(browser: Browser, world: str) -> Generator[Watched]:
    with tab(browser, world) as watched:
        yield watched
