"""MediaWiki's action API (api.php), as Wikipedia and Wikidata have it: its errors come with status 200."""

from collections.abc import Mapping
from typing import Any, Final, cast

from agent.errors import SourceError, SourceErrorKind
from agent.outbound.numbers import retry_after
from agent.sources.http import Api, ApiAnswer

_KINDS: Final[Mapping[str, SourceErrorKind]] = {
    "maxlag": "rate",
    "ratelimited": "rate",
    "actionthrottledtext": "rate",
    "cirrussearch-too-busy-error": "rate",
    "readapidenied": "auth",
    "permissiondenied": "auth",
    "blocked": "auth",
    "autoblocked": "auth",
    "mwoauth-invalid-authorization": "auth",
}
_OURS: Final = (
    *("bad", "invalid", "missing", "no", "toomany", "toolong", "unknown", "unrecognized", "search-", "srsearch-"),
    *("param", "modification-failed", "wikibase-api-"),
)
"""How the codes of errors begin that another try will meet again."""


def read_object(api: Api, answer: ApiAnswer) -> dict[str, Any]:
    """The answer's object.

    Raises:
        SourceError: it is an error, with whatever status, or no object.
    """
    data = api.parse(api.checked(answer))
    if not isinstance(data, dict):
        raise SourceError(f"{api.name} sent no object: {answer.text[:80]!r}", kind="parse")
    found = cast(dict[str, Any], data)
    if "error" in found:
        raise _error(api, found["error"], answer)
    return found


def _error(api: Api, error: object, answer: ApiAnswer) -> SourceError:
    details = cast(dict[str, Any], error if isinstance(error, dict) else {"info": repr(error)})
    code = str(details.get("code", "an error"))
    kind = _KINDS.get(code) or ("bad_query" if code.startswith(_OURS) else "upstream")
    why = " ".join(str(details.get("info")).split())[:160]
    return SourceError(f"{api.name} says {code}: {why}", kind=kind, retry_after=retry_after(answer.headers))
