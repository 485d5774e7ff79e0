"""The filters on a little world, exact, over many questions: list by list, so that other processes can do it.

Each of them reads the world itself.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import Final, Literal

from agent.errors import SetupError
from agent.parallel.spread import Spread
from agent.world import Question, World
from agent.world.records import Document
from train.data.filters import KNOWN, ONE_DOCUMENT, ONE_SOURCE, UNSETTLED
from train.data.inputs import WorldInput
from train.data.records import Candidate
from train.world.reader import answer_from
from train.world.shards import is_sound, searched

OTHERWISE: Final = "the rest of the world says otherwise"
SPARE: Final = "fewer of its documents give the answer"
NOT_FOUND: Final = "no search of its plan finds all of its documents"

Reader = Callable[[Sequence[Document], Question], str | None]
"""What follows from documents alone."""


class ExactFilters:
    """The filters of one part of a world.

    A perfect reader says what documents answer, and what fewer of them do. Beside it is checked that nothing else in
    the world says otherwise, and that the gold plan's searches find the gold documents: a policy cannot learn from what
    no search finds.
    """

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


Name = Literal["by heart", "together", "alone", "found"]
Checked = tuple[str, Candidate]
"""Why a question is dropped ("" where it is not), and the question; `found` marks the trap of its plan."""
Filters = Mapping[int, ExactFilters]
"""By the part of the world."""
_LIST: Final = 32
"""Questions that a worker looks at before it comes back."""


@dataclass(frozen=True)
class Which:
    """A world, as another process can find it."""

    world: str
    sha256: str
    diverse: bool


def checking(
    spread: Spread, inputs: WorldInput, *, diverse: bool
) -> Callable[[Name, Sequence[Candidate]], Iterator[Checked]]:
    """What checks questions, in their order.

    Args:
        spread: who checks.
        inputs: the world that they are about.
        diverse: whether all documents of one source together must not suffice.
    """
    if spread.here:
        filters = filters_of(inputs, diverse=diverse)
        return lambda name, candidates: map(partial(_check, filters, name), candidates)
    which = Which(inputs.anywhere, inputs.sha256, diverse)

    def elsewhere(name: Name, candidates: Sequence[Candidate]) -> Iterator[Checked]:
        lists = (candidates[at : at + _LIST] for at in range(0, len(candidates), _LIST))
        return chain.from_iterable(spread.mapped(partial(check_list, which, name), lists))

    return elsewhere


def filters_of(inputs: WorldInput, *, diverse: bool) -> Filters:
    return {part: ExactFilters(world, diverse=diverse) for part, world in inputs.parts.items()}


def check_list(which: Which, name: Name, candidates: Sequence[Candidate]) -> list[Checked]:
    """Check here. It is what a worker runs.

    Raises:
        SetupError: there is no such world here, or another one.
    """
    filters = _filters(which)
    return [_check(filters, name, candidate) for candidate in candidates]


@lru_cache(maxsize=1)
def _filters(which: Which) -> Filters:
    inputs = WorldInput(which.world)
    if inputs.sha256 != which.sha256:
        raise SetupError(f"a worker found another world at {which.world}; give every machine the same one")
    return filters_of(inputs, diverse=which.diverse)


def _check(filters: Filters, name: Name, candidate: Candidate) -> Checked:
    assert candidate.plan is not None
    exact = filters[candidate.plan.shard]
    match name:
        case "by heart":
            return exact.by_heart(candidate), candidate
        case "together":
            return exact.together(candidate), candidate
        case "alone":
            return exact.alone(candidate), candidate
        case "found":
            why, plan = exact.found(candidate)
            return why, candidate.model_copy(update={"plan": plan})
