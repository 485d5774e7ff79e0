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
OLLAMA_CONTEXT: Final = 4096
"""Tokens with which it loads a model where nothing else is set."""
_NUM_CTX: Final = re.compile(r"\bnum_ctx\s+(\d{1,8})\b")

_FINAL: Final = Continuation({"continue_final_message": True, "add_generation_prompt": False})
_PREFIX: Final = Continuation(message={"prefix": True})
_BARE: Final = Continuation()

CONTINUATIONS: Final[Mapping[str, Continuation]] = {
    "vllm": _FINAL,
    "sglang": _FINAL,
    "llamacpp": _FINAL,  # older ones know no such member, and go on of themselves
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
    named = [row for row in rows if row.get("id") == endpoint.model]
    alone = rows if len(rows) == 1 else []
    row: dict[str, Any] = (named or alone or [{}])[0]
    owner = str(row.get("owned_by", ""))[:100].lower()
    return Abilities(
        owner=owner,
        others=() if named else tuple(names),
        context_tokens=_context_tokens(row) or (await _of_ollama(endpoint) if owner == OLLAMA else None),
        folder=_folder(row.get("root")),
    )


def _context_tokens(row: dict[str, Any]) -> int | None:
    """Servers have names of their own for it: vLLM, LM Studio, OpenRouter; llama.cpp's is one level down."""
    meta: Any = row.get("meta")
    inner = cast(dict[str, Any], meta) if isinstance(meta, dict) else {}
    said = [row.get(name) for name in ("max_model_len", "loaded_context_length", "context_length")]
    return next(filter(None, map(count, [*said, inner.get("n_ctx"), inner.get("n_ctx_train")])), None)


async def _of_ollama(endpoint: LlmClient) -> int | None:
    """The context of a model at Ollama, which lists none: of the loaded one, else what it will be loaded with.

    A longer prompt is cut there without a word, so what the model could take is of no use.
    """
    running = await endpoint.native("/api/ps") or {}
    listed: Any = running.get("models")
    rows = cast(list[Any], listed) if isinstance(listed, list) else []
    loaded = [cast(dict[str, Any], row) for row in rows if isinstance(row, dict)]
    mine = [row for row in loaded if endpoint.model in (row.get("model"), row.get("name"))]
    if said := next(filter(None, (count(row.get("context_length")) for row in mine)), None):
        return said
    shown = await endpoint.native("/api/show", {"model": endpoint.model}) or {}
    set_ = _NUM_CTX.search(str(shown.get("parameters", ""))[:10_000])
    return int(set_[1]) if set_ else OLLAMA_CONTEXT


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
