"""The address of a server, split once: what may be shown, and the secrets that a user wrote into it.

A password belongs to the request alone. Whatever is printed, logged, stored or answered shows `Address.base`.
"""

import json
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, quote, quote_plus, unquote

from agent.errors import SetupError
from agent.outbound.urls import split_url

SHORTEST_SECRET: Final = 4
"""Anything shorter is not hidden in other texts: every other word would hold it."""
_HIDDEN: Final = "***"


@dataclass(frozen=True)
class Address:
    """Where a server is, and how it is reached there."""

    base: str
    """Scheme, host, port and path, without a slash at the end: what may be shown."""
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    query: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Sent with every request; gateways take keys there."""

    @classmethod
    def of(cls, url: str) -> "Address":
        """Split an address.

        Raises:
            SetupError: it is no http address; the sentence doesn't repeat it where it may hold a secret.
        """
        parts = split_url(url.strip())
        host, port = parts.hostname, parts.port
        if parts.scheme not in ("http", "https") or not host:
            named = repr(url) if not set("@?#") & set(url) else "what is set"
            raise SetupError(f"{named} is not an http address; use one like http://127.0.0.1:11434/v1")
        userinfo, _, _ = parts.netloc.rpartition("@")
        user, _, password = userinfo.partition(":")
        place = f"[{host}]" if ":" in host else host
        return cls(
            base=f"{parts.scheme}://{place}{f':{port}' if port is not None else ''}{parts.path.rstrip('/')}",
            user=unquote(user),
            password=unquote(password),
            query=tuple(parse_qsl(parts.query, keep_blank_values=True)),
        )

    @property
    def headers(self) -> dict[str, str]:
        """What a user name and a password become: HTTP's basic authentication."""
        return {"Authorization": f"Basic {self._basic}"} if self.user or self.password else {}

    def hide(self, text: str, *more: str) -> str:
        """The text without the secrets of this address and `more` ones, in whatever form a server repeats them."""
        secrets = {self.user, self.password, self._basic, *(value for _, value in self.query), *more}
        forms = {form for secret in secrets if len(secret) >= SHORTEST_SECRET for form in _forms(secret)}
        for form in sorted(forms, key=len, reverse=True):
            text = text.replace(form, _HIDDEN)
        return text

    @property
    def _basic(self) -> str:
        if not self.user and not self.password:
            return ""
        return b64encode(f"{self.user}:{self.password}".encode()).decode()


@dataclass(frozen=True)
class OptionNames:
    """What the user sets to reach a model, for the hints in errors."""

    url: str = "--base-url"
    key: str = "CAIRN_API_KEY"
    model: str = "--model"


def shown(url: str) -> str:
    """An address without its secrets, for messages; never raises."""
    try:
        return Address.of(url).base
    except SetupError:
        return _HIDDEN if set("@?#") & set(url) else url


def _forms(secret: str) -> set[str]:
    """How a secret may occur in a URL, in JSON and in plain text."""
    return {secret, quote(secret, safe=""), quote(secret), quote_plus(secret), json.dumps(secret)[1:-1]}
