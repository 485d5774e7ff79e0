"""From settings to a server that runs: what answers, who may ask, the socket and the process's end."""

import asyncio
import ctypes
import gc
import os
import socket
from collections.abc import Callable, Coroutine, Mapping
from types import FrameType
from typing import Any, Final, Protocol

import uvicorn
from starlette.types import ASGIApp

from agent.build.agent import as_trained, build_agent, build_sources, notices
from agent.build.shipped import with_policy
from agent.errors import SetupError
from agent.outbound.urls import is_loopback
from agent.parallel.processes import GC_THRESHOLD
from agent.policies.base import Policy
from agent.policies.local_servers import LocalServer
from agent.protocols import protocol_named, protocol_names
from agent.settings import CairnSettings
from agent.sources.base import Source
from server.app import create_app, create_retrieval_app
from server.auth.admission import Admission, AdmissionBounds
from server.auth.middleware import LOOPBACK, Rules
from server.chat.service import Service, no_local_servers
from server.evidence.answering import answering_of
from server.http.header_timeout import patient
from server.retrieval.service import Retriever
from server.runs.opening import keys_exist, libraries_of, run_manager_of
from server.shutdown import Grace, Shutdown
from server.telemetry.setup import observers_of
from server.ui.routes import LocalServerFinder, examples_of, find_usable
from server.ui.settings import SettingsEditor

_ARENA_MAX: Final = -8
"""The parameter of glibc's `mallopt` (M_ARENA_MAX in malloc.h)."""
STRAGGLER_SECONDS: Final = 3
"""For what is no run and still on its way when the server ends."""


def make_service(
    settings: CairnSettings, *, policy: Policy | None = None, sources: Mapping[str, Source] | None = None
) -> Service:
    """Load the policy and the sources. Model ids are its protocol and the built-in ones, or what its checkpoint speaks.

    Args:
        settings: of agent and server.
        policy: in the place of the settings' policy, under every protocol.
        sources: what is searched instead.
    """
    settings = settings if policy else with_policy(settings)
    agent = build_agent(settings, policy=policy, sources=sources)
    spoken = (
        [name for name in settings.protocols if name in protocol_names()] if settings.protocols else protocol_names()
    )
    ours = {name: as_trained(protocol_named(name), settings) for name in spoken} | {agent.protocol.name: agent.protocol}
    run_manager = run_manager_of(settings)
    return Service(
        agent=agent,
        protocols=ours,
        answer_style=settings.answer_style,
        profile=settings.profile,
        question_chars=settings.max_question_chars,
        notices=tuple(notices(settings)),
        examples=() if sources else examples_of(settings),
        local_models=LocalServerFinder(settings) if policy is None and is_loopback(settings.host) else no_local_servers,
        admission=Admission(_bounds(settings)),
        observers=tuple(observers_of(settings)),
        far=_far(settings),
        answering=answering_of(settings),
        keep=run_manager.keep,
        run_manager=run_manager,
        libraries=libraries_of(settings, run_manager.store),
        editor=SettingsEditor(settings) if policy is None and is_loopback(settings.host) else None,
    )


def _at_once(settings: CairnSettings) -> int:
    """Runs by what writes: an engine behind an endpoint queues by itself, one of this process shares its cores."""
    match settings.policy:
        case "embedded":
            return 128
        case "openai" | "vllm":
            return 256
        case "transformers":
            return 16


def _bounds(settings: CairnSettings) -> AdmissionBounds:
    return AdmissionBounds(
        runs=settings.max_runs or _at_once(settings),
        queue=settings.max_queue,
        wait_seconds=settings.queue_seconds,
    )


def local_servers_of(settings: CairnSettings) -> list[LocalServer]:
    """The model servers of this machine, where the settings name no model. It takes half a second at most."""
    return asyncio.run(find_usable(settings))


def make_retriever(settings: CairnSettings) -> Retriever:
    """Open the sources, and nothing else."""
    return Retriever(build_sources(settings), far=_far(settings))


def _far(settings: CairnSettings) -> bool:
    """Whether the source that answers by default is reached over the network."""
    return (settings.is_live or bool(settings.mcp)) and settings.corpus is None


def rules_of(settings: CairnSettings, *, retrieval_only: bool = False) -> Rules:
    """Who may ask.

    Args:
        settings: of the server.
        retrieval_only: only sources are served, which open no store and so know no key of a client.

    Raises:
        SetupError: other machines could ask without a key.
    """
    local = is_loopback(settings.host)
    keyed = local or settings.insecure or bool(settings.server_key.get_secret_value())
    if not keyed and (retrieval_only or not keys_exist(settings)):
        how = "set a key" if retrieval_only else "create keys for them (cairn key add NAME), set one"
        raise SetupError(
            f"other machines can reach {settings.host}; {how} (CAIRN_SERVER_KEY=…), or allow everyone with --insecure"
        )
    hosts = LOOPBACK | {settings.host.lower()} if local else None
    return Rules(
        key=settings.server_key,
        hosts=hosts,
        body_bytes=settings.max_body_bytes,
        body_seconds=settings.max_body_seconds,
    )


def bind(host: str, port: int) -> socket.socket:
    """Take the port before anything is loaded; 0 takes a free one.

    Raises:
        SetupError: it is taken, not allowed, or the host is none of this machine's.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise SetupError(f"the host {host!r} is not known; try --host 127.0.0.1") from error
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(2048)
    except PermissionError as error:
        listener.close()
        raise SetupError(f"port {port} needs more privileges; choose one above 1023 with --port") from error
    except OSError as error:
        listener.close()
        raise SetupError(
            f"port {port} on {host} cannot be used ({error.strerror}); stop the program that uses it, "
            "or choose another with --port (0 picks a free one)"
        ) from error
    return listener


def address_of(listener: socket.socket) -> str:
    """The URL under which a browser on this machine finds it."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Serves(Protocol):
    """What answers on sockets until its process is to stop; a `Server` is one."""

    def serve(self, sockets: list[socket.socket] | None = None) -> Coroutine[Any, Any, None]: ...


class Server(uvicorn.Server):
    """A server that gives the answers on their way some time at the first signal to stop, and none at the second."""

    def __init__(self, config: uvicorn.Config, ending: Shutdown) -> None:
        super().__init__(config)
        self._ending = ending
        self._loop: asyncio.AbstractEventLoop | None = None
        self.greet: Callable[[], None] = lambda: None
        """Called once it answers; from then on Ctrl-C ends it gracefully."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.started:
            self.greet()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._ending.drain()  # it still listens: probes hear that it stops, and go elsewhere
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal came: the first one stops, the second one stops at once."""
        if self.should_exit and self._loop is not None:
            self._loop.call_soon_threadsafe(self._ending.end)  # it sleeps, and a signal alone does not wake it
        else:
            super().handle_exit(sig, frame)


def make_server(service: Service | Retriever, rules: Rules | None = None, *, grace: Grace | None = None) -> Server:
    """The app on uvicorn: the whole one of a service, or that of the sources alone."""
    rules = rules or Rules()
    if isinstance(service, Service):
        app = create_app(service, rules)
        ending = Shutdown(service.runs, admission=service.admission, watch=service.watch, grace=grace)
    else:
        app = create_retrieval_app(service, rules)
        ending = Shutdown(service.runs, grace=grace)
    return Server(_config(app, header_seconds=rules.body_seconds), ending)


def restarting(server: Server, service: Service | Retriever) -> Callable[[], bool]:
    """Let the page's settings end the server; gives whether they did, so that it is to be started again."""
    requested: list[bool] = []

    def restart() -> None:
        requested.append(True)
        server.should_exit = True

    if isinstance(service, Service) and service.editor:
        service.editor.restart = restart
    return lambda: bool(requested)


def grace_of(settings: CairnSettings) -> Grace:
    return Grace(seconds=settings.grace_seconds, answer_seconds=settings.grace_answer_seconds)


def _config(app: ASGIApp, *, header_seconds: float) -> uvicorn.Config:
    """A server whose log is ours, and that waits for no request for ever."""
    return uvicorn.Config(
        app,
        http=patient(header_seconds),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=STRAGGLER_SECONDS,
    )


def run(server: Serves, listener: socket.socket) -> None:
    """Serve until the process gets a signal to stop.

    Raises:
        KeyboardInterrupt: it was Ctrl-C.
    """
    _calm_collector()
    _one_arena()
    asyncio.run(server.serve(sockets=[listener]))


def _calm_collector() -> None:
    """Have Python look for cycles where there may be some, and seldom: a full look at everything that was loaded stops
    all streams for a tenth of a second, again and again, and finds nothing.
    """  # noqa: D205 - one sentence over two lines
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)


def _one_arena() -> None:
    """Have glibc take all memory from one arena: with one for each thread of the store, of the searches and of the
    engine, what one thread let go no other one gets, and the server grows for its first minutes.
    """  # noqa: D205 - one sentence over two lines
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt:
        mallopt(_ARENA_MAX, 1)
