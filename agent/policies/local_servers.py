"""Finds model servers on this machine: Ollama, LM Studio, llama.cpp and vLLM on their usual ports.

What listens on a port may be anything, so replies are bounded and validated, and no key is ever sent.
"""

import asyncio
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, cast

import httpx2

from agent.outbound.client import bounded_client
from agent.outbound.completions import OddReply, json_of, object_of

PORTS: Mapping[int, str] = MappingProxyType({11434: "Ollama", 1234: "LM Studio", 8080: "llama.cpp", 8000: "vLLM"})
"""The port that each server takes unless its user chooses another."""
SECONDS: Final = 0.5
"""A server on this machine lists its models in a few milliseconds."""
MAX_MODELS: Final = 50
MAX_NAME_CHARS: Final = 200
_LIST_BYTES: Final = 1024 * 1024
_OWNERS: Final[Mapping[str, str]] = {
    "library": "Ollama",
    "organization_owner": "LM Studio",
    "llamacpp": "llama.cpp",
    "vllm": "vLLM",
}
"""What each server writes into `owned_by`. Ollama writes a user's name for models that are not of its library."""
_CAIRN: Final = "cairn"
_EMBEDS: Final = "embed"
_OLLAMA_SAYS: Final = b"Ollama is running"
_FOREIGN: Final = (httpx2.HTTPError, OddReply, OSError, TimeoutError)


@dataclass(frozen=True)
class LocalServer:
    """A running model server that Cairn can use."""

    name: str
    """What it is, for example Ollama."""
    base_url: str
    """For example http://127.0.0.1:11434/v1."""
    models: tuple[str, ...]
    """Names that `--model` takes, without models that only embed; empty where nothing is loaded."""

    def command(self, model: str) -> str:
        """The command that serves Cairn with one of its models, safe to paste into a shell."""
        return f"cairn serve --base-url {self.base_url} --model {shlex.quote(model)}"


async def find_local_servers(
    *, ports: Mapping[int, str] | None = None, seconds: float = SECONDS
) -> tuple[LocalServer, ...]:
    """Look at all ports at the same time. Nothing that a server does raises; an odd one is left out.

    Args:
        ports: the server that usually listens on each port of 127.0.0.1; left out, `PORTS`.
        seconds: for all of it.
    """
    usual = PORTS if ports is None else ports
    if not usual:
        return ()
    async with bounded_client(timeout=seconds, most_bytes=_LIST_BYTES, trust_env=False) as client:
        looks = [_look(client, port, expected=name, seconds=seconds) for port, name in usual.items()]
        return tuple(server for server in await asyncio.gather(*looks) if server)


async def _look(client: httpx2.AsyncClient, port: int, *, expected: str, seconds: float) -> LocalServer | None:
    base = f"http://127.0.0.1:{port}"
    try:
        async with asyncio.timeout(seconds):
            listed = await client.get(f"{base}/v1/models")
            if not listed.is_success:
                return None
            rows = _rows(listed.content)
            name = await _name_of(client, base, rows, expected=expected)
    except _FOREIGN:
        return None
    return LocalServer(name, f"{base}/v1", tuple(islice(_models(rows), MAX_MODELS))) if name else None


def _rows(body: bytes) -> list[dict[str, Any]]:
    """The models of a list. Ollama without a model writes null instead of an empty one.

    Raises:
        OddReply: it is not a list of models.
    """
    listed = object_of(json_of(body))
    data: Any = listed.get("data", ())
    if listed.get("object") != "list" or not (data is None or isinstance(data, list)):
        raise OddReply("it is not a list of models")
    return [cast(dict[str, Any], row) for row in cast(list[Any], data or []) if isinstance(row, dict)]


async def _name_of(client: httpx2.AsyncClient, base: str, rows: list[dict[str, Any]], *, expected: str) -> str:
    """What the server is; empty for another Cairn, and for what is unknown."""
    owners = {owner for row in rows if isinstance(owner := row.get("owned_by"), str)}
    if _CAIRN in owners:
        return ""
    if known := next((name for owner, name in _OWNERS.items() if owner in owners), ""):
        return known
    if expected == "LM Studio":
        return expected  # it is alone on its port; the others' ports are everybody's
    front = await client.get(base)
    return "Ollama" if front.is_success and front.content.startswith(_OLLAMA_SAYS) else ""


def _models(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Names that can be typed as they are, each once. A name that would have to be changed is no longer the model's."""
    names = dict.fromkeys(name for row in rows if isinstance(name := row.get("id"), str))
    for name in names:
        if 0 < len(name) <= MAX_NAME_CHARS and _is_plain(name) and _EMBEDS not in name.lower():
            yield name


def _is_plain(name: str) -> bool:
    """Whether a name is one printable line that no command takes for an option."""
    return name.isprintable() and name == name.strip() and not name.startswith("-")
