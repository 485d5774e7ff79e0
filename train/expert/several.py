"""Several questions at once about one passage: much to read out of little context."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final, TypeVar

from train.evaluation.normalisations import squad
from train.expert.combine import DATES
from train.expert.plan import GoldPassages, NoPlan, PlannedQuestion, QuotedFact, SolutionPlan
from train.expert.reading import YES_NO, SolvedQuestion, date_of, date_order, plans_of
from train.expert.relations import DocumentWithRelations, facts_of
from train.expert.text import plain_title, query_of

_Item = TypeVar("_Item")
MOST_QUERIES: Final = 4
"""Questions of one row that are searched for each on its own."""
MOST_FACTS: Final = 7
"""Questions of one row about a passage that one query finds."""
_COMPARED: Final = 4
"""Things of one row that are compared, two and two."""


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
