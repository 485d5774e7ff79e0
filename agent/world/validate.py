"""Checks of a world: are its questions sound, is their mix what it should be, and is none of it given away for free?"""

from collections.abc import Iterator, Sequence

from agent.evidence import Frozen
from agent.world.names import Split, split_of
from agent.world.reader import answer_from, first_passage_answer
from agent.world.records import Question
from agent.world.world import World

LEAST_SHARES = {
    "chain1": 0.15,
    "chain2": 0.15,
    "chain3": 0.15,
    "comparison": 0.10,
    "intersection": 0.10,
    "choice": 0.10,
}
LEAST_REVEALED, LEAST_TRAPS, LEAST_BEYOND_WEB = 0.40, 0.25, 0.20
MOST_FIRST_PASSAGE = 0.35


class Check(Frozen):
    """One bound, and how the world stands to it."""

    name: str
    value: float
    bound: str
    holds: bool


def validate(world: World, split: Split) -> list[Check]:
    """Check a world that has questions.

    Raises:
        ValueError: it has none.
    """
    if not world.questions:
        raise ValueError("a world without questions has nothing to validate")
    return [*_soundness(world), *_mix(world.questions), *_baselines(world), _names(world, split)]


def _share(name: str, questions: Sequence[Question], holds: Sequence[bool], *, least: float) -> Check:
    share = sum(holds) / len(questions)
    return Check(name=name, value=share, bound=f"≥ {least:.2f}", holds=share >= least)


def _soundness(world: World) -> Iterator[Check]:
    """Each question follows from its gold passages, and from no fewer of them."""
    solved: list[bool] = []
    needed: list[bool] = []
    for question in world.questions:
        gold = [world.document(key) for key in question.supporting]
        solved.append(answer_from(gold, question) in question.answers)
        needed.append(all(answer_from([d for d in gold if d is not one], question) is None for one in gold))
    yield _share("answered by its gold passages", world.questions, solved, least=1.0)
    yield _share("not answered without one of them", world.questions, needed, least=1.0)


def _mix(questions: Sequence[Question]) -> Iterator[Check]:
    for kind, least in LEAST_SHARES.items():
        yield _share(f"type {kind}", questions, [q.type == kind for q in questions], least=least)
    yield _share("needs a name that a search reveals", questions, [q.reveals for q in questions], least=LEAST_REVEALED)
    yield _share("namesake or outdated page found", questions, [q.trap for q in questions], least=LEAST_TRAPS)
    yield _share("not from web pages alone", questions, [not q.web_only for q in questions], least=LEAST_BEYOND_WEB)


def _baselines(world: World) -> Iterator[Check]:
    right = [first_passage_answer(world, question) in question.answers for question in world.questions]
    share = sum(right) / len(right)
    bound = MOST_FIRST_PASSAGE
    yield Check(name="first passage, perfectly read", value=share, bound=f"≤ {bound:.2f}", holds=share <= bound)


def _names(world: World, split: Split) -> Check:
    """Invented words belong to one split for good; a word of another split would be a leak."""
    strangers = {word for word in world.invented_words if split_of(word) != split}
    return Check(
        name=f"words of another split than {split}", value=float(len(strangers)), bound="= 0", holds=not strangers
    )
