"""Which rungs a server's model gets: what the server offers is looked at, then the model takes the exam."""

import asyncio
import hashlib
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final, Literal

from platformdirs import user_cache_path
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.errors import RequestRefused, SetupError
from agent.files.own import private_file, private_folder, read_bounded
from agent.outbound.llm import LlmClient
from agent.policies.ladder.moves import AnswerMove, Move, SearchMove
from agent.policies.ladder.policy import RUNGS, LadderPolicy, Rung
from agent.policies.ladder.prompts import RUNG_PROMPTS, SearchingRung
from agent.policies.ladder.reading import move_in
from agent.policies.ladder.replies import REASONING_TOKENS, Asker, NoMove
from agent.policies.ladder.state import SearchedRound, State
from agent.policies.openai_abilities import Abilities
from agent.sanitize.text import shortened

_EXAM_TOKENS: Final = 200
_QUESTION: Final = State("Where was the director of the film Aurora Falls born?")
_FIRST: Final = SearchMove(("director of Aurora Falls",))
_FILM: Final = (
    "[1] Aurora Falls — Aurora Falls is a 1987 drama film that was directed by Lina Orr.\n"
    "[2] Falls of Aurora — The Falls of Aurora are a waterfall in Oregon."
)
_SECOND: Final = SearchMove(("Lina Orr birthplace",))
_PERSON: Final = "[3] Lina Orr — Lina Orr (born 4 May 1950 in Trieste) is an Italian film director."
_AFTER_ONE: Final = State(_QUESTION.question, rounds=(SearchedRound(_FIRST, _FILM),))
_AFTER_TWO: Final = State(_QUESTION.question, rounds=(SearchedRound(_FIRST, _FILM), SearchedRound(_SECOND, _PERSON)))

REMEMBERED_DAYS: Final = 7
"""After which a model takes its exam again: another one may be served under the same name."""
_REMEMBERED_BYTES: Final = 16 * 1024
_EXAM: Final = 2
"""Of the exam and the prompts; another number makes what is remembered void."""

RungWanted = Literal["auto", "protocol", "tools", "json", "words", "plain"]
CONTEXT_TOKENS: Final = 8192
"""Where the server does not say how long a context may be; many are started with little."""
_EXAMINED: Final[tuple[SearchingRung, ...]] = ("tools", "json", "words")


async def ladder_of(
    endpoint: LlmClient,
    abilities: Abilities,
    wanted: RungWanted,
    *,
    special_tokens: tuple[str, ...] = (),
    fresh: bool = False,
) -> LadderPolicy:
    """The ladder for a model, from the rung that it passes or that the settings name.

    Args:
        endpoint: of its server.
        abilities: of the server.
        wanted: as the settings say.
        special_tokens: of the model's tokenizer, where that is at hand.
        fresh: the model takes the exam also where it is remembered how it did.

    Raises:
        PolicyError: there is no server, or it takes no requests now.
    """
    asker = Asker(endpoint)
    if wanted == "auto":
        rung, why = await _found(asker, abilities, fresh=fresh)
    else:
        rung, why = _pinned(wanted)
    return LadderPolicy(
        asker,
        rungs=RUNGS[RUNGS.index(rung) :] if wanted == "auto" else tuple(dict.fromkeys((rung, "plain"))),
        why=why,
        context_tokens=abilities.context_tokens or CONTEXT_TOKENS,
        special_tokens=special_tokens,
    )


def _pinned(wanted: RungWanted) -> tuple[Rung, str]:
    return next(rung for rung in RUNGS if rung == wanted), "the settings say so"


async def _found(asker: Asker, abilities: Abilities, *, fresh: bool) -> tuple[Rung, str]:
    endpoint = asker.endpoint
    model = (endpoint.base_url, endpoint.model, abilities.owner, str(abilities.context_tokens))
    known = None if fresh else await asyncio.to_thread(recall, *model)
    if known:
        asker.reasons = known.reasons
        return known.rung, known.why
    room = min(REASONING_TOKENS, (abilities.context_tokens or CONTEXT_TOKENS) // 2)
    rung, why, sure = await _examined(asker, room=room)
    if sure:
        await asyncio.to_thread(remember, rung, why, *model, reasons=asker.reasons)
    return rung, why


async def _examined(asker: Asker, *, room: int) -> tuple[Rung, str, bool]:
    """The best rung, why it is this one, and whether the model is the reason: a server may fail for a moment."""
    failed: list[str] = []
    sure = True
    for rung in _EXAMINED:
        try:
            why = await _failing(asker, rung, room=room)
        except RequestRefused as error:
            why = shortened(str(error), 200)
            sure = sure and error.status != HTTPStatus.INTERNAL_SERVER_ERROR
        if not why:
            return rung, "; ".join(["the model passed its exam", *failed]), sure
        failed.append(f"{rung}: {why}")
    return "plain", "; ".join(failed), sure


class Remembered(BaseModel):
    """What an exam found.

    It is kept on disk: an exam takes a model on a laptop half a minute. A file that is damaged, strange or too old is
    as good as none, and a folder that cannot be written costs only the exam.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rung: Rung
    why: str = Field(max_length=4000)
    reasons: bool = False
    """Whether the model reasons before it speaks."""
    at: float
    """When, as seconds since 1970."""


def recall(*model: str) -> Remembered | None:
    """What is remembered of a model; None where there is nothing, or nothing that is recent.

    Args:
        model: everything that distinguishes it from others: address, name, server.
    """
    try:
        found = Remembered.model_validate_json(read_bounded(_file(model), most=_REMEMBERED_BYTES))
    except (OSError, ValidationError):
        return None
    return found if 0 <= time.time() - found.at < REMEMBERED_DAYS * 86_400 else None


def remember(rung: Rung, why: str, *model: str, reasons: bool = False) -> None:
    """Keep it for this user alone. A file that is cut off half-way counts as none, so it is written in place."""
    said = Remembered(rung=rung, why=why[:4000], reasons=reasons, at=time.time()).model_dump_json()
    path = _file(model)
    with suppress(OSError, SetupError):
        private_folder(path.parent)
        private_file(path).write_text(said, encoding="utf-8")


def _file(model: tuple[str, ...]) -> Path:
    name = hashlib.sha256("\n".join((str(_EXAM), *model)).encode()).hexdigest()
    return user_cache_path("cairn", appauthor=False) / "rungs" / f"{name[:32]}.json"


@dataclass(frozen=True)
class _Task:
    state: State
    passed: Callable[[Move], bool]
    failed: str


def _searches_for(word: str) -> Callable[[Move], bool]:
    return lambda move: isinstance(move, SearchMove) and any(word in query.casefold() for query in move.queries)


def _answers(word: str) -> Callable[[Move], bool]:
    return lambda move: isinstance(move, AnswerMove) and word in move.text.casefold() and len(move.text) < 80


TASKS: Final = (
    _Task(_QUESTION, _searches_for("aurora"), "it does not search for what the question wants"),
    _Task(_AFTER_ONE, _searches_for("orr"), "it does not search again by the name that it found"),
    _Task(_AFTER_TWO, _answers("trieste"), "it does not answer from what it found"),
)


async def _failing(asker: Asker, rung: SearchingRung, *, room: int) -> str:
    """Why the model cannot stand on a rung; empty where it can.

    The exam is a question about invented people that takes two searches. What a server offers says little of what its
    model can do: a small model calls tools in the right form and searches for nothing of use. So the form alone is no
    reason for a rung.

    Raises:
        PolicyError: there is no server, or it failed.
    """
    prompt = RUNG_PROMPTS[rung]
    for task in TASKS:
        messages, members = prompt.request(task.state)
        reply = await asker.ask(messages, max_tokens=_EXAM_TOKENS, room=room, temperature=0, **members)
        try:
            move = move_in(reply)
        except NoMove as why:
            return str(why)
        if not task.passed(move):
            return task.failed
    return ""
