"""What the doctor's tests share: one check of given settings, run beside the test's own servers."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent.doctor import Diagnosis, checks_of, examine
from agent.settings import CairnSettings
from tests.agent.sources.live.apiserver import ApiRequest, ApiServer, Route

URLS = (
    *("tavily", "serper", "brave", "exa", "gnews", "arxiv", "wiki", "wikidata", "sparql"),
    *("openalex", "pubmed", "semanticscholar", "github"),
)
SECRET = "s3cret-key"


async def one(settings: CairnSettings, name: str, *, probe: bool = False, seconds: float = 10.0) -> Diagnosis:
    """The finding of one check; the others are not run."""
    checks = [check for check in checks_of(settings, probe=probe) if check.name == name]
    assert len(checks) == 1, f"there are {len(checks)} checks {name}"
    return (await examine(checks, seconds=seconds))[0]


def look(name: str, *, probe: bool = False, **settings: Any) -> Diagnosis:
    async def run() -> Diagnosis:
        async with asyncio.timeout(20):
            return await one(CairnSettings(**settings), name, probe=probe)

    return asyncio.run(run())


def live(base: str, **settings: Any) -> CairnSettings:
    """Settings whose every live address is the test's server."""
    given: dict[str, Any] = {"live": True, **{f"{name}_url": base for name in URLS}, **settings}
    return CairnSettings(**given)


def look_beside(
    name: str,
    routes: Mapping[str, Route],
    make: Callable[[str], CairnSettings] = live,
    *,
    probe: bool = False,
    seconds: float = 10.0,
) -> tuple[Diagnosis, list[ApiRequest]]:
    """The finding, with settings of the server's address, and the requests to the server."""

    async def run() -> tuple[Diagnosis, list[ApiRequest]]:
        async with asyncio.timeout(20), ApiServer(routes) as server:
            return await one(make(server.base), name, probe=probe, seconds=seconds), server.requests

    return asyncio.run(run())


def no_folder() -> str:
    """A path below a file, where no folder can be."""
    return str(Path(__file__) / "folder")
