"""From settings to a server that runs: what answers, who may ask, the socket and the process's end."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from agent.build import as_trained, build_agent, build_sources, notices, policies_of
from agent.errors import SetupError
from agent.policies.base import Policy
from agent.protocols import protocol_named, protocol_names
from agent.settings import CairnSettings
from agent.sources.base import Source
from server.app import create_app, create_retrieval_app
from server.chat import Service
from server.evidence.answering import answering_of
from server.gate import LOOPBACK, Rules
from server.retrieve import Retriever
from server.stream import Runs

GRACE_SECONDS = 3
"""How long answers on their way may take when the server is told to stop."""


def make_service(
    settings: CairnSettings, *, policy: Policy | None = None, sources: Mapping[str, Source] | None = None
) -> Service:
    """Load the policies and the sources. Model ids are its own protocol and our six, or what its checkpoint speaks.

    Args:
        settings: of agent and server.
        policy: what writes instead, under every protocol.
        sources: what is searched instead.
    """
    agent = build_agent(settings, policy=policy, sources=sources)
    own = {agent.protocol.name: agent.protocol}
    spoken = (
        [name for name in settings.protocols if name in protocol_names()] if settings.protocols else protocol_names()
    )
    ours = {name: as_trained(protocol_named(name), settings) for name in spoken} | own
    return Service(
        agent=agent,
        protocols=ours,
        policies={} if policy else policies_of(settings, [name for name in ours if name not in own], own=agent.policy),
        question_chars=settings.max_question_chars,
        notices=tuple(notices(settings)),
        far=_far(settings),
        answer_style=settings.answer_style,
        profile=settings.profile,
        answering=answering_of(settings),
    )


def make_retriever(settings: CairnSettings) -> Retriever:
    """Open the sources, and nothing else."""
    return Retriever(build_sources(settings), far=_far(settings))


def _far(settings: CairnSettings) -> bool:
    """Whether the source that answers by default is asked over the network."""
    return settings.is_live and settings.corpus is None


def rules_of(settings: CairnSettings) -> Rules:
    """Who may ask.

    Raises:
        SetupError: other machines could ask without a key.
    """
    local = is_loopback(settings.host)
    if not local and not settings.server_key.get_secret_value() and not settings.insecure:
        raise SetupError(
            f"on {settings.host} other machines can ask; set a key for them (CAIRN_SERVER_KEY=…), "
            "or allow everybody with --insecure"
        )
    hosts = LOOPBACK | {settings.host.lower()} if local else None
    return Rules(key=settings.server_key, hosts=hosts, body_bytes=settings.max_body_bytes)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


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
        raise SetupError(f"port {port} needs more rights; choose one above 1023 with --port") from error
    except OSError as error:
        listener.close()
        raise SetupError(
            f"port {port} on {host} cannot be taken ({error.strerror}); stop the program that holds it, "
            "or choose another with --port (0 takes a free one)"
        ) from error
    return listener


def address_of(listener: socket.socket) -> str:
    """The URL under which a browser on this machine finds it."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """A server that gives the answers on their way some time when it is told to stop, and none when told twice."""

    def __init__(self, config: uvicorn.Config, runs: Runs) -> None:
        super().__init__(config)
        self._runs = runs
        self.greet: Callable[[], None] = lambda: None
        """Called once it answers; from then on Ctrl-C ends it gracefully."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.greet()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        patience = asyncio.get_running_loop().call_later(GRACE_SECONDS, self._runs.end)
        try:
            await super().shutdown(sockets)
        finally:
            patience.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal came: the first one stops, the second one stops at once."""
        if self.should_exit:
            self._runs.end()
        else:
            super().handle_exit(sig, frame)


def make_server(service: Service | Retriever, rules: Rules | None = None) -> Server:
    """The app on uvicorn: the whole one of a service, or that of the sources alone."""
    app = create_app(service, rules) if isinstance(service, Service) else create_retrieval_app(service, rules)
    return _on_uvicorn(app, service.runs)


def _on_uvicorn(app: ASGIApp, runs: Runs) -> Server:
    """A server that writes no log of its own but of what breaks."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2 * GRACE_SECONDS,
    )
    return Server(config, runs)


def run(server: Server, listener: socket.socket) -> None:
    """Serve until the process is told to stop.

    Raises:
        KeyboardInterrupt: it was Ctrl-C.
    """
    asyncio.run(server.serve(sockets=[listener]))
