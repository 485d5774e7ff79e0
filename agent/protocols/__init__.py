"""The text protocols by name."""

from agent.protocols.base import Role, TextProtocol
from agent.protocols.registry import load_protocol, protocol_named, protocol_names

__all__ = ["Role", "TextProtocol", "load_protocol", "protocol_named", "protocol_names"]
