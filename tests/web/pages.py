"""A real Chromium on real servers, for tests of the page: its requests and complaints are kept and looked at.

Playwright's own Python client is used, and not its runner for Node: the servers that these tests need (held sources,
scripts, wrong answers) are ours, in this process, and so are the traces that the page is held against.
"""

import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Dialog, Page, sync_playwright

from agent.loop.agent import Agent
from agent.policies.scripted import Script, ScriptedPolicy
from agent.protocols import protocol_named
from agent.sources.base import Source
from server.chat.service import Service
from server.runs.manager import RunManager
from server.store import RunStore
from server.store.database import Database
from tests.server.live import ANSWER, SEARCH, FakeSource, make_service

CHROMIUM = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), "")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SECONDS = 30
"""How long anything may take to show."""


@contextmanager
def chromium() -> Generator[Browser]:
    """A browser without a window and without a profile."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS), headless=True)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Watched:
    """A tab, with its requests and complaints."""

    page: Page
    address: str
    requests: list[str] = field(default_factory=list[str])
    complaints: list[str] = field(default_factory=list[str])
    dialogs: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "console", lambda said: self.complaints.append(said.text) if said.type in ("error", "warning") else None
        )
        self.page.on("dialog", self._dismiss)

    def _dismiss(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def api(self, path: str) -> Any:
        """What the server says, as JSON, without the page."""
        return self.page.request.get(self.address + path).json()

    def trace(self) -> dict[str, Any]:
        """The trace of the run that the page shows."""
        return self.api(f"/api/runs/{self.run_id}")["trace"]

    @property
    def run_id(self) -> str:
        return self.page.url.rpartition("/")[2]

    @property
    def strangers(self) -> list[str]:
        """Addresses that it requested and that are not its own server's."""
        own = urlsplit(self.address).netloc
        return [url for url in self.requests if urlsplit(url).scheme not in ("blob",) and urlsplit(url).netloc != own]

    def ask(self, question: str) -> None:
        """Write a question into the box that is there, and send it; wait until its run is on the page."""
        self.page.fill("#question", question)
        with self.page.expect_response(
            lambda response: response.url.endswith("/api/runs") and response.request.method == "POST"
        ) as started:
            self.page.press("#question", "Enter")
        run = started.value.json()["id"]
        self.page.wait_for_selector(f".run[data-run='{run}'] .status")

    def ended(self) -> None:
        """Wait until the run that the address names is on the page, and has ended."""
        self.page.wait_for_function(
            "() => document.querySelector('.run .actions') && location.hash.endsWith(document.querySelector('.run').dataset.run)"
        )


@contextmanager
def tab(browser: Browser, address: str, **options: Any) -> Generator[Watched]:
    """A tab at the server's page. In the end nothing may have left this machine, and nothing may have been complained of."""
    shape: dict[str, Any] = {"viewport": {"width": 1280, "height": 860}} | options
    context = browser.new_context(**shape)
    context.set_default_timeout(1000 * SECONDS)
    try:
        watched = Watched(context.new_page(), address)
        watched.page.goto(address)
        watched.page.wait_for_selector("main")
        yield watched
        assert watched.strangers == []
        assert watched.complaints == []
        assert watched.dialogs == []
    finally:
        context.close()


def scripted(
    turns: Script = (SEARCH, ANSWER),
    *,
    sources: Mapping[str, Source] | None = None,
    agent: Agent | None = None,
    **changes: Any,
) -> Service:
    """A service of a script that keeps its runs in memory."""
    found = {
        "web": FakeSource("web", url="https://example.org/falls"),
        "kg": FakeSource("kg"),
        "all": FakeSource("all"),
    }
    made = agent or Agent(
        policy=ScriptedPolicy(turns), protocol=protocol_named("cairn"), sources={**found, **(sources or {})}
    )
    run_manager = RunManager(RunStore(Database("memory")), command_seconds=0.05, close_seconds=1.0)
    return make_service(agent=made, run_manager=run_manager, keep=run_manager.keep, **changes)
