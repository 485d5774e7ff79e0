"""What can be had for nothing: reading the first passage perfectly, guessing without a search, and never answering."""

from collections import Counter

from agent.world.records import Question
from agent.world.world import World
from train.world.reader import first_passage_answer


class Baselines:
    """Adds up how often each is right. Well-known questions are counted apart: there, knowing by heart is no leak."""

    def __init__(self) -> None:
        self._right: Counter[str] = Counter()
        self._total: Counter[str] = Counter()

    def add(self, world: World, question: Question) -> None:
        self._count("always_abstain", right=question.unanswerable)
        if question.unanswerable:
            return
        suffix = "_well_known" if question.well_known else ""
        self._count(f"first_passage{suffix}", right=first_passage_answer(world, question) in question.answers)
        self._count(f"closed_book{suffix}", right=guess(question) in question.answers)

    def _count(self, name: str, *, right: bool) -> None:
        self._total[name] += 1
        self._right[name] += right

    def shares(self) -> dict[str, float]:
        """Baseline → share of right answers; 0 where there was no question."""
        names = sorted({*self._total, "first_passage", "closed_book", "always_abstain"})
        return {name: self._right[name] / max(1, self._total[name]) for name in names}


def guess(question: Question) -> str:
    """The best guess from the question alone: the first of the names that it offers, the commonest number."""
    if question.type == "count":
        return "2"
    if question.type == "choice" or (question.type == "comparison" and not question.reveals):
        return question.candidates[0]
    return ""
