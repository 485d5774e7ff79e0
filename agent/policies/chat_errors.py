"""What goes wrong at an OpenAI-compatible endpoint, as sentences that name the mend."""

from typing import Any, Final

import httpx2
import openai

from agent.errors import ContextFull, PolicyError, RequestRefused, TurnBroken
from agent.outbound.client import Redirected, TooLong
from agent.outbound.completions import OddReply

FOREIGN: Final = (openai.OpenAIError, httpx2.HTTPError, OddReply)
"""Everything that a request can raise that is the server's doing."""
_NEEDED: Final = frozenset({"model", "messages", "prompt", "stream", "return_token_ids"})
"""What a request cannot do without."""
_SAID: Final = 300
"""Characters of a server's own words."""


def sentence(error: Exception, *, base_url: str, model: str, begun: bool, seconds: float) -> PolicyError:
    """The sentence for an error of the client.

    Args:
        error: what it raised.
        base_url: of the endpoint.
        model: that was asked for.
        begun: the server had begun to answer.
        seconds: of silence that are borne.
    """
    at = f"the server at {base_url}"
    match _cause(error):
        case Redirected() as found:
            return PolicyError(
                f"{at} redirects to {found.target}; requests are sent to no other address: set --base-url to that one"
                " if it is meant"
            )
        case TooLong() as found:
            return PolicyError(f"{at} sent too much: {found}; see whether it is OpenAI-compatible")
        case OddReply() as found:
            return PolicyError(f"{at} sent something that can't be read: {found}; see whether it is OpenAI-compatible")
        case found:
            return _failure(found, at=at, base_url=base_url, model=model, begun=begun, seconds=seconds)


def _cause(error: Exception) -> Exception:
    """What is behind an error of the client, where that says more."""
    cause = error.__cause__
    return cause if isinstance(cause, Redirected | TooLong | OddReply) else error


def _failure(error: Exception, *, at: str, base_url: str, model: str, begun: bool, seconds: float) -> PolicyError:
    match error:
        case openai.APITimeoutError():
            return PolicyError(
                f"{at} was silent for {seconds:g} seconds; it may still be loading {model}, or overloaded: try again,"
                " or ask for a smaller model"
            )
        case openai.APIConnectionError():
            if begun:
                return TurnBroken(f"{at} broke off in the middle of its turn; look at its log")
            return PolicyError(f"no server at {base_url}: is it running, and is that its --base-url?")
        case openai.APIStatusError():
            return _refusal(error, at=at, model=model)
        case _:
            return PolicyError(f"{at} failed: {_said(error)}; look at its log")


def _refusal(error: openai.APIStatusError, *, at: str, model: str) -> PolicyError:
    said = f"{error.status_code}: {_said(error)}"
    if _is_context(error):
        return ContextFull(f"the context is longer than {model} takes ({said})")
    match error.status_code:
        case 401 | 403:  # what the server says may quote the key
            return PolicyError(
                f"{at} refuses the key ({error.status_code}); set CAIRN_API_KEY to one that may use {model}"
            )
        case 404:
            return PolicyError(
                f"{at} does not know the model {model!r} or the path ({said}); name another --model, or see whether"
                " --base-url should end in /v1"
            )
        case 429:
            return PolicyError(f"{at} takes no more requests now ({said}); wait, or see to its quota")
        case 500:  # what some servers say where a template or a grammar does not take the request
            return RequestRefused(f"{at} failed ({said}); look at its log")
        case status if status >= 500:
            return PolicyError(f"{at} failed ({said}); look at its log")
        case _:
            return RequestRefused(f"{at} refuses the request ({said}); see whether {model} is a chat model")


def refused_parameter(error: Exception, sent: dict[str, Any]) -> str | None:
    """The name of the parameter that a server does not take, if that is what it says and it can be left out."""
    if not isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError) or _is_context(error):
        return None
    optional = [name for name in sent if name not in _NEEDED]
    if error.param in optional:
        return error.param
    said = _said(error)
    return next((name for name in optional if _names(said, name)), None)


def _names(said: str, name: str) -> bool:
    quoted = any(f"{quote}{name}{quote}" in said for quote in "'\"`")
    return quoted or any(f"{what}: {name}" in said for what in ("parameter", "supplied"))


def _is_context(error: openai.APIStatusError) -> bool:
    return error.code == "context_length_exceeded" or "context length" in str(error).lower()


def _said(error: Exception) -> str:
    text = " ".join((error.message if isinstance(error, openai.APIError) else str(error)).split())
    return text if len(text) <= _SAID else text[:_SAID] + "…"
