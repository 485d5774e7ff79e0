"""The real server, as `cairn serve` makes it, for a measurement; run in a process of its own by `process.running`."""

from typing import TYPE_CHECKING, Any

from agent.settings import CairnSettings
from server.load.paced import PacedPolicy, PacedSource
from server.load.process import Tell

if TYPE_CHECKING:
    import socket

    from server.launch import Server


def paced(dumped: dict[str, Any], tokens: tuple[int, int], tell: Tell) -> "tuple[Server, socket.socket]":
    """A server whose policy and searches are scripted.

    Args:
        dumped: the settings, as a plain object.
        tokens: stamped ones of a thought and of an answer.
        tell: hears when policy and searches are asked and let go.
    """
    from server import launch

    settings = CairnSettings(**dumped)
    source = PacedSource(tell)
    service = launch.make_service(settings, policy=PacedPolicy(tell, tokens=tokens), sources={"web": source})
    return launch.make_server(service, launch.rules_of(settings)), launch.bind(settings.host, settings.port)


def embedded(dumped: dict[str, Any], tell: Tell) -> "tuple[Server, socket.socket]":
    """A server of the settings alone."""
    from server import launch

    settings = CairnSettings(**dumped)
    listener = launch.bind(settings.host, settings.port)
    return launch.make_server(launch.make_service(settings), launch.rules_of(settings)), listener
