"""The server as one ASGI app: its addresses and the page. It knows the agent, and nothing of how it was built.

`create_app` is the whole server, `create_retrieval_app` only its sources.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from starlette.types import ASGIApp

from agent import __version__
from agent.errors import PolicyError
from agent.policies.base import Policy, Prepared
from agent.sources.base import close_sources
from server.auth.middleware import Rules
from server.chat.request import ChatRequest
from server.chat.service import Service, open_turn, stream_turn, whole_turn
from server.evidence.routes import add_evidence
from server.evidence.service import desk_of
from server.http import errors
from server.http.encoding import json_response
from server.http.openapi import name_models
from server.http.schema import ERRORS, Completion, Model, ModelList, Retrieved, Version, streamed
from server.mcp.http import add_mcp
from server.responses.routes import add_responses
from server.retrieval.service import Retriever, RetrieveRequest, Unread
from server.runs.manager import memory_keeper
from server.runs.routes import add_runs
from server.stack import Guarded
from server.telemetry.health import Readiness, add_health
from server.ui.routes import add_ui

_CREATED: Final = 1767225600
"""2026-01-01: clients want a time, and a model that is a setting has none."""


def create_app(service: Service, rules: Rules | None = None) -> ASGIApp:
    """Everything behind its gate.

    Args:
        service: what answers.
        rules: who may ask; by default whoever reaches a loopback address.
    """
    agent = service.agent
    searches = service.keeper or memory_keeper()
    guard = Guarded(rules or Rules(), service)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:  # what cannot be closed keeps nothing else open
            stack.push_async_callback(service.aclose)
            stack.push_async_callback(searches.aclose)
            stack.push_async_callback(guard.aclose)
            stack.push_async_callback(searches.end)
            if service.keeper:
                await service.keeper.open()
            stack.push_async_callback(mcp.aclose)
            looking = asyncio.create_task(_look_at(agent.policy))
            stack.callback(looking.cancel)
            yield

    app = _app(lifespan)
    errors.install(app)
    _add_chat(app, service)
    add_responses(app, service)
    _add_models(app, service)
    retriever = Retriever(agent.sources, runs=service.runs, far=service.far, meter=guard.meter)
    _add_retrieval(app, retriever)
    add_evidence(app, service, desk_of(service))
    mcp = add_mcp(app, service, searches)
    if service.keeper:
        add_runs(app, service, service.keeper)
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
    return guard.around(app)


def create_retrieval_app(retriever: Retriever, rules: Rules | None = None) -> ASGIApp:
    """Only `/retrieve` and the health addresses, behind the same gate. There is no policy."""
    guard = Guarded(rules or Rules())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(close_sources, retriever.sources.values())
            stack.push_async_callback(guard.aclose)
            yield

    app = _app(lifespan)
    errors.install(app, instead=errors.ONLY_RETRIEVAL)
    _add_retrieval(app, retriever)
    add_health(app, Readiness(retriever))
    _add_version(app, sources=list(retriever.sources), default_source=retriever.default)
    return guard.around(app)


async def _look_at(policy: Policy) -> None:
    """Ask what must be asked of an engine before the first question comes: a general model's exam takes a while."""
    if isinstance(policy, Prepared):
        with suppress(PolicyError):  # the first question says it, and asks again
            await policy.prepare()


def _app(lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]]) -> FastAPI:
    return FastAPI(
        title="Cairn", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan, responses=ERRORS
    )


def _add_chat(app: FastAPI, service: Service) -> None:
    frames = "Chunks of OpenAI's format; what is more stands in `cairn` beside an empty delta."

    @app.post("/v1/chat/completions", response_model=None, responses=streamed(Completion, frames))
    async def chat(body: ChatRequest, request: Request) -> Response:
        """Answer a question with citations, streamed or not, in OpenAI's format."""
        turn = open_turn(service, body)
        if body.stream:
            return service.streams(lambda put: stream_turn(turn, put))
        return json_response(await service.runs.unless_gone(request.receive, whole_turn(turn)))


def _add_models(app: FastAPI, service: Service) -> None:
    @app.get("/v1/models")
    async def models() -> ModelList:
        """The model ids: policy and protocol. Never asks the engine."""
        return ModelList(data=[Model(id=model, created=_CREATED) for model in service.models])

    @app.get("/v1/models/{model:path}")
    async def model(model: str) -> Model:
        """One of them."""
        service.require(model)
        return Model(id=model, created=_CREATED)


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
