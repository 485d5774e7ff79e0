"""What goes wrong at an OpenAI-compatible endpoint, as a `PolicyError` with a kind and a sentence that gives a hint."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import httpx2
import openai

from agent.errors import ContextFull, PolicyError, PolicyErrorKind, RequestRefused, TurnBroken
from agent.outbound.address import OptionNames
from agent.outbound.client import Redirected, TooLong
from agent.outbound.completions import OddReply, error_of
from agent.outbound.numbers import retry_after
from agent.sanitize.text import whole

FOREIGN: Final = (openai.OpenAIError, httpx2.HTTPError, OddReply)
"""Everything that a request can raise that is the server's doing."""
HOPELESS: Final = frozenset({401, 402, 404})
"""With one of these every further request fails, too."""
_NEEDED: Final = frozenset({"model", "messages", "prompt", "input", "return_token_ids"})
"""What a request cannot do without."""
_ODD: Final = r"un(?:known|supported|recogni[sz]ed|expected)"
_WHAT: Final = r"(?:param(?:eter)?|argument|field|name|property|input|key)s?"
_LISTED: Final = r"[\s:(\[{'\"`]*(?:\w+['\"`]?(?:\s*:[^,]*)?,\s*['\"`]?)*"
"""Between such a word and a name: others, where several are listed."""
_UNKNOWN: Final = (
    rf"(?:\b{_ODD}|\bnot support|n['’]t support)[\w ]* {_WHAT}(?: supplied)?{_LISTED}NAME(?!\w|[.\[]\w)",
    rf"(?<![\w.])NAME['\"`]? (?:{_WHAT} )?(?:(?:is|are|was|were) )?(?:{_ODD}|not (?:supported|permitted|allowed))"
    r"(?=\W*$|[.,;:)]| (?:with|for|by|on) (?:this|the) model\b)",
    r"extra_forbidden\W+loc\W+body\W+NAME['\"],?[)\]]|extra inputs are not permitted\W+NAME['\"]",
)
"""How servers say that they take no such parameter: OpenAI, Google, Groq and LiteLLM; the last is vLLM and Mistral."""
_UNKNOWN_CODES: Final = ("unsupported_parameter", "unknown_parameter")
_VALUE: Final = re.compile(r"\bvalues?\b", re.IGNORECASE)
"""A sentence that speaks of a value may mean that alone, though it says "unsupported"."""
_SAID: Final = 300
"""Characters of a server's own words."""
_CONTEXT: Final = re.compile(r"context (?:length|size)|prompt is too long|maximum number of tokens", re.IGNORECASE)
"""What servers say of a prompt that is too long."""
_KINDS: Final[Mapping[int, PolicyErrorKind]] = {408: "timeout", 409: "server", 429: "rate", 501: "refused"}
_CLOSED: Final = "disconnected without sending a response"
"""What httpx says of a connection that the server had closed when the request came."""


@dataclass(frozen=True)
class ErrorContext:
    """What an error is about."""

    base_url: str
    """Without secrets."""
    model: str
    seconds: float
    """Of silence before the server is given up."""
    options: OptionNames

    @property
    def server(self) -> str:
        return f"the server at {self.base_url}"


def policy_error(error: Exception, about: ErrorContext, *, begun: bool) -> PolicyError:
    """The error for one that the client raised.

    Args:
        error: one of `FOREIGN`.
        about: the endpoint.
        begun: whether the server had begun to answer.
    """
    match _cause(error):
        case Redirected() as found:
            return PolicyError(
                f"{about.server} redirects to {found.target}; redirects are not followed: set "
                f"{about.options.url} to that one if it is meant",
                kind="refused",
            )
        case TooLong() as found:
            return PolicyError(
                f"{about.server} sent too much: {found}; check whether it is OpenAI-compatible", kind="malformed"
            )
        case OddReply() as found:
            return PolicyError(
                f"{about.server} sent something that can't be read: {found}; check whether it is OpenAI-compatible",
                kind="malformed",
            )
        case found:
            return _failure(found, about, begun=begun)


def error_in(body: Mapping[str, Any], server: str = "the server") -> PolicyError | None:
    """The error that a server sends in the place of an answer or in the middle of one; None where there is none."""
    said = error_of(body)
    if not said:
        return None
    error: Any = body["error"]
    row = cast(dict[str, Any], error) if isinstance(error, dict) else {"type": error}
    name = " ".join(str(row.get(member) or "") for member in ("type", "code")).lower()
    return PolicyError(f"{server} failed: {said}; look at its log", kind=_kind_named(name))


def _kind_named(name: str) -> PolicyErrorKind:
    if "rate" in name or "429" in name:
        return "rate"
    if "timeout" in name:
        return "timeout"
    return "refused" if "invalid_request" in name else "server"


@dataclass(frozen=True)
class RefusedParameter:
    """A parameter for which a server refused a request."""

    name: str
    unknown: bool
    """Whether the server says that it takes no such parameter at all; otherwise the value may be at fault."""


def refused_parameter(error: Exception, sent: Mapping[str, Any]) -> RefusedParameter | None:
    """The parameter that a server refuses, if it names one that can be left out."""
    if not isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError) or _is_context(error):
        return None
    optional = sorted((name for name in sent if name not in _NEEDED), key=lambda name: name == "stream")
    said = _said(error)
    named = [error.param] if error.param in optional else [name for name in optional if _names(said, name)]
    by_code = error.param if error.code in _UNKNOWN_CODES else None
    unknown = [name for name in named if name == by_code or _is_unknown(said, name)]
    name = next(iter(unknown or named), None)
    return None if name is None else RefusedParameter(name, unknown=bool(unknown))


def _cause(error: Exception) -> Exception:
    """What is behind an error of the client, where that says more."""
    cause = error.__cause__
    return cause if isinstance(cause, Redirected | TooLong | OddReply) else error


def _failure(error: Exception, about: ErrorContext, *, begun: bool) -> PolicyError:
    match error:
        case openai.APITimeoutError():
            return PolicyError(
                f"{about.server} was silent for {about.seconds:g} seconds; it may still be loading {about.model}, or "
                "overloaded: try again, or use a smaller model",
                kind="timeout",
                begun=begun or not _unsent(error),
            )
        case openai.APIConnectionError() if begun:
            return TurnBroken(broke_off(about.base_url), kind="connection")
        case openai.APIConnectionError():
            return PolicyError(
                f"no server at {about.base_url}: is it running, and is that its {about.options.url}?",
                kind="connection",
                begun=not _unsent(error),
            )
        case openai.APIStatusError():
            return _refusal(error, about)
        case _:
            return PolicyError(f"{about.server} failed: {_said(error)}; look at its log", kind="server")


def _unsent(error: Exception) -> bool:
    """Whether the server cannot have begun to answer."""
    cause = error.__cause__
    closed = isinstance(cause, httpx2.RemoteProtocolError) and _CLOSED in str(cause)
    return closed or isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)


def broke_off(base_url: str) -> str:
    """The sentence for a stream that ended too early."""
    return f"the server at {base_url} broke off in the middle of its turn; look at its log"


def _refusal(error: openai.APIStatusError, about: ErrorContext) -> PolicyError:
    status = error.status_code
    said = _said(error)
    kind, sentence, options = PolicyError, f"{status}: {said}" if said else str(status), about.options
    if _is_context(error):
        kind, why = ContextFull, f"the context is longer than {about.model} takes ({sentence})"
    elif status in (401, 403):  # what the server says may quote the key
        why = f"{about.server} refuses the key ({status}); set {options.key} to one that may use {about.model}"
    elif status == 402:
        why = f"{about.server} requires payment ({sentence}); check the account's balance"
    elif status == 404:
        why = (
            f"{about.server} does not know the model {about.model!r} or the path ({sentence}); name another "
            f"{options.model}, or check whether {options.url} should end in /v1"
        )
    elif status == 429:
        why = f"{about.server} accepts no more requests now ({sentence}); wait, or check its quota"
    elif status >= 500:  # 500 is what some servers say where a template or a grammar does not take the request
        kind = RequestRefused if status == 500 else PolicyError
        why = f"{about.server} failed ({sentence}); look at its log"
    else:
        kind = RequestRefused
        why = f"{about.server} refuses the request ({sentence}); check whether {about.model} is a chat model"
    return kind(
        why,
        kind=_KINDS.get(status, "server" if status >= 500 else "refused"),
        status=status,
        retry_after=retry_after(error.response.headers),
        begun=False,
    )


def _names(said: str, name: str) -> bool:
    quoted = any(f"{quote}{name}{quote}" in said for quote in "'\"`")
    return quoted or any(f"{what}: {name}" in said for what in ("parameter", "supplied"))


def _is_unknown(said: str, name: str) -> bool:
    """Whether a server says that it takes no parameter of this name, whatever its value."""
    if _VALUE.search(said):
        return False
    return any(re.search(form.replace("NAME", re.escape(name)), said, re.IGNORECASE) for form in _UNKNOWN)


def _is_context(error: openai.APIStatusError) -> bool:
    named = error.code == "context_length_exceeded" or "exceed_context_size" in f"{error.code} {error.type}"
    return named or (error.status_code != 429 and bool(_CONTEXT.search(f"{error} {_said(error)}")))


def _said(error: Exception) -> str:
    """The server's own words on one line; empty where there are none."""
    text = error.message if isinstance(error, openai.APIError) else str(error)
    if isinstance(error, openai.APIStatusError):
        text = text.removeprefix(f"Error code: {error.status_code}").removeprefix(" - ")
        match error.body:
            case str() as body if not body.lstrip().startswith("<"):  # a page says nothing
                text = body
            case {"detail": str() as detail} | [{"error": {"message": str() as detail}}]:  # a list: Google
                text = detail
            case body:
                text = "; ".join(_of_members(body)) or text
    text = " ".join(whole(text).split())
    return text if len(text) <= _SAID else text[:_SAID] + "…"


def _of_members(body: object) -> Iterator[str]:
    """What is wrong with each member of a request, as FastAPI and Mistral list it."""
    said = cast(dict[str, Any], body) if isinstance(body, dict) else {}
    message: Any = said.get("message")
    rows: Any = (cast(dict[str, Any], message) if isinstance(message, dict) else said).get("detail")
    for row in cast(list[Any], rows) if isinstance(rows, list) else []:
        match row:
            case {"msg": str() as what, "loc": ["body", *where]}:
                yield f"{what}: '{'.'.join(str(at) for at in where if isinstance(at, str | int))}'"
            case _:
                pass
