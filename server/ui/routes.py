"""The page at `/`, and the addresses that only it needs: what it may offer, a run's evidence for another model."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from agent import __version__
from agent.build.shipped import is_shipped
from agent.build.sources import uses_manual, uses_world
from agent.errors import QuestionError
from agent.policies import local_servers
from agent.policies.local_servers import LocalServer, find_local_servers
from agent.rstool import EvidenceBundle, bundle_of
from agent.settings import CairnSettings
from agent.sources.corpus.finding import SUFFIXES
from agent.world.store import load_world
from server.auth.keys import caller
from server.chat.service import Service
from server.evidence.answering import check_model
from server.http.errors import ApiError, sentence
from server.runs.manager import RunManager
from server.runs.restore import read_trace
from server.runs.routes import RunId
from server.ui.facts import AnswerWithRequest, LocalModels, PageFacts, RunAnswer, RunEvidence
from server.ui.settings import add_settings

ABOUT_CAIRN: Final = (
    "What is Cairn?",
    "Which protocols does Cairn support?",
    "How many runs are kept?",
    "How does Cairn check claims?",
    "Does Cairn need a GPU?",
)
_KINDS: Final = ("chain2", "comparison", "intersection", "chain3", "time")

FRESH_SECONDS: Final = 10.0
"""A page that is loaded again and again knocks at the ports this often at most."""

STATIC: Final = Path(__file__).parent.parent / "static"
"""Built from web/ by `make web`, and committed: serving needs no Node."""


def add_ui(app: FastAPI, service: Service) -> None:
    """Add the page, what it is made of, and what it asks for."""

    @app.head("/", include_in_schema=False)
    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})

    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    _add_facts(app, service)
    if service.editor:
        add_settings(app, service.editor)
    if service.run_manager:
        _add_evidence(app, service, service.run_manager)


def _add_facts(app: FastAPI, service: Service) -> None:
    @app.get("/api/ui", include_in_schema=False)
    async def facts() -> PageFacts:
        agent = service.agent
        return PageFacts(
            version=__version__,
            policy=agent.policy.name,
            protocol=agent.protocol.name,
            models=service.models,
            sources=list(agent.sources),
            answer_models=list(service.answering.models) if service.answering else [],
            notices=list(service.notices),
            settings=service.editor is not None and not caller().key,
            libraries=service.libraries is not None and service.libraries.quota.bytes > 0,
            suffixes=list(SUFFIXES),
            file_bytes=service.libraries.quota.file_bytes if service.libraries else 0,
            examples=list(service.examples),
            local_models=[_offered(server) for server in await service.local_models()],
        )


def _offered(server: LocalServer) -> LocalModels:
    return LocalModels(
        server=server.name,
        base_url=server.base_url,
        models=list(server.models),
        command=server.command(server.models[0]),
    )


def _add_evidence(app: FastAPI, service: Service, run_manager: RunManager) -> None:
    @app.get("/api/runs/{id}/evidence", include_in_schema=False)
    async def evidence(id: RunId) -> RunEvidence:
        bundle = await _bundle(run_manager, id)
        return RunEvidence(bundle=bundle, text=bundle.to_prompt())

    @app.post("/api/runs/{id}/answer_with", include_in_schema=False)
    async def answer_with(id: RunId, body: AnswerWithRequest, request: Request) -> RunAnswer:
        try:
            who = check_model(service.answering, body.model)
        except QuestionError as error:
            raise ApiError(HTTPStatus.NOT_FOUND, sentence(error), param="model", code="model_not_found") from error
        work = who.answer(await _bundle(run_manager, id), body.model, count=service.keys.answered)
        return RunAnswer(downstream=await service.runs.unless_gone(request.receive, work))


async def _bundle(run_manager: RunManager, id: str) -> EvidenceBundle:
    """The evidence of a run that has ended, if the caller may see it.

    Raises:
        ApiError: there is none, or it goes on.
    """
    row = await run_manager.get(id, key_id=caller().key or None)
    stored = await run_manager.store.reads.trace(id) if row else None
    if row is None or stored is None:
        raise ApiError(HTTPStatus.NOT_FOUND, f"There is no run {id!r}.", param="id", code="run_not_found")
    if row.running:
        raise ApiError(HTTPStatus.CONFLICT, "The run is still running; try again when it ends.", code="run_goes_on")
    return bundle_of(read_trace(stored))


async def find_usable(settings: CairnSettings) -> list[LocalServer]:
    """The servers of this machine that have a model, where none is named; Cairn's own port is left alone."""
    if not is_shipped(settings):
        return []
    ports = {port: name for port, name in local_servers.PORTS.items() if port != settings.port}
    return [server for server in await find_local_servers(ports=ports) if server.models]


@dataclass
class LocalServerFinder:
    """Looks for servers when the page is loaded, so that one started later is offered, too."""

    settings: CairnSettings
    ttl_seconds: float = FRESH_SECONDS
    _found: Sequence[LocalServer] = ()
    _until: float = float("-inf")
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __call__(self) -> Sequence[LocalServer]:
        async with self._lock:
            if time.monotonic() >= self._until:
                self._found = await find_usable(self.settings)
                self._until = time.monotonic() + self.ttl_seconds
            return self._found


def examples_of(settings: CairnSettings) -> tuple[str, ...]:
    """A few questions that can be answered; none where only the user knows what is searched."""
    if uses_manual(settings):
        return ABOUT_CAIRN
    if not uses_world(settings):
        return ()
    questions = load_world(settings.world).questions
    first = {question.type: question.question for question in reversed(questions)}
    return tuple(first[kind] for kind in _KINDS if kind in first)
