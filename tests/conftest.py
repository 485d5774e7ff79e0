"""What the tests share: sources in memory, and a whole rollout of a script in one call. Nothing here touches a network."""

import asyncio
import gc
import logging
import signal
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Final

import httpcore2
import pytest
from hypothesis import settings

from agent.errors import SourceError
from agent.evidence import Passage
from agent.loop.agent import Agent
from agent.loop.budgets import Budgets
from agent.parallel.processes import GC_THRESHOLD
from agent.policies.scripted import Script, ScriptedPolicy
from agent.protocols import protocol_named
from agent.sources.base import SearchRequest, SearchResult, Source
from agent.trace import Trace

gc.disable()  # while the tests are imported: what is loaded stays
settings.register_profile("cairn", deadline=None)
"""A machine that is busy with something else makes no property wrong; pytest-timeout still bounds every test."""
settings.load_profile("cairn")

# A shell that starts the tests in the background has them ignore Ctrl-C, and the commands that they start inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--clients", metavar="PYTHON", help="of the environment of other people's clients: make clients")
    parser.addoption("--verifiers", metavar="PYTHON", help="of the environment of verifiers: make trainers")
    parser.addoption("--lightning", metavar="PYTHON", help="of the environment of Agent Lightning: make trainers")
    parser.addoption("--product", metavar="PYTHON", help="of the environment whose Cairn tests/attacks attack")


FIRST: Final = (
    "tests/train/rl/test_vllm",
    "tests/agent/policies/test_vllm",
    "tests/server/test_small_engines",
    "tests/train/evaluation",
    "tests/lab/reproduce",
    "tests/train/rl",
    "tests/train/",
    "tests/server/",
)
"""Where the longest tests are: what begins last must be short, so that all processes are busy to the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {start: place for place, start in enumerate(FIRST)}
    items.sort(key=lambda item: next((order[start] for start in FIRST if item.nodeid.startswith(start)), len(FIRST)))


def pytest_collection_finish() -> None:
    """Some libraries collect garbage for every layer or step: a full look at all that the tests import takes most of a
    second, each time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def no_store_of_a_person(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """No test, and no command that one starts, writes where a person's runs are, or reads which files are trusted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CAIRN_STORE", "memory")
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        patch.setenv(
            "MPLCONFIGDIR", str(tmp_path_factory.mktemp("matplotlib"))
        )  # its fonts are listed once, not per test
        # All but ddgs, which needs no key: a test that searches live must not reach strangers' search engines.
        patch.setenv("CAIRN_WEB", "tavily,serper,searxng,brave,exa")
        patch.setenv("CAIRN_NEWS", "gnews,serper,tavily,searxng,brave,exa")
        yield


@pytest.fixture(autouse=True)
def logs_of_this_test_only() -> Generator[None]:
    """A test that sets up the log of a server sends no line of the tests after it there."""
    names = (None, "agent", "server", "train")
    handlers, levels = list(logging.root.handlers), [logging.getLogger(name).level for name in names]
    yield
    logging.root.handlers = handlers
    for name, level in zip(names, levels, strict=True):
        logging.getLogger(name).setLevel(level)


_CACHES: Final = count()


@pytest.fixture(autouse=True)
def no_cache_of_another_test(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port may be that of another test's model server, so what Cairn remembers of a server ends with the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / f"cache-{next(_CACHES)}"))


@pytest.fixture(scope="session", autouse=True)
def the_little_world_is_searched() -> Generator[None]:
    """Where a test names nothing to search, the little world answers, by its own policy, and nothing is fetched.

    What a user gets who names nothing is tested where it says so.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CAIRN_WORLD", "test-v2")
        patch.setenv("CAIRN_FETCH", "false")
        yield


@pytest.fixture(scope="session", autouse=True)
def no_model_server_of_a_person() -> Generator[None]:
    """What listens on this machine's ports changes no test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent.policies.local_servers.PORTS", {})
        yield


@pytest.fixture(scope="session", autouse=True)
def certificates_read_once() -> Generator[None]:
    """Each client reads the system's certificates, which takes 20 ms; the tests make thousands and use no TLS."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpcore2, "default_ssl_context", cache(httpcore2.default_ssl_context))
        yield


PLAN_TURN = (
    "<think>Two things.</think>\n<search>\nA: who wrote Dune (web)\nB: when was Dune published (news)\n</search>"
)
ANSWER_TURN = (
    "<merge>Frank Herbert wrote it [1].</merge>\n<evidence>\n- Frank Herbert wrote Dune. [1]\n</evidence>\n"
    "<answer>Frank Herbert</answer>"
)


@dataclass(frozen=True)
class Echo:
    """A source that answers every query at once, with one passage about it."""

    name: str = "web"

    async def search(self, request: SearchRequest) -> SearchResult:
        query = request.query
        found = Passage(id=f"{self.name}:{query}", source=self.name, title=query, text=f"All about {query}.", rank=1)
        return SearchResult((found,))


class Broken:
    """A source that fails."""

    async def search(self, request: SearchRequest) -> SearchResult:
        raise SourceError("no route", kind="upstream")


class Hanging:
    """A source that never answers; `requested` is set when a search waits for it."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()

    async def search(self, request: SearchRequest) -> SearchResult:
        self.requested.set()
        await asyncio.Event().wait()
        raise AssertionError("no one sets this event")


def make_agent(
    turns: Script,
    *,
    protocol: str = "cairn",
    sources: Mapping[str, Source] | None = None,
    budgets: Budgets | None = None,
) -> Agent:
    """An agent that says `turns`; its sources echo by default."""
    return Agent(
        policy=ScriptedPolicy(turns),
        protocol=protocol_named(protocol),
        sources=sources or {name: Echo(name) for name in ("web", "news", "all")},
        budgets=budgets or Budgets(),
    )


def answer(turns: Script, *, question: str = "Who wrote Dune?", agent: Agent | None = None) -> Trace:
    """One whole rollout, bounded in time: a hang is a failure, not a wait."""
    one = agent or make_agent(turns)

    async def run() -> Trace:
        async with asyncio.timeout(10):
            return await one.run(one.new_trace(question))

    return asyncio.run(run())
