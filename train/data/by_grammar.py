"""The steps from bundles to questions in a little world: written by grammar, filtered exactly."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal

from agent.errors import SetupError
from agent.world import Lookup, Question, World
from agent.world.difficulty import Difficulty
from agent.world.names import bare_name
from agent.world.records import QuestionType, Stated
from agent.world.relations import LISTINGS, RELATIONS
from train.data.bundling import Grounds
from train.data.checking import Checked, Name, checking
from train.data.documents import part_of
from train.data.folder import counted
from train.data.inputs import WorldInput
from train.data.recipe import DataRecipe
from train.data.records import Bundle, Candidate
from train.data.steps import Made, Steps
from train.data.writing import REPEATED
from train.world.grammar import capital
from train.world.questions import CROSSED, YEARS
from train.world.reader import value_of

_NUMBERS: Final = "zero one two three four five six seven eight nine ten eleven twelve".split()
_CHOICES: Final = 0.25
"""Of the chains: written as multiple choice."""
_OPTIONS: Final = 4


@dataclass(frozen=True)
class KnownFact:
    """Something that a document states, and that is so."""

    subject: str
    relation: str
    values: tuple[str, ...]
    document: str

    @property
    def lookup(self) -> Lookup:
        return Lookup(subject=self.subject, relation=self.relation, values=self.values, gold=self.document)


class Grammar:
    """Writes questions about one part of a world.

    Chains, counts, comparisons, intersections and choices. What each document states is known here, so nothing is
    guessed; the wordings are the world's. It writes about what is in different documents of a bundle only, and does not
    judge whether fewer would do: `checking` does.
    """

    def __init__(self, world: World, *, seed: int) -> None:
        """Learn what holds.

        Args:
            world: one part of a world.
            seed: of the wordings.
        """
        self._rng = random.Random(f"cairn data {world.name} {seed}")
        self._paraphrase = Difficulty().paraphrase
        stated: dict[tuple[str, str], list[Stated]] = {}
        for document in world.documents:
            for one in document.states:
                stated.setdefault((one.subject, one.relation), []).append(one)
        truths = {
            key: value_of(said, Lookup(subject=key[0], relation=key[1], values=(), gold=""))
            for key, said in stated.items()
        }
        self._known = {
            document.id: [
                KnownFact(one.subject, one.relation, one.values, document.id)
                for one in document.states
                if not one.outdated and not one.doubtful and one.values == truths[one.subject, one.relation]
            ]
            for document in world.documents
        }
        self._values: dict[str, set[str]] = {}
        for (_, relation), values in truths.items():
            if values and relation in RELATIONS:
                self._values.setdefault(_kind_of(relation), set()).add(_name(relation, values[0]))

    def write(self, bundle: Bundle, *, each: int, sources: int) -> list[Question]:
        """Up to `each` questions about a bundle, in an order of chance; none where nothing in it is linked.

        Args:
            bundle: of documents.
            each: questions, at most.
            sources: that the documents of a question have, at least.
        """
        held = [known for key in bundle.documents for known in self._known.get(key, ())]
        every = (*self._chains(held), *self._counts(held), *self._comparisons(held), *self._intersections(held))
        made = [question for question in every if len({key.split("-")[0] for key in question.supporting}) >= sources]
        self._rng.shuffle(made)
        shard = part_of(bundle.documents[0])
        return [
            question.model_copy(update={"id": f"{bundle.id}-{number}", "shard": shard})
            for number, question in enumerate(made[:each])
        ]

    # What is linked

    def _paths(self, held: Sequence[KnownFact]) -> Iterator[tuple[KnownFact, ...]]:
        """Facts that lead from one document to the next, from two documents on."""
        waiting: list[tuple[KnownFact, *tuple[KnownFact, ...]]] = [
            (known,) for known in held if known.relation in RELATIONS
        ]
        while waiting:
            path = waiting.pop(0)
            if len(path) > 1:
                yield path
            used, been = {known.document for known in path}, {known.subject for known in path}
            for known in held:
                fits = known.relation in RELATIONS and known.subject == path[-1].values[0]
                if fits and known.document not in used and known.values[0] not in been:
                    waiting.append((*path, known))

    def _chains(self, held: Sequence[KnownFact]) -> Iterator[Question]:
        for path in self._paths(held):
            last = path[-1]
            answer = last.values[0]
            text = self._ask(last.relation, self._reached(path[:-1]))
            kinds: dict[int, QuestionType] = {2: "chain2", 3: "chain3", 4: "chain4"}
            plan = tuple((known.lookup,) for known in path)
            question = _question(kinds[len(path)], text, _answers(last.relation, answer), plan, reveals=True)
            chosen = self._rng.random() < _CHOICES and self._as_choice(question, last)
            yield chosen or question

    def _as_choice(self, question: Question, last: KnownFact) -> Question | None:
        right = question.answers[0]
        wrong = sorted(
            name for name in self._values[_kind_of(last.relation)] if name != right and name not in question.question
        )
        if len(wrong) < _OPTIONS - 1 or right in question.question:
            return None
        options = [right, *self._rng.sample(wrong, _OPTIONS - 1)]
        self._rng.shuffle(options)
        text = f"{question.question} Options: {', '.join(options)}."
        return question.model_copy(update={"type": "choice", "question": text, "candidates": tuple(options)})

    def _counts(self, held: Sequence[KnownFact]) -> Iterator[Question]:
        for one in held:
            for two in held:
                leads = one.relation in RELATIONS and two.relation in LISTINGS and one.values[0] == two.subject
                if not leads or one.document == two.document or LISTINGS[two.relation].scattered:
                    continue
                number = len(two.values)
                text = self._rng.choice(LISTINGS[two.relation].counts).format(s=self._reached((one,)))
                answers = (str(number), *_NUMBERS[number : number + 1])
                yield _question("count", capital(text), answers, ((one.lookup,), (two.lookup,)), reveals=True)

    def _comparisons(self, held: Sequence[KnownFact]) -> Iterator[Question]:
        wordings = dict(YEARS.values())
        for one, two in combinations([known for known in held if known.relation in wordings], 2):
            person = RELATIONS[one.relation].subject == "person"
            names = [bare_name(known.subject) if person else known.subject for known in (one, two)]
            apart = one.document != two.document and names[0] != names[1] and one.values != two.values
            if one.relation != two.relation or not apart:
                continue
            wanted: Literal["earlier", "later"] = self._rng.choice(("earlier", "later"))
            text = self._rng.choice(wordings[one.relation]).format(
                w="first" if wanted == "earlier" else "last", a=one.subject, b=two.subject
            )
            won = 0 if (int(one.values[0]) < int(two.values[0])) == (wanted == "earlier") else 1
            answers = tuple(dict.fromkeys((names[won], (one, two)[won].subject)))
            question = _question("comparison", capital(text), answers, ((one.lookup, two.lookup),))
            yield question.model_copy(update={"asks": wanted, "candidates": (one.subject, two.subject)})

    def _intersections(self, held: Sequence[KnownFact]) -> Iterator[Question]:
        for first, second, asks in CROSSED:
            for one in held:
                for two in held:
                    if (one.relation, two.relation) != (first, second) or one.document == two.document:
                        continue
                    both = [value for value in one.values if value in two.values]
                    if len(both) != 1 or min(len(one.values), len(two.values)) < 2:
                        continue
                    pair = [one, two]
                    self._rng.shuffle(pair)
                    clauses = [self._rng.choice(LISTINGS[k.relation].clause).format(s=k.subject) for k in pair]
                    text = self._rng.choice(asks).format(a=clauses[0], b=clauses[1])
                    person = LISTINGS[first].member == "person"
                    answers = tuple(dict.fromkeys((bare_name(both[0]) if person else both[0], both[0])))
                    plan = (tuple(known.lookup for known in pair),)
                    yield _question("intersection", text, answers, plan, reveals=True)

    # How it is said

    def _worded(self, near: Sequence[str], far: Sequence[str]) -> str:
        return self._rng.choice(far if far and self._rng.random() < self._paraphrase else near)

    def _ask(self, relation: str, subject: str) -> str:
        known = RELATIONS[relation]
        return capital(self._worded(known.asks, known.asks_far).format(s=subject))

    def _reached(self, path: Sequence[KnownFact]) -> str:
        """What a path leads to, in words."""
        subject = path[0].subject
        for known in path:
            relation = RELATIONS[known.relation]
            subject = self._worded(relation.phrases, relation.phrases_far).format(s=subject)
        return subject


def _question(
    kind: QuestionType,
    text: str,
    answers: tuple[str, ...],
    plan: tuple[tuple[Lookup, ...], ...],
    *,
    reveals: bool = False,
) -> Question:
    supporting = tuple(dict.fromkeys(lookup.gold for lookups in plan for lookup in lookups))
    web_only = all(key.startswith("web-") for key in supporting)
    return Question(
        id="",
        type=kind,
        question=text,
        answers=answers,
        supporting=supporting,
        hops=len(plan),
        plan=plan,
        reveals=reveals,
        web_only=web_only,
    )


def _kind_of(relation: str) -> str:
    """What a relation leads to; years are distinguished by their relation."""
    kind = RELATIONS[relation].object
    return relation if kind == "year" else kind


def _name(relation: str, value: str) -> str:
    return bare_name(value) if RELATIONS[relation].object == "person" else value


def _answers(relation: str, value: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((_name(relation, value), value)))


NOT_LINKED = "nothing in one of its documents leads to a fitting other one"
NOT_DRAWN = "not drawn (--limit)"
FILTERS: Final[tuple[Name, ...]] = ("by heart", "together", "alone", "found")
"""In their order."""


def questions_by_grammar(steps: Steps, recipe: DataRecipe, inputs: WorldInput, ground: Grounds) -> list[Candidate]:
    """The questions that are left in the end.

    Raises:
        SetupError: there is none to write, or the folder cannot be written.
    """
    found = steps.rows("writing", Candidate, lambda: _written(steps, recipe, inputs, ground))
    check = checking(steps.spread, inputs, diverse=recipe.bundles == "diverse")
    for name in FILTERS:
        held = found
        found = steps.rows(name, Candidate, lambda n=name, h=held: _passed(steps, n, h, check(n, h)))
    return found


def drawn(bundles: Sequence[Bundle], recipe: DataRecipe) -> list[Bundle]:
    """The bundles that get questions, in their order."""
    if not recipe.limit or recipe.limit >= len(bundles):
        return list(bundles)
    places = random.Random(f"cairn data limit {recipe.seed}").sample(range(len(bundles)), recipe.limit)
    return [bundles[place] for place in sorted(places)]


def _written(steps: Steps, recipe: DataRecipe, inputs: WorldInput, ground: Grounds) -> tuple[list[Candidate], Made]:
    bundles = drawn(ground.bundles, recipe)
    grammars = {part: Grammar(world, seed=recipe.seed) for part, world in inputs.parts.items()}
    kept: dict[str, Candidate] = {}
    whys = [NOT_DRAWN] * (len(ground.bundles) - len(bundles))
    show = steps.progress("writing")
    for place, bundle in enumerate(bundles, start=1):
        candidates = _about(bundle, grammars[ground.docs[bundle.documents[0]].part], ground, recipe)
        whys += [] if candidates else [NOT_LINKED]
        for candidate in candidates:
            if candidate.question in kept:
                whys.append(REPEATED)
            else:
                kept[candidate.question] = candidate
        show(place, len(bundles))
    if not kept:
        raise SetupError(f"the grammar wrote no question about {len(bundles)} bundles: take a larger world")
    figures = {"questions": len(kept)} | counted(candidate.type for candidate in kept.values())
    return list(kept.values()), Made(len(ground.bundles), len(kept), counted(whys), figures, of="bundles")


def _about(bundle: Bundle, grammar: Grammar, ground: Grounds, recipe: DataRecipe) -> list[Candidate]:
    return [
        Candidate(
            id=question.id,
            question=question.question,
            answers=question.answers,
            type=question.type,
            bundle=bundle.id,
            supporting=question.supporting,
            sources=tuple(sorted({ground.docs[key].source for key in question.supporting})),
            options=question.candidates if question.type == "choice" else (),
            plan=question,
        )
        for question in grammar.write(bundle, each=recipe.each, sources=1 if recipe.bundles == "same" else 2)
    ]


def _passed(
    steps: Steps, name: Name, candidates: Sequence[Candidate], checked: Iterable[Checked]
) -> tuple[list[Candidate], Made]:
    kept: list[Candidate] = []
    whys: list[str] = []
    show = steps.progress(name)
    for place, (why, candidate) in enumerate(checked, start=1):
        if why:
            whys.append(why)
        else:
            kept.append(candidate)
        show(place, len(candidates))
    return kept, Made(len(candidates), len(kept), counted(whys))
