"""The real server, as `cairn serve` makes it, for a measurement; run in a process of its own by `process.running`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.settings import CairnSettings
from lab.benchmarks.load.paced import PacedPolicy, PacedSource
from lab.benchmarks.load.process import Send

if TYPE_CHECKING:
    import socket

    from server.launch import Server


def paced(dumped: dict[str, Any], tokens: tuple[int, int], send: Send) -> "tuple[Server, socket.socket]":
    """A server whose policy and searches are scripted.

    Args:
        dumped: the settings, as a plain object.
        tokens: stamped ones of a thought and of an answer.
        send: gets when policy and searches begin and are let go.
    """
    from server import launch

    settings = CairnSettings(**dumped)
    source = PacedSource(send)
    service = launch.make_service(settings, policy=PacedPolicy(send, tokens=tokens), sources={"web": source})
    return launch.make_server(service, launch.rules_of(settings)), launch.bind(settings.host, settings.port)


def embedded(dumped: dict[str, Any], calls: Path | None, send: Send) -> "tuple[Server, socket.socket]":
    """A server of the settings alone.

    Args:
        dumped: the settings, as a plain object.
        calls: where the engine's calls are written down, for who wants to know them.
        send: gets nothing.
    """
    from agent.policies.embedded import EmbeddedPolicy
    from lab.benchmarks.load.model.calls import CallLog
    from server import launch

    settings = CairnSettings(**dumped)
    listener = launch.bind(settings.host, settings.port)
    service = launch.make_service(settings)
    if calls and isinstance(service.agent.policy, EmbeddedPolicy):
        service.agent.policy.listen(CallLog(calls))
    return launch.make_server(service, launch.rules_of(settings)), listener
