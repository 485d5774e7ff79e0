"""Questions of more hops: a name in a question about one passage, put as what another article says of it.

"What waterfall is in Zimbabwe?" becomes "What waterfall is in the country where the Bubye River is?"
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from train.evaluation.normalisations import squad
from train.evaluation.words import STOP_WORDS
from train.expert.combine import called
from train.expert.nations import country_of
from train.expert.plan import GoldPassages, NoPlan, PlannedQuestion, QuotedFact, SolutionPlan
from train.expert.reading import YES_NO, SolvedQuestion, plans_of
from train.expert.relations import DocumentWithRelations, own_facts
from train.expert.text import holds, mentions, names_in

_NAME: Final = re.compile(r"(?:the )?(?<!\w)[A-Z][\w.-]*(?: (?:(?:of|the|and) )?[A-Z0-9][\w.-]*)*(?!\w|['’]s)")
"""Words with capitals in a row, without a possessive."""
_STANDS_ALONE: Final = STOP_WORDS | set("during since until while around near have has had begin become".split())
"""Words after a name that is not the first part of a longer one, as "Newcastle" is of "Newcastle harbour"."""
_AUXILIARY: Final = frozenset("did does do was were is are can could has had".split())
_THREE_HOPS: Final = 0.4
"""How often the name within the phrase is put as a phrase, too, where an article says something of it."""
_EACH_NAME: Final = 40
"""Questions in which the same name is replaced."""

Links = Mapping[str, Sequence[QuotedFact]]
"""A name → facts of articles whose value it is."""


def nested(
    records: Sequence[SolvedQuestion],
    documents: Sequence[DocumentWithRelations],
    passages: GoldPassages,
    rng: random.Random,
) -> Iterator[PlannedQuestion]:
    """At most one question of more hops for each that one passage answers."""
    links = _links(documents)
    used: dict[str, int] = defaultdict(int)
    for record in records:
        if len(record.supporting) != 1 or record.answers[0].casefold() in YES_NO:
            continue
        found = [name for name in _names(record.question) if used[names_in(name)] < _EACH_NAME]
        name = next((name for name in found if _link(name, links)), "")
        if not name or holds(record.answers[0], name) or holds(name, record.answers[0]):
            continue
        try:
            fact = plans_of(record, passages)[0].facts[0]
        except NoPlan:
            continue
        if planned := _nested_question(record, name, fact, links, rng):
            used[names_in(name)] += 1
            yield planned


def _links(documents: Sequence[DocumentWithRelations]) -> Links:
    """Nationalities are linked under their countries."""
    links: dict[str, list[QuotedFact]] = defaultdict(list)
    for document in documents:
        for fact in own_facts(document):
            if called(fact.relation, fact.title):
                value = country_of(fact.value) if "country" in fact.relation else fact.value
                links[names_in(value)].append(replace(fact, value=value))
    return links


def _names(question: str) -> list[str]:
    """The names in a question that can be replaced by a phrase, the longest first."""
    found = {match[0] for match in _NAME.finditer(question) if _is_free(question, match)}
    return sorted(found, key=len, reverse=True)


def _is_free(question: str, name: re.Match[str]) -> bool:
    """Whether a name stands by itself, and is no part of a longer one and no adjective."""
    before, after = question[: name.start()].split(), question[name.end() :]
    if not before or before[-1][0].isupper() or country_of(name[0]) != name[0]:
        return len(before) == 1 and before[0].casefold() in _AUXILIARY and after[:1] in " ?"
    if not before[-1].isalpha() or (len(before) > 1 and before[-1] == "of" and before[-2][0].isupper()):
        return False
    following = after.split()[0] if after[:1] == " " and after.split() else ""
    return not following or following.casefold() in _STANDS_ALONE or before[-1].casefold() in _AUXILIARY


def _link(name: str, links: Links) -> Sequence[QuotedFact]:
    return links.get(names_in(name.removeprefix("the ")), ())


def _nested_question(
    record: SolvedQuestion, name: str, last: QuotedFact, links: Links, rng: random.Random
) -> PlannedQuestion | None:
    """The question with the name put as a phrase; None where no fact fits."""
    fitting = [fact for fact in _link(name, links) if fact.passage != last.passage and _is_new(fact, record.question)]
    if not fitting:
        return None
    phrase, facts = _three_hops(name, fitting, links, rng) or _two_hops(fitting, rng)
    question = record.question.replace(name, phrase, 1).strip()
    whole = replace(last, about=name.removeprefix("the "), query=record.question)
    kind = "nested, two hops" if len(facts) == 1 else "nested, three hops"
    plan = SolutionPlan(tuple((fact,) for fact in (*facts, whole)), record.answers[0])
    return PlannedQuestion(f"{record.id} over {facts[0].title}", question, kind, plan)


def _two_hops(fitting: Sequence[QuotedFact], rng: random.Random) -> tuple[str, list[QuotedFact]]:
    """The phrase for a name and the fact behind it; every relation is as likely."""
    by_relation: dict[str, list[QuotedFact]] = defaultdict(list)
    for fact in fitting:
        by_relation[fact.relation].append(fact)
    near = rng.choice(by_relation[rng.choice(sorted(by_relation))])
    return called(near.relation, near.title), [near]


def _three_hops(
    name: str, fitting: Sequence[QuotedFact], links: Links, rng: random.Random
) -> tuple[str, list[QuotedFact]] | None:
    """The same over two facts, now and then, where there are two that meet."""
    pairs = [(near, far) for near in fitting for far in _link(near.title, links) if squad(far.title) != squad(name)]
    if not pairs or rng.random() >= _THREE_HOPS:
        return None
    near, far = rng.choice(pairs)
    inner = called(far.relation, far.title)
    if "'s" in inner:
        return None
    return called(near.relation, inner), [far, replace(near, about=near.title)]


def _is_new(fact: QuotedFact, question: str) -> bool:
    return not mentions(question, fact.title) and squad(fact.title) != squad(fact.value)
