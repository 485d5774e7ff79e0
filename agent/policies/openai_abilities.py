"""What a server behind an OpenAI-compatible endpoint can do: token ids through completions, going on inside a turn.

Read from what it lists, from Ollama's own API, and from at most three small requests, of one or a few tokens each.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, cast

from agent.outbound.completions import OddReply, first_choice, read_chat
from agent.outbound.llm import LlmClient
from agent.outbound.numbers import count

Continues = Literal["auto", "yes", "no"]


@dataclass(frozen=True)
class Continuation:
    """How a request makes a server go on with the assistant's last message, instead of beginning another one."""

    request: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Members of the request."""
    message: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Members of the last message."""


OLLAMA: Final = "library"
"""What Ollama writes into `owned_by`."""
LLAMA_CPP: Final = "llamacpp"
_LATEST: Final = ":latest"
"""Ollama's name for a model that is named without a tag."""
OLLAMA_CONTEXT: Final = 4096
"""Tokens with which it loads a model where nothing else is set."""
_NUM_CTX: Final = re.compile(r"\bnum_ctx\s+(\d{1,8})\b")

_FINAL: Final = Continuation({"continue_final_message": True, "add_generation_prompt": False})
_PREFIX: Final = Continuation(message={"prefix": True})
_BARE: Final = Continuation()

CONTINUATIONS: Final[Mapping[str, Continuation]] = {
    "vllm": _FINAL,
    "sglang": _FINAL,
    LLAMA_CPP: _FINAL,  # older ones know no such member, and go on of themselves
    OLLAMA: _BARE,  # whether it goes on is the model's template's affair
    "mistralai": _PREFIX,
    "deepseek": _PREFIX,  # under its address that ends in /beta
}
"""`owned_by` in the list of models → how to go on. Others are not requested to, unless a setting says so."""

_BEGUN: Final = "alpha beta gamma del"
_REPEAT: Final = "Repeat these words exactly, and nothing else: alpha beta gamma delta epsilon."
_PROMPT: Final = [0, 0]
"""Two ids that every vocabulary has."""


@dataclass(frozen=True)
class Abilities:
    """What is known of a server and its model."""

    owner: str = ""
    others: tuple[str, ...] = ()
    """The models that it lists, if it lists some but not this one."""
    context_tokens: int | None = None
    """The longest context; None where it does not report it."""
    folder: Path | None = None
    """Where the model lies, if that is on this machine."""


async def look(endpoint: LlmClient) -> Abilities:
    """Read the server's list of models; samples nothing.

    Raises:
        PolicyError: there is no server, or it refuses the key.
    """
    rows = await endpoint.models()
    names = [name for row in rows if isinstance(name := row.get("id"), str)]
    named = [row for row in rows if row.get("id") in (endpoint.model, f"{endpoint.model}{_LATEST}")]
    alone = rows if len(rows) == 1 else []
    row: dict[str, Any] = (named or alone or [{}])[0]
    owner = str(row.get("owned_by", ""))[:100].lower()
    return Abilities(
        owner=owner,
        others=() if named else tuple(names),
        context_tokens=await _context_tokens(endpoint, row, owner),
        folder=_folder(row.get("root")),
    )


async def _context_tokens(endpoint: LlmClient, row: dict[str, Any], owner: str) -> int | None:
    """The longest context: servers have names of their own for it, and some say it elsewhere."""
    meta = _object(row.get("meta"))
    said = [row.get(name) for name in ("max_model_len", "loaded_context_length", "context_length")]
    if stated := next(filter(None, map(count, [*said, meta.get("n_ctx")])), None):
        return stated
    if owner == OLLAMA:
        return await _of_ollama(endpoint)
    if owner == LLAMA_CPP:
        slot = _object((await endpoint.native("/props") or {}).get("default_generation_settings"))
        return count(slot.get("n_ctx")) or count(meta.get("n_ctx_train"))
    return count(meta.get("n_ctx_train"))


async def _of_ollama(endpoint: LlmClient) -> int | None:
    """The context of a model at Ollama, which lists none: of the loaded one, else what it will be loaded with.

    A longer prompt is cut there without a word, so what the model could take is of no use.
    """
    if said := await _of_loaded(endpoint):
        return said
    shown = await endpoint.native("/api/show", {"model": endpoint.model}) or {}
    if set_ := _NUM_CTX.search(str(shown.get("parameters", ""))[:10_000]):
        return int(set_[1])
    # Its default is the server's to say, once the model is loaded; the first turn would load it in any case.
    await endpoint.native("/api/generate", {"model": endpoint.model, "stream": False})
    return await _of_loaded(endpoint) or OLLAMA_CONTEXT


async def _of_loaded(endpoint: LlmClient) -> int | None:
    listed: Any = (await endpoint.native("/api/ps") or {}).get("models")
    loaded = [_object(row) for row in cast(list[Any], listed)] if isinstance(listed, list) else []
    names = {endpoint.model, f"{endpoint.model}{_LATEST}"}
    mine = (row for row in loaded if names & {row.get("model"), row.get("name")})
    return next(filter(None, (count(row.get("context_length")) for row in mine)), None)


def _object(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


async def gives_ids(endpoint: LlmClient) -> bool:
    """Whether it takes ids through completions, and gives back those that it samples with log-probabilities."""
    answer = await endpoint.try_once(
        "completions", prompt=_PROMPT, max_tokens=1, temperature=0, logprobs=0, return_token_ids=True
    )
    choice = _choice(answer)
    ids, reported = choice.get("token_ids"), choice.get("logprobs")
    logprobs = cast(dict[str, Any], reported).get("token_logprobs") if isinstance(reported, dict) else None
    return _is_one(ids) and _is_one(logprobs) and choice.get("prompt_token_ids", _PROMPT) == _PROMPT


async def continuation_of(endpoint: LlmClient, abilities: Abilities, wanted: Continues) -> Continuation | None:
    """How the server goes on inside the assistant's turn; None where it does not, or must not.

    A server that is known to can still refuse, for want of a fitting chat template: one token is requested of it.
    Ollama takes the request in any case, so what it says is looked at.
    """
    known = CONTINUATIONS.get(abilities.owner)
    if wanted == "no" or (wanted == "auto" and known is None):
        return None
    continuation = known or _BARE
    if wanted == "yes":
        return continuation
    messages = [
        {"role": "user", "content": _REPEAT},
        {"role": "assistant", "content": _BEGUN, **continuation.message},
    ]
    looked_at = continuation is _BARE
    answer = await endpoint.try_once(
        "chat", messages=messages, max_tokens=4 if looked_at else 1, temperature=0, **continuation.request
    )
    if answer is None:
        return None
    try:
        said = read_chat(answer).content
    except OddReply:
        return None
    return continuation if not looked_at or said.startswith("ta") else None


def _choice(answer: dict[str, Any] | None) -> dict[str, Any]:
    try:
        return first_choice(answer or {}) or {}
    except OddReply:
        return {}


def _folder(root: object) -> Path | None:
    """The model's own folder, where the server names one and it is on this machine."""
    if not isinstance(root, str) or not root.startswith("/"):
        return None
    try:
        return Path(root) if (Path(root) / "tokenizer.json").is_file() else None
    except (OSError, ValueError):  # no path that can be, or one that may not be looked at
        return None


def _is_one(values: Any) -> bool:
    return isinstance(values, list) and len(cast(list[Any], values)) == 1
