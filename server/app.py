"""The server as one ASGI app: its addresses and the page. It knows the agent, and nothing of how it was built.

`create_app` is the whole server, `create_retrieval_app` only its sources.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from starlette.types import ASGIApp

from agent import __version__
from agent.errors import PolicyError
from agent.policies.base import Policy, Prepared
from agent.sources.base import close_sources
from server.auth.admission import Admission
from server.auth.keys import Keys
from server.auth.middleware import AccessMiddleware, Rules
from server.auth.usage import Spent
from server.chat.request import CompletionRequest
from server.chat.service import Service, open_turn, stream_turn, whole_turn
from server.evidence.routes import add_evidence
from server.evidence.service import EvidenceService
from server.http import errors
from server.http.encoding import json_response
from server.http.schema import ERRORS, Completion, ListedModel, ModelList, Retrieved, Version, streamed
from server.libraries.routes import add_libraries
from server.mcp.http import add_mcp
from server.reports.manager import ReportManager
from server.reports.routes import add_reports
from server.responses.routes import add_responses
from server.retrieval.service import Retriever, RetrieveRequest, Unread
from server.runs.manager import memory_run_manager
from server.runs.routes import add_runs
from server.telemetry.health import Readiness, add_health
from server.telemetry.logs import RunLines
from server.telemetry.meters import Meters, MetricsMiddleware, add_metrics
from server.telemetry.watch import Observer, WatchedRun
from server.ui.routes import add_ui

_REQUESTS: Final = ("CompletionRequest", "ResponseRequest", "RunRequest", "ReportRequest", "StreamedReportRequest")

_CREATED: Final = 1767225600
"""2026-01-01: clients want a time, and a model that is a setting has none."""


class UsageByKey(Observer):
    """Counts what a run used for the key that it was requested with."""

    def __init__(self, spent: Spent) -> None:
        self._spent = spent

    def ended(self, run: WatchedRun) -> None:
        self._spent.add(run.caller.key, run.trace.usage)


def create_app(service: Service, rules: Rules | None = None) -> ASGIApp:
    """Everything behind the access middleware.

    Args:
        service: what answers. It stays as it is: each app counts the runs that it started.
        rules: who may ask; by default every client of a loopback address.
    """
    rules, meters = rules or Rules(), Meters()
    service = _counted(service, rules, meters)
    agent, keys = service.agent, service.keys
    searches = service.run_manager or memory_run_manager()
    kept = service.run_manager
    reports = ReportManager(kept.store, command_seconds=kept.command_seconds) if kept else None

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:  # what cannot be closed keeps nothing else open
            stack.push_async_callback(service.aclose)
            stack.push_async_callback(searches.aclose)
            stack.push_async_callback(keys.spent.aclose)
            stack.push_async_callback(searches.end)
            if reports:
                stack.push_async_callback(reports.end)
            if service.run_manager:
                await service.run_manager.open()
            if service.libraries:
                stack.push_async_callback(service.libraries.aclose)
                await service.libraries.open()
            stack.push_async_callback(mcp.aclose)
            looking = asyncio.create_task(_look_at(agent.policy))
            stack.callback(looking.cancel)
            yield

    app = _app(lifespan)
    errors.install(app)
    _add_chat(app, service)
    add_responses(app, service)
    _add_models(app, service)
    retriever = Retriever(agent.sources, runs=service.runs, far=service.far, meter=keys)
    _add_retrieval(app, retriever)
    add_evidence(app, EvidenceService.of(service))
    add_reports(app, service, reports)
    mcp = add_mcp(app, service, searches)
    if service.run_manager:
        add_runs(app, service, service.run_manager)
    if service.libraries:
        add_libraries(app, service.libraries, keys)
    add_health(app, Readiness(retriever, agent.policy))
    _add_version(
        app,
        policy=agent.policy.name,
        protocol=agent.protocol.name,
        sources=list(agent.sources),
        notices=list(service.notices),
    )
    add_ui(app, service)
    name_models(app, service.models)
    return _behind_access(app, rules, keys=keys, meters=meters, admission=service.admission)


def create_retrieval_app(retriever: Retriever, rules: Rules | None = None) -> ASGIApp:
    """Only `/retrieve` and the health addresses, behind the same access middleware. There is no policy."""
    rules = rules or Rules()
    keys = Keys(server_key=rules.key, store=rules.keys)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(close_sources, retriever.sources.values())
            stack.push_async_callback(keys.spent.aclose)
            yield

    app = _app(lifespan)
    errors.install(app, instead=errors.ONLY_RETRIEVAL)
    _add_retrieval(app, retriever)
    add_health(app, Readiness(retriever))
    _add_version(app, sources=list(retriever.sources), default_source=retriever.default)
    return _behind_access(app, rules, keys=keys, meters=Meters())


def _counted(service: Service, rules: Rules, meters: Meters) -> Service:
    """The service as one app has it: with the keys of its rules, and its runs counted."""
    kept = service.run_manager.store.keys if service.run_manager else None
    keys = Keys(server_key=rules.key, store=rules.keys or kept)
    meters.waiting(lambda: service.admission.waiting)
    return replace(service, keys=keys, observers=(*service.observers, meters, UsageByKey(keys.spent), RunLines()))


def _behind_access(
    app: FastAPI, rules: Rules, *, keys: Keys, meters: Meters, admission: Admission | None = None
) -> ASGIApp:
    """The app behind the access middleware, and measured."""
    add_metrics(app, meters)
    return MetricsMiddleware(
        AccessMiddleware(app, rules, keys=keys, admission=admission),
        meters,
        routes=app.routes,
    )


async def _look_at(policy: Policy) -> None:
    """Prepare the engine before the first question comes: a general model's exam takes a while."""
    if isinstance(policy, Prepared):
        with suppress(PolicyError):  # the first question says it, and asks again
            await policy.prepare()


def _app(lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]]) -> FastAPI:
    return FastAPI(
        title="Cairn", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan, responses=ERRORS
    )


def _add_chat(app: FastAPI, service: Service) -> None:
    frames = "Chunks of OpenAI's format; what is more is in `cairn` beside an empty delta."

    @app.post("/v1/chat/completions", response_model=None, responses=streamed(Completion, frames))
    async def chat(body: CompletionRequest, request: Request) -> Response:
        """Answer a question with citations, streamed or not, in OpenAI's format."""
        turn = open_turn(await service.searching(body), body)
        if body.stream:
            return service.streams(lambda put: stream_turn(turn, put))
        return json_response(await service.runs.unless_gone(request.receive, whole_turn(turn)))


def _add_models(app: FastAPI, service: Service) -> None:
    @app.get("/v1/models")
    async def models() -> ModelList:
        """The model ids: policy and protocol. Never asks the engine."""
        return ModelList(data=[ListedModel(id=model, created=_CREATED) for model in service.models])

    @app.get("/v1/models/{model:path}")
    async def model(model: str) -> ListedModel:
        """One of them."""
        service.require(model)
        return ListedModel(id=model, created=_CREATED)


def _add_retrieval(app: FastAPI, retriever: Retriever) -> None:
    @app.post("/retrieve", response_model=None, responses={200: {"model": Retrieved}})
    async def retrieve(body: RetrieveRequest, request: Request) -> Response:
        """Documents for many queries at once, in Search-R1's shape."""
        found = await retriever.runs.unless_gone(request.receive, retriever.answer(body))
        return Unread(found, retriever)


def _add_version(app: FastAPI, **facts: Any) -> None:
    @app.get("/version", response_model_exclude_none=True)
    async def version() -> Version:
        """What runs here."""
        return Version(version=__version__, **facts)


def name_models(app: FastAPI, models: list[str]) -> None:
    """Let the schema say which models there are."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        schema = made()
        requests = schema["components"]["schemas"]
        for name in requests.keys() & _REQUESTS:
            requests[name]["properties"]["model"]["enum"] = models
        for operation in schema["paths"].get("/v1/models/{model}", {}).values():
            operation["parameters"][0]["schema"]["enum"] = models
        return schema

    app.openapi = openapi
