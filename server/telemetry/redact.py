"""Takes secrets out of text that leaves the process: the ones of the settings, and whatever looks like one."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast
from urllib.parse import quote, quote_plus, unquote

from pydantic import BaseModel, SecretStr

SECRET: Final = "[secret]"
LEAST_CHARS: Final = 4
"""A shorter secret is no secret, and would take every word apart that holds it."""
_NAMED: Final = re.compile(r"key|token|secret|password|passwd|credential", re.IGNORECASE)
_LOOKS: Final = (
    re.compile(r"(?i)\b((?:bearer|basic)\s+)[^\s\"',;]+"),
    re.compile(
        r"(?i)((?:api[-_]?key|access[-_]?token|token|password|secret|[?&]key)[\"']?\s*[=:]\s*[\"']?)[^\s\"'&,;}]+"
    ),
    re.compile(r"()\b(?:sk|cairn|tvly)-[\w-]{12,}"),
    re.compile(r"(://[^\s/:@]*:)[^\s/@]+(?=@)"),
)


class Redactor:
    """Knows secrets and replaces them, however they are quoted."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {form for secret in secrets for form in _forms(secret) if len(form) >= LEAST_CHARS}
        longest_first = sorted(known, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if known else None

    def __call__(self, text: str) -> str:
        if self._known:
            text = self._known.sub(SECRET, text)
        for looks in _LOOKS:
            text = looks.sub(rf"\g<1>{SECRET}", text)
        return text


def secrets_of(settings: BaseModel) -> set[str]:
    """Every secret that settings hold: what is typed as one, options that are named like one, passwords in URLs."""
    return {secret for value in dict(settings).values() for secret in _within(value, named=False) if secret}


def _within(value: object, *, named: bool) -> Iterator[str]:
    match value:
        case SecretStr():
            yield value.get_secret_value()
            yield from _within(value.get_secret_value(), named=False)  # a driver may show the password alone
        case BaseModel():
            yield from secrets_of(value)
        case Mapping():
            for name, inner in cast(Mapping[Any, Any], value).items():
                yield from _within(inner, named=bool(_NAMED.search(str(name))))
        case str() if named:
            yield value
        case str() if found := re.search(r"://[^/@\s]*:([^/@\s]+)@", value):
            yield found[1]
        case _:
            return


def _forms(secret: str) -> set[str]:
    """The secret as it may appear in a URL, in JSON or in a representation."""
    return {secret, quote(secret, safe=""), quote_plus(secret), unquote(secret), json.dumps(secret)[1:-1]}
