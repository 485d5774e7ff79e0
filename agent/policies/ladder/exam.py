"""Which rung a model can stand on: a question about invented people that takes two searches, put to it on each rung.

What a server offers says little of what its model can do: a small model calls tools in the right form and searches for
nothing of use. So the form alone is no reason for a rung.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from agent.outbound.llm import LlmClient
from agent.policies.ladder.moves import AnswerMove, Move, SearchMove
from agent.policies.ladder.prompts import RUNG_PROMPTS, SearchingRung
from agent.policies.ladder.reading import move_in
from agent.policies.ladder.replies import NoMove, ask
from agent.policies.ladder.state import SearchedRound, State

TOKENS: Final = 200
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


async def failing(endpoint: LlmClient, rung: SearchingRung) -> str:
    """Why the model cannot stand on a rung; empty where it can.

    Raises:
        PolicyError: there is no server, or it failed.
    """
    prompt = RUNG_PROMPTS[rung]
    for task in TASKS:
        messages, members = prompt.request(task.state)
        reply = await ask(endpoint, messages, max_tokens=TOKENS, temperature=0, **members)
        try:
            move = move_in(reply)
        except NoMove as why:
            return str(why)
        if not task.passed(move):
            return task.failed
    return ""
