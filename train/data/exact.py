"""The two filters on a little world, exactly: a perfect reader says what documents answer, and what fewer of them do.

Beside them it is checked that nothing else in the world says otherwise, and that the gold plan's searches find the
gold documents: a policy cannot learn from what no search finds.
"""

from collections.abc import Callable, Sequence
from typing import Final

from agent.world import Question, World
from agent.world.records import Document
from train.data.filters import KNOWN, ONE_DOCUMENT, ONE_SOURCE, UNSETTLED
from train.data.records import Candidate
from train.world.reader import answer_from
from train.world.shards import is_sound, searched

OTHERWISE: Final = "the rest of the world says otherwise"
SPARE: Final = "fewer of its documents give the answer"
NOT_FOUND: Final = "no search of its plan finds all of its documents"

Reader = Callable[[Sequence[Document], Question], str | None]
"""What follows from documents alone."""


class ExactFilters:
    """The filters of one part of a world."""

    def __init__(self, world: World, *, diverse: bool, read: Reader = answer_from) -> None:
        """Take what the questions are about.

        Args:
            world: one part of a world.
            diverse: whether all documents of one source together must not suffice.
            read: a perfect reader.
        """
        self._world, self._diverse, self._read = world, diverse, read

    def by_heart(self, candidate: Candidate) -> str:
        """What is the same in every world can be known by heart."""
        documents = [self._world.document(key) for key in candidate.supporting]
        return KNOWN if all("-known-" in document.id for document in documents) else ""

    def together(self, candidate: Candidate) -> str:
        question = _plan(candidate)
        if self._read([self._world.document(key) for key in candidate.supporting], question) not in question.answers:
            return UNSETTLED
        return "" if self._read(self._about(question), question) in question.answers else OTHERWISE

    def alone(self, candidate: Candidate) -> str:
        """No document of the world, no source of it, and no smaller part of the gold gives the answer."""
        question = _plan(candidate)
        about = self._about(question)
        if any(self._read([document], question) in question.answers for document in about):
            return ONE_DOCUMENT
        for source in sorted({document.source for document in about}) if self._diverse else ():
            own = [document for document in about if document.source == source]
            if self._read(own, question) in question.answers:
                return ONE_SOURCE
        return "" if is_sound(self._world, question) else SPARE

    def found(self, candidate: Candidate) -> tuple[str, Question]:
        """Why it cannot be found, and the question with its trap marked."""
        checked = searched(self._world, _plan(candidate))
        return (NOT_FOUND, _plan(candidate)) if checked is None else ("", checked)

    def _about(self, question: Question) -> list[Document]:
        return self._world.about({lookup.subject for lookups in question.plan for lookup in lookups})


def _plan(candidate: Candidate) -> Question:
    assert candidate.plan is not None
    return candidate.plan
