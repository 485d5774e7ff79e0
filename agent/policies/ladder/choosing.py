"""Which rungs a server's model gets: what the server offers is looked at, then the model takes the exam."""

import asyncio
from http import HTTPStatus
from typing import Final, Literal

from agent.errors import RequestRefused
from agent.outbound.llm import LlmClient
from agent.policies.ladder import exam
from agent.policies.ladder.memory import recall, remember
from agent.policies.ladder.policy import RUNGS, LadderPolicy, Rung
from agent.policies.ladder.prompts import SearchingRung
from agent.policies.openai_abilities import Abilities
from agent.sanitize.text import shortened

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
    if wanted == "auto":
        rung, why = await _found(endpoint, abilities, fresh=fresh)
    else:
        rung, why = _pinned(wanted)
    return LadderPolicy(
        endpoint,
        rungs=RUNGS[RUNGS.index(rung) :] if wanted == "auto" else tuple(dict.fromkeys((rung, "plain"))),
        why=why,
        context_tokens=abilities.context_tokens or CONTEXT_TOKENS,
        special_tokens=special_tokens,
    )


def _pinned(wanted: RungWanted) -> tuple[Rung, str]:
    return next(rung for rung in RUNGS if rung == wanted), "the settings say so"


async def _found(endpoint: LlmClient, abilities: Abilities, *, fresh: bool) -> tuple[Rung, str]:
    model = (endpoint.base_url, endpoint.model, abilities.owner, str(abilities.context_tokens))
    known = None if fresh else await asyncio.to_thread(recall, *model)
    if known:
        return known.rung, known.why
    rung, why, sure = await _examined(endpoint)
    if sure:
        await asyncio.to_thread(remember, rung, why, *model)
    return rung, why


async def _examined(endpoint: LlmClient) -> tuple[Rung, str, bool]:
    """The best rung, why it is this one, and whether the model is the reason: a server may fail for a moment."""
    failed: list[str] = []
    sure = True
    for rung in _EXAMINED:
        try:
            why = await exam.failing(endpoint, rung)
        except RequestRefused as error:
            why = shortened(str(error), 200)
            sure = sure and error.status != HTTPStatus.INTERNAL_SERVER_ERROR
        if not why:
            return rung, "; ".join(["the model passed its exam", *failed]), sure
        failed.append(f"{rung}: {why}")
    return "plain", "; ".join(failed), sure
