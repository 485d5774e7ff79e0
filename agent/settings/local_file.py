"""What a `cairn.toml` may set that is merely found in the current folder, and where a key may be sent.

A folder that was downloaded or unpacked may bring a settings file. Without consent (`cairn trust`) it may choose how
questions are answered, and nothing that names an address, a path, a process, code, or another limit of the server.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from pydantic import SecretStr

from agent.errors import SetupError
from agent.outbound.urls import is_loopback, split_url
from agent.protocols import profile_names, protocol_names
from agent.settings.live import KEYED, STANDALONE

_WORLDS: Final = Path(__file__).parents[1] / "world" / "lists"
OWN_SOURCES: Final = frozenset({"web", "news", "arxiv", "wiki", "corpus", "kg", "all"})
"""Without plug-ins, which are other people's code, and without the sources whose name alone begins requests."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _any(value: object) -> bool:
    return True


def _protocols(value: object) -> bool:
    return all(name in (*protocol_names(), *profile_names()) for name in _names(value))


def _world(value: object) -> bool:
    return value == "test" or (_is_name(value) and (_WORLDS / str(value)).is_dir())


def _sources(value: object) -> bool:
    return all(_is_name(name) and name in OWN_SOURCES for name in _names(value))


def _backends(value: object) -> bool:
    return all(map(_is_name, _names(value)))


def _names(value: object) -> list[object]:
    """Of a list, or of names with commas between them."""
    if isinstance(value, str):
        return [name.strip() for name in value.split(",")]
    return cast(list[object], value) if isinstance(value, list) else [value]


def _is_name(value: object) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


HARMLESS: Final[Mapping[str, Callable[[object], bool]]] = {
    "protocol": _protocols,
    "protocols": _protocols,
    "endpoint": _any,
    "rung": _any,
    "continues": _any,
    "temperature": _any,
    "sources": _sources,
    "world": _world,
    "budgets.rounds": _any,
    "budgets.searches": _any,
    "budgets.passages": _any,
    "budgets.policy_tokens": _any,
    "budgets.context_tokens": _any,
    "budgets.seconds": _any,
    "budgets.search_seconds": _any,
    "budgets.credits": _any,
    "web": _backends,
    "news": _backends,
    "news_enough": _any,
    "retrieval": _any,
    "profile": _any,
    "answer_style": _any,
}
"""The settings of a file without consent, each with what its value must be. What is not named here needs consent."""

_KEYS: Final = {
    "base_url": "api_key",
    "filter_url": "filter_key",
    "answer_url": "answer_key",
    **{f"{vendor}_url": f"{vendor}_key" for vendor in (*KEYED, *STANDALONE)},
}
"""Setting of an address → the one of the key that is sent there."""


def keys_of_their_addresses(own: Mapping[str, Any], others: Any) -> dict[str, Any]:
    """What the user's own file sets, without the keys whose address something else decides: it may be another one.

    Args:
        own: of that file.
        others: the settings without it.
    """
    said: set[str] = others.model_fields_set
    moved = {key for url, key in _KEYS.items() if url in said and getattr(others, url) != own.get(url)}
    return {name: value for name, value in own.items() if name not in moved}


def beyond_harmless(values: Mapping[str, Any], *, tables: Iterable[str]) -> list[str]:
    """The settings of a file that need consent, as they are written there.

    Args:
        values: of the file.
        tables: the settings whose own settings are looked at one by one.
    """
    tables = set(tables)
    found: list[str] = []
    for name, value in values.items():
        if name in tables and isinstance(value, dict):
            found += [f"{name}.{inner}" for inner in cast(dict[str, Any], value) if f"{name}.{inner}" not in HARMLESS]
        elif name not in HARMLESS or not HARMLESS[name](value):
            found.append(name)
    return found


def refuse_plain_keys(settings: Any) -> None:
    """See `refuse_plain_key`, for every address of the settings.

    Args:
        settings: of the agent.

    Raises:
        SetupError: a key would be sent unencrypted.
    """
    for name, key_name in _KEYS.items():
        key: SecretStr = getattr(settings, key_name)
        refuse_plain_key(getattr(settings, name), key.get_secret_value(), allowed=settings.plain_http, what=name)


def refuse_plain_key(url: str, key: str, *, allowed: Iterable[str] = (), what: str = "the address") -> None:
    """Hold that a key never leaves this machine over plain http, where anyone on the way could read it.

    Args:
        url: where the key is sent.
        key: empty where there is none.
        allowed: hosts that the user has said are fine (`plain_http`).
        what: names the address for the error.

    Raises:
        SetupError: it would.
    """
    parts = split_url(url.strip())  # empty for what is no address: the client that uses it says what is wrong with it
    host, secret = (parts.hostname or "").lower(), key or parts.password
    if not secret or parts.scheme != "http" or is_loopback(host) or host in {one.lower() for one in allowed}:
        return
    raise SetupError(
        f"{what} is http://{host}, and a key would be sent there unencrypted; use https://, leave the key out, or, "
        f"where the network between is your own, set plain_http = [{host!r}] (CAIRN_PLAIN_HTTP={host})"
    )
