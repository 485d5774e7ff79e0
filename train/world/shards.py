"""Worlds, shard by shard: each shard is made from the seed and its number alone, so any size streams.

Names are unique over the shards; the well-known pages are in the first one.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from agent.world.difficulty import Difficulty
from agent.world.names import Split, bare_name
from agent.world.records import Document, Lookup, Question, QuestionType, Stated
from agent.world.relations import RELATIONS
from agent.world.world import World
from train.world.frames import BACKGROUND, DATELINES, DISTRACTOR_TITLES, FILLERS
from train.world.grammar import capital, fill
from train.world.known import well_known_drafts
from train.world.pages import PageDraft, PageWriter
from train.world.questions import QuestionWriter, counts_of, mix_of
from train.world.reader import answer_from
from train.world.universe import NEWS_FROM, Tenure, Universe, WorldFact, make_universe
from train.world.vocabulary import MAX_SHARDS

_OLD_NEWS = 0.2
"""Share of changes that the pages know of and that an old report states, too."""
_MONTHS = "January February March April May June July August September October November December".split()

PEOPLE: Final = 110
"""Of a full shard; everything else follows."""
LEAST_PEOPLE: Final = 6
_TRIES: Final = 3000
_REACH: Final = 3
"""Passages of a search that must hold the gold one."""


@dataclass(frozen=True)
class Shard:
    """One shard: its universe, its documents, and the source of its questions' randomness."""

    name: str
    number: int
    universe: Universe
    documents: tuple[Document, ...]
    rng: random.Random
    difficulty: Difficulty


def make_shard(seed: int, number: int, *, split: Split, people: int = PEOPLE, difficulty: Difficulty) -> Shard:
    """Make one shard.

    Raises:
        ValueError: too few people, or a number beyond the last shard.
    """
    if people < LEAST_PEOPLE:
        raise ValueError(f"a world needs at least {LEAST_PEOPLE} people")
    rng = random.Random(f"cairn world 2 {split} {seed} {number}")
    universe = make_universe(rng, split=split, seed=seed, shard=number, people=people, difficulty=difficulty)
    drafts = list(PageWriter(universe, rng, difficulty).write())
    drafts += NewsWriter(universe, rng, difficulty).write(sum(draft.source != "kg" for draft in drafts))
    documents = [draft.numbered(str(number), place) for place, draft in enumerate(drafts)]
    if number == 0:
        documents += [draft.numbered("known", place) for place, draft in enumerate(well_known_drafts())]
    return Shard(f"{split}-{seed}-{number}", number, universe, tuple(documents), rng, difficulty)


class Drawing:
    """Draws the questions of one shard, all different."""

    def __init__(self, shard: Shard) -> None:
        self.world = World.of(shard.name, shard.documents)
        self._shard = shard
        self._writer = QuestionWriter(shard.universe, shard.documents, shard.rng, shard.difficulty)
        self._used: set[object] = set()

    def ask(self, kinds: Sequence[QuestionType], name: str, first: int = 0) -> Iterator[Question]:
        """Questions of these kinds, one after the other.

        Raises:
            ValueError: the shard is too small for that many.
        """
        for number, kind in enumerate(kinds, start=first):
            question = self.draw(kind, f"{name}-{number}")
            if question is None:
                raise ValueError(f"this world is too small for {len(kinds)} questions: no new {kind} can be drawn")
            yield question

    def draw(self, kind: QuestionType, key: str) -> Question | None:
        """One more question, or None where there is no new one to be found."""
        for _ in range(_TRIES):
            question = self._writer.draw(kind, key)
            if question is None or (marks := _marks(question)) & self._used:
                continue
            if is_sound(self.world, question) and (checked := searched(self.world, question)) is not None:
                self._used |= marks
                return checked.model_copy(update={"shard": self._shard.number})
        return None


def _marks(question: Question) -> set[object]:
    """What no two questions share: the words, and but for the well known, what is to be found out."""
    needed = frozenset((k.subject, k.relation, k.when, k.what) for lookups in question.plan for k in lookups)
    marks: set[object] = {(question.question, question.history)}
    if not question.well_known:
        marks.add((question.type, needed, question.candidates))
    return marks


def is_sound(world: World, question: Question) -> bool:
    """Whether the gold passages answer it and no fewer do; or whether nothing said of its subjects does."""
    if question.unanswerable:
        return answer_from(world.about({k.subject for ks in question.plan for k in ks}), question) is None
    gold = [world.document(key) for key in question.supporting]
    if answer_from(gold, question) not in question.answers:
        return False
    return not any(answer_from([d for d in gold if d is not one], question) in question.answers for one in gold)


def searched(world: World, question: Question) -> Question | None:
    """The question with its trap marked, or None where a search of its plan misses a gold document."""
    trap = False
    for lookups in question.plan:
        for lookup in lookups:
            found = {p.id for q in lookup.queries for s in lookup.sources for p in world.find(s, q, limit=_REACH)}
            joint = {p.id for query in lookup.queries for p in world.find("all", query, limit=_REACH)}
            gold = {lookup.gold, *lookup.also} - {""}
            if not gold <= found or not gold <= joint:
                return None
            trap = trap or any(_misleads(world.document(key), lookup) for key in found | joint)
    return question.model_copy(update={"trap": trap})


def _misleads(document: Document, lookup: Lookup) -> bool:
    """Whether a document is outdated or wrong on this look-up, or about a namesake of its subject."""
    bare = bare_name(lookup.subject)
    for stated in document.states:
        same = stated.subject == lookup.subject
        if same and stated.relation == lookup.relation and (stated.outdated or stated.doubtful):
            return True
        if not same and bare_name(stated.subject) == bare:
            return True
    return False


def shuffled_kinds(total: int, mix: Mapping[QuestionType, float], rng: random.Random) -> list[QuestionType]:
    """The types of `total` questions, in the shares of the mix, shuffled."""
    kinds: list[QuestionType] = [kind for kind, count in counts_of(total, mix).items() for _ in range(count)]
    rng.shuffle(kinds)
    return kinds


def make_world(
    seed: int,
    *,
    split: Split,
    people: int = PEOPLE,
    questions: int = 0,
    name: str = "",
    difficulty: Difficulty | None = None,
    mix: Mapping[QuestionType, float] | None = None,
) -> World:
    """Generate a world of one shard and `questions` questions about it. The same seed gives the same world.

    Raises:
        ValueError: it is too small for its questions.
    """
    difficulty = difficulty or Difficulty()
    shard = make_shard(seed, 0, split=split, people=people, difficulty=difficulty)
    name = name or f"{split}-{seed}"
    kinds = shuffled_kinds(questions, mix or mix_of(difficulty), shard.rng)
    return World.of(name, shard.documents, Drawing(shard).ask(kinds, name))


def people_for(documents: int, difficulty: Difficulty) -> tuple[int, int]:
    """How many shards, and of how many people each, give about that many documents.

    Raises:
        ValueError: more than there are words for.
    """
    each = _documents_per_person(difficulty)
    full = max(1, round(documents / (each * PEOPLE)))
    if full > MAX_SHARDS:
        raise ValueError(f"a world has at most {int(MAX_SHARDS * each * PEOPLE)} documents")
    return full, max(LEAST_PEOPLE, round(documents / each / full))


def _documents_per_person(difficulty: Difficulty) -> float:
    sample = make_shard(0, 1, split="train", difficulty=difficulty)
    return len(sample.documents) / PEOPLE


def part(
    seed: int, number: int, of: int, *, split: Split, people: int, difficulty: Difficulty, questions: int, name: str
) -> World | tuple[Document, ...]:
    """Shard `number` with its share of a world's questions; only its documents where it has none.

    Raises:
        ValueError: it is too small for its questions.
    """
    shard = make_shard(seed, number, split=split, people=people, difficulty=difficulty)
    kinds = _kinds_of(seed, questions, number, of, difficulty)
    if not kinds:
        return shard.documents
    drawing = Drawing(shard)
    drawn = tuple(drawing.ask(kinds, name if of == 1 else f"{name}-{number}"))
    return World(name, shard.documents, drawn, drawing.world.indexes)


def _kinds_of(seed: int, questions: int, number: int, of: int, difficulty: Difficulty) -> list[QuestionType]:
    """The kinds that a shard asks: every `of`-th of all, but the well-known ones are all the first shard's."""
    every = shuffled_kinds(questions, mix_of(difficulty), random.Random(f"kinds {seed}"))
    others: list[QuestionType] = [kind for kind in every if kind != "known"]
    known: list[QuestionType] = [kind for kind in every if kind == "known" and number == 0]
    return [*others[number::of], *known]


class NewsWriter:
    """Writes every report of a shard, once.

    Dated reports that change facts, reports of events, and asides that state nothing.
    """

    def __init__(self, universe: Universe, rng: random.Random, difficulty: Difficulty) -> None:
        self._universe, self._rng, self._difficulty = universe, rng, difficulty

    def write(self, pages: int) -> Iterator[PageDraft]:
        """Reports, and distractors as many as the noise asks of `pages` pages and the reports together."""
        reports = 0
        for fact in self._universe.facts.values():
            for draft in self._reports(fact):
                reports += 1
                yield draft
        for _ in range(round(self._difficulty.noise * (pages + reports))):
            yield self._distractor()

    def _reports(self, fact: WorldFact) -> Iterator[PageDraft]:
        if RELATIONS[fact.relation].sources == ("news",):
            day = date(NEWS_FROM, 1, 6) + timedelta(days=self._rng.randint(0, 500))
            yield self._report(fact, Tenure(fact.object, day.year), None, day)
        for before, now in zip(fact.tenures, fact.tenures[1:], strict=False):
            if now.since >= NEWS_FROM or self._rng.random() < _OLD_NEWS:
                day = date(now.since, 1, 4) + timedelta(days=self._rng.randint(0, 350))
                yield self._report(fact, now, before, day)

    def _report(self, fact: WorldFact, now: Tenure, before: Tenure | None, day: date) -> PageDraft:
        label, entity = self._universe.label, self._universe.entities[fact.subject]
        old = label(before.value) if before else ""
        names = {"o": label(now.value), "old": old, "since": str(before.since) if before else ""}
        title, lead = self._rng.choice(RELATIONS[fact.relation].news).split(" — ", 1)
        parts = [fill(lead, entity, **names)]
        if before and self._rng.random() < 0.5:
            parts.append(fill(self._rng.choice(BACKGROUND), entity, **names))
        parts += self._rng.sample(FILLERS["news"], self._rng.choice((0, 1, 1, 2)))
        text = self._dateline(day) + " ".join(capital(part) for part in parts)
        stated = Stated(
            subject=entity.label,
            relation=fact.relation,
            values=(label(now.value),),
            outdated=bool(now.until),
            since=str(now.since) if before else "",
            follows=old,
        )
        return PageDraft("news", capital(fill(title, entity, **names)), text, (stated,), day.isoformat())

    def _dateline(self, day: date) -> str:
        return self._rng.choice(DATELINES).format(day=f"{day.day} {_MONTHS[day.month - 1]} {day.year}")

    def _distractor(self) -> PageDraft:
        """A page or a report that speaks of something in the words of one of its relations, and states nothing."""
        fact = self._rng.choice(list(self._universe.facts.values()))
        entity = self._universe.entities[fact.subject]
        source = "news" if self._rng.random() < 0.5 else "web"
        day = date(2019, 1, 4) + timedelta(days=self._rng.randint(0, 2600))
        text = [
            capital(fill(self._rng.choice(RELATIONS[fact.relation].distractors), entity)),
            self._rng.choice(FILLERS[entity.kind]) if entity.kind in FILLERS else "",
            self._rng.choice(FILLERS["news"]),
        ]
        title = capital(fill(self._rng.choice(DISTRACTOR_TITLES), entity))
        return PageDraft(source, title, " ".join(part for part in text if part), (), day.isoformat())
