"""Questions of more hops: a name in a question about one passage, put as what another article says of it.

"What waterfall is in Zimbabwe?" becomes "What waterfall is in the country where the Bubye River is?"
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final, TypeVar

from train.evaluation.normalisations import squad
from train.evaluation.words import STOP_WORDS
from train.expert.combine import DATES, called
from train.expert.nations import country_of
from train.expert.plan import GoldPassages, NoPlan, PlannedQuestion, QuotedFact, SolutionPlan
from train.expert.reading import YES_NO, SolvedQuestion, date_of, date_order, plans_of
from train.expert.relations import DocumentWithRelations, facts_of, own_facts
from train.expert.text import holds, mentions, names_in, plain_title, query_of

_Item = TypeVar("_Item")
MOST_QUERIES: Final = 4
"""Questions of one row that are searched for each on its own."""
MOST_FACTS: Final = 7
"""Questions of one row about a passage that one query finds."""
_COMPARED: Final = 4
"""Things of one row that are compared, two and two."""

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


def several(records: Sequence[SolvedQuestion], passages: GoldPassages, rng: random.Random) -> Iterator[PlannedQuestion]:
    """Questions with one gold passage each, those of a passage together; each is a query of its own."""
    by_passage: dict[str, list[tuple[SolvedQuestion, SolutionPlan]]] = defaultdict(list)
    for record in records:
        if len(record.supporting) != 1 or record.answers[0].casefold() in YES_NO:
            continue
        try:
            by_passage[record.supporting[0]].append((record, plans_of(record, passages)[0]))
        except NoPlan:
            continue
    for name, known in by_passage.items():
        rng.shuffle(known)
        for number, group in enumerate(_batches(known, MOST_QUERIES)):
            if len(group) > 1:
                questions = [record.question.strip() for record, _ in group]
                queries = tuple(query_of([question]) for question in questions)
                yield _joined(f"several-{name}-{number}", questions, [plan for _, plan in group], queries)


def several_facts(documents: Sequence[DocumentWithRelations], rng: random.Random) -> Iterator[PlannedQuestion]:
    """Relations of a document, several at once; one query, its title, finds it."""
    for document in documents:
        known = list(facts_of(document))
        rng.shuffle(known)
        for number, group in enumerate(_batches(known, MOST_FACTS)):
            if len(group) > 1:
                questions = [question for question, _, _ in group]
                plans = [SolutionPlan(((fact,),), answer) for _, fact, answer in group]
                yield _joined(f"several-{document.id}-{number}", questions, plans, (query_of([document.title]),))


def several_comparisons(documents: Sequence[DocumentWithRelations], rng: random.Random) -> Iterator[PlannedQuestion]:
    """Which of two things is the earlier or the later one, four times about the same four; each is searched for."""
    known: dict[str, list[QuotedFact]] = defaultdict(list)
    for document in documents:
        for _, fact, answer in facts_of(document):
            if squad(fact.title) == squad(plain_title(document.title)) and date_of(answer):
                known[fact.relation].append(fact)
    wordings = {relation: [one for one in DATES if one[0] == relation] for relation in known}
    for relation, facts in known.items():
        if not wordings[relation]:
            continue
        rng.shuffle(facts)
        for number, four in enumerate(_batches(facts, _COMPARED)):
            if len(four) == _COMPARED:
                yield from _compared(f"compared-{relation}-{number}", four, wordings[relation], rng)


def _compared(
    name: str, four: Sequence[QuotedFact], wordings: Sequence[tuple[str, str]], rng: random.Random
) -> Iterator[PlannedQuestion]:
    questions: list[str] = []
    decided: list[str] = []
    answers: list[str] = []
    for pair in rng.sample(list(combinations(four, 2)), _COMPARED):
        one, other = rng.sample(pair, 2)
        relation, order = rng.choice(wordings)
        dates = [date_of(fact.value) for fact in (one, other)]
        chosen = dates.index(min(dates) if order == "earlier" else max(dates))
        said = date_order([one.title, other.title], [one.value, other.value], chosen)
        if said:
            questions.append(rng.choice(DATES[relation, order]).format(a=one.title, b=other.title))
            decided.append(said)
            answers.append((one, other)[chosen].title)
    if len(questions) > 1:
        queries = tuple(query_of([fact.title]) for fact in four)
        plan = SolutionPlan((tuple(four),), "; ".join(answers), "\n".join(decided))
        yield PlannedQuestion(name, " ".join(questions), "compared several", plan, queries=queries, passages=1)


def _batches(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    return (items[at : at + size] for at in range(0, len(items), size))


def _joined(
    name: str, questions: Sequence[str], plans: Sequence[SolutionPlan], queries: tuple[str, ...]
) -> PlannedQuestion:
    facts = tuple(dict.fromkeys(fact for plan in plans for fact in plan.facts))
    answer = "; ".join(plan.answer for plan in plans)
    return PlannedQuestion(
        name, " ".join(questions), "several", SolutionPlan((facts,), answer), queries=queries, passages=1
    )
