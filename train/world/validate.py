"""Checks of a world: are its questions sound, is their mix what it should be, and is none of it given away for free?

A world of many shards is checked shard by shard: a `WorldTally` adds them up, and only one is in memory.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Final, get_args

from agent.errors import SetupError
from agent.evidence import Frozen
from agent.world.difficulty import Difficulty
from agent.world.names import Split, split_of
from agent.world.records import Document, Question, QuestionType
from agent.world.store import folder_of, read_card, read_shards
from agent.world.world import World
from train.world.baselines import Baselines
from train.world.questions import counts_of, mix_of
from train.world.reader import answer_from
from train.world.shards import Drawing, make_shard, searched

TYPES: tuple[QuestionType, ...] = get_args(QuestionType)
_OF_EACH = 40
"""Questions of each type from one world: more would repeat the same facts."""

Show = Callable[[int, int], None]
"""Gets how many questions are checked, of how many."""
LEAST_REVEALED, LEAST_TRAPS, LEAST_BEYOND_WEB = 0.40, 0.25, 0.20
MOST_FIRST_PASSAGE, MOST_CLOSED_BOOK = 0.35, 0.15
ENOUGH: Final = 100
"""Of fewer questions, shares and baselines are reported without a bound: they say too little."""
_TRAINING_SEEDS = 4


class WorldCheck(Frozen):
    """One bound, and how the world stands to it."""

    name: str
    value: float
    bound: str
    holds: bool


Outcome = tuple[list[WorldCheck], dict[str, int]]
"""The checks, and how many questions of each type they are about."""


def validate(world: World, split: Split, difficulty: Difficulty | None = None) -> list[WorldCheck]:
    """Check a world that is small enough to be held as a whole.

    Args:
        world: with questions.
        split: whose names it may use.
        difficulty: with which it was made; None for test-v1, of which no mix is known.

    Raises:
        ValueError: it has no questions.
    """
    tally = WorldTally(split)
    tally.add(world)
    return tally.checks(difficulty)


class WorldTally:
    """Adds up what holds, over one shard after the other."""

    def __init__(self, split: Split) -> None:
        self._split: Split = split
        self._held: Counter[str] = Counter()
        self._checked: Counter[str] = Counter()
        self.types: Counter[str] = Counter()
        self._strangers: set[str] = set()
        self._trained: set[str] = set()
        self._baselines = Baselines()

    def add(self, world: World) -> None:
        """Check every question of a shard that holds its gold passages."""
        for question in world.questions:
            self.types[question.type] += 1
            for name, holds in (*_soundness(world, question), *_kind(question)):
                self._checked[name] += 1
                self._held[name] += holds
            self._baselines.add(world, question)
        words = world.invented_words
        self._strangers |= {word for word in words if split_of(word) != self._split}
        if self._split == "test":
            self._trained |= words & _training_words()

    @property
    def questions(self) -> int:
        return self.types.total()

    def checks(self, difficulty: Difficulty | None = None, *, mixed: bool = True) -> list[WorldCheck]:
        """How it all stands; `mixed` also asks whether the types come in the shares that were promised.

        Raises:
            ValueError: there was no question.
        """
        if not self.questions:
            raise ValueError("a world without questions has nothing to validate")
        return [
            *(self._share(name, least=1.0) for name in SOUND if self._checked[name]),
            *(self._mix(difficulty) if mixed else ()),
            *self._given_away(),
            *self._names(),
        ]

    def _share(self, name: str, *, least: float) -> WorldCheck:
        share = self._held[name] / self._checked[name]
        is_sound = share >= least or (least < 1 and self.questions < ENOUGH)
        return WorldCheck(name=name, value=share, bound=f"≥ {least:.2f}", holds=is_sound)

    def _mix(self, difficulty: Difficulty | None) -> Iterator[WorldCheck]:
        total = self.questions
        for kind, count in counts_of(total, mix_of(difficulty)).items() if difficulty else ():
            share, holds = self.types[kind] / total, self.types[kind] == count
            yield WorldCheck(name=f"type {kind}", value=share, bound=f"= {count / total:.3f}", holds=holds)
        yield self._share(REVEALS, least=LEAST_REVEALED if difficulty is None or difficulty.hops > 1 else 0)
        hard = difficulty is None or (difficulty.staleness >= 0.5 and difficulty.namesakes >= 0.2)
        yield self._share(TRAP, least=LEAST_TRAPS if hard else 0)
        yield self._share(BEYOND, least=LEAST_BEYOND_WEB)

    def _given_away(self) -> Iterator[WorldCheck]:
        shares = self._baselines.shares()
        bounds = (
            ("first passage, perfectly read", shares["first_passage"], MOST_FIRST_PASSAGE),
            ("closed book, perfectly guessed", shares["closed_book"], MOST_CLOSED_BOOK),
        )
        for name, value, most in bounds:
            is_kept = value <= most or self.questions < ENOUGH
            yield WorldCheck(name=name, value=value, bound=f"≤ {most:.2f}", holds=is_kept)

    def _names(self) -> Iterator[WorldCheck]:
        """Invented words belong to one split for good; a word of another split would be a leak."""
        count = len(self._strangers)
        name = f"words of another split than {self._split}"
        yield WorldCheck(name=name, value=float(count), bound="= 0", holds=not count)
        if self._split == "test":
            count = len(self._trained)
            yield WorldCheck(name="words of training worlds", value=float(count), bound="= 0", holds=not count)


GOLD_ANSWERS = "answered by its gold passages"
NO_FEWER = "not answered without one of them"
NO_ANSWER = "without an answer: nothing about its subjects gives one"
MARKED = "has no answer exactly where it says so"
FOUND = "gold passages found by the gold plan"
WRITTEN = "what a gold passage states is in its text"
SOUND: Final = (GOLD_ANSWERS, NO_FEWER, NO_ANSWER, WRITTEN, MARKED, FOUND)
REVEALS = "needs a name that a search reveals"
TRAP = "namesake or outdated page found"
BEYOND = "not from web pages alone"


def _soundness(world: World, question: Question) -> Iterator[tuple[str, bool]]:
    """Each question follows from its gold passages and from no fewer of them; or from nothing that there is.

    A count is right only if all its passages are there: with fewer, another number results. Without an answer is what
    cannot be answered from all documents that name one of the plan's subjects.
    """
    gold = [world.document(key) for key in question.supporting]
    if question.unanswerable:
        about = world.about({lookup.subject for lookups in question.plan for lookup in lookups})
        yield NO_ANSWER, answer_from(about, question) is None
    else:
        yield GOLD_ANSWERS, answer_from(gold, question) in question.answers
        fewer = ([d for d in gold if d is not one] for one in gold)
        yield NO_FEWER, all(answer_from(rest, question) not in question.answers for rest in fewer)
    yield WRITTEN, all(_is_written(document, stated.values) for document in gold for stated in document.states)
    yield MARKED, question.unanswerable == (not question.answers)
    yield FOUND, searched(world, question) is not None


def _is_written(document: Document, values: Sequence[str]) -> bool:
    text = f"{document.title} {document.text}".casefold()
    return all(value.casefold() in text for value in values)


def _kind(question: Question) -> Iterable[tuple[str, bool]]:
    return ((REVEALS, question.reveals), (TRAP, question.trap), (BEYOND, not question.web_only))


@cache
def _training_words() -> frozenset[str]:
    """Invented words of a few training worlds."""
    shards = [make_shard(seed, 0, split="train", difficulty=Difficulty()) for seed in range(_TRAINING_SEEDS)]
    words = [World.of(shard.name, shard.documents).invented_words for shard in shards]
    return frozenset(word for each in words for word in each)


def check_folder(which: str, show: Show) -> Outcome:
    """Check a world by its name or its folder, shard by shard.

    Raises:
        SetupError: it is no world, was changed since it was built, or has no questions.
    """
    folder = folder_of(which)
    card = read_card(folder)
    if not card.questions:
        raise SetupError(f"{which} has no questions to validate: build it with --questions")
    tally = WorldTally(card.split)
    for world in read_shards(folder):
        tally.add(world)
        show(tally.questions, card.questions)
    return tally.checks(card.difficulty), dict(tally.types)


def survey(each: int, seed: int, split: Split, show: Show, difficulty: Difficulty | None = None) -> Outcome:
    """Make one world after the other until `each` questions of every type are checked.

    Raises:
        SetupError: three worlds in a row give no question of some type.
    """
    difficulty = difficulty or Difficulty()
    tally = WorldTally(split)
    barren = 0
    while (missing := _missing(tally, each, difficulty)) and barren < 3:
        before = tally.questions
        drawing = Drawing(make_shard(seed, 0, split=split, difficulty=difficulty))
        wanted = {kind: min(_OF_EACH, each - tally.types[kind]) for kind in missing}
        drawn = tuple(question for kind in missing for question in _questions(drawing, kind, wanted[kind]))
        tally.add(World(f"{split}-{seed}", drawing.world.documents, drawn, drawing.world.indexes))
        barren = 0 if tally.questions > before else barren + 1
        seed += 1
        show(sum(min(each, tally.types[kind]) for kind in TYPES), each * len(TYPES))
    if barren:
        raise SetupError(f"no more questions of the types {', '.join(missing)} can be drawn at this difficulty")
    return tally.checks(difficulty, mixed=False), dict(tally.types)


def _missing(tally: WorldTally, each: int, difficulty: Difficulty) -> list[QuestionType]:
    """The types of which more questions are wanted; longer chains than the difficulty allows are not."""
    return [kind for kind in TYPES if tally.types[kind] < each and kind in mix_of(difficulty)]


def _questions(drawing: Drawing, kind: QuestionType, count: int) -> Iterator[Question]:
    for number in range(count):
        question = drawing.draw(kind, f"{drawing.world.name}-{kind}-{number}")
        if question is None:
            return
        yield question
