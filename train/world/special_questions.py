"""Questions that are more than a chain: counts, time, follow-ups, the well known, and those without an answer."""

from collections.abc import Callable, Sequence

from agent.world.records import Document, Lookup, Question, Stated
from agent.world.relations import LISTINGS, RELATIONS
from train.world.facts import Ground
from train.world.frames import FOLLOW_ANOTHER
from train.world.grammar import capital, fill
from train.world.known import well_known
from train.world.universe import NEWS_FROM, Tenure, WorldFact

_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()


class SpecialQuestions:
    """Draws questions; every method tries once and gives None where the draw was not sound."""

    def __init__(self, ground: Ground, documents: Sequence[Document]) -> None:
        self._ground, self._rng, self._universe = ground, ground.rng, ground.universe
        self._known = Ground(well_known(), documents, ground.rng, ground.difficulty)
        self._changing = [fact for fact in ground.facts if fact.tenures]
        self._shards = {document.id.split("-")[1] for document in documents}

    def count(self) -> Question | None:
        """How many there are of a list, or of the list of a person whom a search reveals."""
        holder, name = self._rng.choice(list(self._universe.lists))
        listing = LISTINGS[name]
        if listing.scattered and len(self._universe.lists[holder, name]) < 2:
            return None
        leading = [fact for fact in self._ground.facts if fact.object == holder]
        path = [self._rng.choice(leading)] if leading and self._rng.random() < 0.35 else []
        subject = self._ground.subject_of(path) if path else self._universe.label(holder)
        number = len(self._universe.lists[holder, name])
        text = capital(self._rng.choice(listing.counts).format(s=subject))
        plan = (*((self._ground.lookup(fact),) for fact in path), (self._ground.listed(holder, name),))
        return _question(text, (str(number), *_NUMBERS[number : number + 1]), plan, reveals=bool(path))

    def time(self) -> Question | None:
        """Who or what it was in a year, before another one, or since when it is so."""
        fact = self._rng.choice(self._changing)
        return self._rng.choice((self._in, self._before, self._since))(fact)

    def _in(self, fact: WorldFact) -> Question | None:
        tenure = self._rng.choice(fact.tenures)
        years = range(tenure.since + 1, min(tenure.until or NEWS_FROM, NEWS_FROM) - 1)
        if not years:
            return None
        year = self._rng.choice(years)
        label = self._universe.label(tenure.value)

        def proves(stated: Stated) -> bool:
            return label in stated.values and int(stated.since) <= year < int(stated.until or NEWS_FROM)

        lookup = self._ground.at(fact, (label,), proves, when="in", what=str(year))
        return self._timed(
            RELATIONS[fact.relation].asks_in, fact, str(year), lookup, self._ground.answers(tenure.value)
        )

    def _before(self, fact: WorldFact) -> Question | None:
        if len(fact.tenures) < 2:
            return None
        place = self._rng.randrange(1, len(fact.tenures))
        old, new = fact.tenures[place - 1], fact.tenures[place]
        label, before = self._universe.label(new.value), self._universe.label(old.value)
        lookup = self._ground.at(
            fact, (before,), lambda s: label in s.values and s.follows == before, when="before", what=label
        )
        return self._timed(RELATIONS[fact.relation].asks_before, fact, label, lookup, self._ground.answers(old.value))

    def _since(self, fact: WorldFact) -> Question | None:
        now: Tenure = fact.tenures[-1]
        label, year = self._universe.label(now.value), str(now.since)
        lookup = self._ground.at(
            fact, (year,), lambda s: label in s.values and s.since == year, when="since", what=label
        )
        return self._timed(RELATIONS[fact.relation].asks_since, fact, label, lookup, (year,))

    def _timed(
        self, asks: Sequence[str], fact: WorldFact, what: str, lookup: Lookup | None, answers: tuple[str, ...]
    ) -> Question | None:
        if lookup is None:
            return None
        text = self._rng.choice(asks).format(s=self._universe.label(fact.subject), w=what)
        return _question(capital(text), answers, ((lookup,),))

    def followup(self) -> Question | None:
        """A question that leans on an earlier one: on its answer, on its subject, or the same about another subject."""
        first = self._rng.choice(self._ground.facts)
        draw: Callable[[WorldFact], tuple[str, WorldFact] | None]
        draw = self._rng.choice((self._on_answer, self._on_answer, self._on_subject, self._on_another))
        drawn = draw(first)
        if drawn is None:
            return None
        text, fact = drawn
        earlier = self._ground.ask(first.relation, self._universe.label(first.subject))
        history = ((earlier, self._universe.name(first.object)),)
        question = _question(text, self._ground.answers(fact.object), ((self._ground.lookup(fact),),))
        return question.model_copy(update={"history": history})

    def _on_answer(self, first: WorldFact) -> tuple[str, WorldFact] | None:
        return self._leaning(first.object, first.subject, first)

    def _on_subject(self, first: WorldFact) -> tuple[str, WorldFact] | None:
        return self._leaning(first.subject, first.object, first)

    def _leaning(self, on: str, other: str, first: WorldFact) -> tuple[str, WorldFact] | None:
        entities = self._universe.entities
        facts = [fact for fact in self._ground.about(on) if fact.object != other and fact.relation != first.relation]
        if on not in entities or not facts:
            return None
        if other in entities and entities[other].pronoun == entities[on].pronoun:
            return None  # the pronoun could mean either
        fact = self._rng.choice(facts)
        return fill(self._rng.choice(RELATIONS[fact.relation].follow), entities[on]), fact

    def _on_another(self, first: WorldFact) -> tuple[str, WorldFact] | None:
        alike = [fact for fact in self._ground.facts if fact.relation == first.relation and fact.object != first.object]
        if not alike:
            return None
        fact = self._rng.choice(alike)
        return self._rng.choice(FOLLOW_ANOTHER).format(s=self._universe.label(fact.subject)), fact

    def known(self) -> Question | None:
        """One of the closed set; only the shard that holds its pages asks for it."""
        if "known" not in self._shards:
            return None
        fact = self._rng.choice(self._known.facts)
        text = self._known.ask(fact.relation, self._known.universe.label(fact.subject))
        question = _question(text, self._known.answers(fact.object), ((self._known.lookup(fact),),))
        return question.model_copy(update={"well_known": True})

    def unanswerable(self) -> Question | None:
        """A question whose last look-up finds nothing: not known of the subject, too early, or an unknown name."""
        draw: Callable[[], Question | None]
        draw = self._rng.choice(
            (self._not_said, self._not_said, self._not_said_of_another, self._too_early, self._unknown_name)
        )
        question = draw()
        return question and question.model_copy(update={"unanswerable": True, "answers": ()})

    def _gap(self, entity: str) -> str | None:
        """A relation that the subject could have, and of which nothing is known."""
        kind = self._universe.entities[entity].kind
        facts = self._universe.facts
        gaps = [r.name for r in RELATIONS.values() if r.subject == kind and (entity, r.name) not in facts]
        return self._rng.choice(gaps) if gaps else None

    def _not_said(self) -> Question | None:
        entity = self._rng.choice(list(self._universe.entities.values()))
        relation = self._gap(entity.id)
        if relation is None:
            return None
        text = self._ground.ask(relation, entity.label)
        return _question(text, (), ((self._ground.missing(entity.label, relation),),))

    def _not_said_of_another(self) -> Question | None:
        first = self._rng.choice(self._ground.facts)
        relation = self._gap(first.object) if first.object in self._universe.entities else None
        if relation is None:
            return None
        text = self._ground.ask(relation, self._ground.subject_of([first]))
        missing = self._ground.missing(self._universe.label(first.object), relation)
        return _question(text, (), ((self._ground.lookup(first),), (missing,)), reveals=True)

    def _too_early(self) -> Question | None:
        fact = self._rng.choice(self._changing)
        year = str(fact.tenures[0].since - self._rng.randint(8, 60))
        label = self._universe.label(fact.subject)
        text = self._rng.choice(RELATIONS[fact.relation].asks_in).format(s=label, w=year)
        return _question(capital(text), (), ((self._ground.missing(label, fact.relation, when="in", what=year),),))

    def _unknown_name(self) -> Question | None:
        name = self._rng.choice(self._universe.strangers)
        relation = self._rng.choice([r.name for r in RELATIONS.values() if r.subject == "person"])
        return _question(self._ground.ask(relation, name), (), ((self._ground.missing(name, relation),),))


def _question(
    text: str, answers: tuple[str, ...], plan: tuple[tuple[Lookup, ...], ...], *, reveals: bool = False
) -> Question:
    return Question(
        id="", type="chain1", question=text, answers=answers, supporting=(), hops=len(plan), plan=plan, reveals=reveals
    )
