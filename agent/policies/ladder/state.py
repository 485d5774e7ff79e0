"""What was said in one rollout, in the form of no rung: so a rollout can change its rung in the middle."""

import re
from dataclasses import dataclass, field, replace
from typing import Final

from agent.policies.ladder.moves import SearchMove

_PASSAGE: Final = re.compile(r"^\[(\d{1,5})\] ", re.MULTILINE)


@dataclass(frozen=True)
class SearchedRound:
    """One search, and what came back: numbered passages, or a sentence."""

    search: SearchMove
    found: str


@dataclass(frozen=True)
class State:
    """A question, what was searched for it, and whether the answer must come now."""

    question: str
    history: tuple[tuple[str, str], ...] = ()
    date: str = ""
    rounds: tuple[SearchedRound, ...] = field(default=())
    must_answer: bool = False

    def searching(self, move: SearchMove) -> "State":
        return replace(self, rounds=(*self.rounds, SearchedRound(move, "")))

    def finding(self, text: str) -> "State":
        """With what the environment said of the last search."""
        if not self.rounds:
            return self
        last = self.rounds[-1]
        found = f"{last.found}\n{text}".strip()
        return replace(self, rounds=(*self.rounds[:-1], SearchedRound(last.search, found)))

    @property
    def passages(self) -> str:
        """Everything that was found, in its order."""
        return "\n".join(each.found for each in self.rounds if each.found)

    @property
    def searched(self) -> frozenset[str]:
        """Every query until now, folded."""
        return frozenset(query.casefold() for each in self.rounds for query in each.search.queries)


def numbered(text: str) -> dict[int, str]:
    """The passages in a text by their numbers; what continues on further lines belongs to the one before."""
    starts = list(_PASSAGE.finditer(text))
    ends = [*(start.start() for start in starts[1:]), len(text)]
    return {int(start[1]): text[start.end() : end].strip() for start, end in zip(starts, ends, strict=False)}
