"""Several questions at once about one passage: much to read out of little context."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from train.expert.plan import Asked, NoPlan, Passages, Plan
from train.expert.reading import YES_NO, Record, plans_of
from train.expert.relations import Described, facts_of
from train.expert.text import query_of

_Item = TypeVar("_Item")
MOST_QUERIES: Final = 4
"""Questions of one row that are searched for each on its own."""
MOST_FACTS: Final = 7
"""Questions of one row about a passage that one query finds."""


def several(records: Sequence[Record], passages: Passages, rng: random.Random) -> Iterator[Asked]:
    """Questions with one gold passage each, those of a passage together; each is a query of its own."""
    by_passage: dict[str, list[tuple[Record, Plan]]] = defaultdict(list)
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
                asked = [record.question.strip() for record, _ in group]
                queries = tuple(query_of([question]) for question in asked)
                yield _joined(f"several-{name}-{number}", asked, [plan for _, plan in group], queries)


def several_facts(documents: Sequence[Described], rng: random.Random) -> Iterator[Asked]:
    """Relations of a document, several at once; one query, its title, finds it."""
    for document in documents:
        known = list(facts_of(document))
        rng.shuffle(known)
        for number, group in enumerate(_batches(known, MOST_FACTS)):
            if len(group) > 1:
                asked = [question for question, _, _ in group]
                plans = [Plan(((fact,),), answer) for _, fact, answer in group]
                yield _joined(f"several-{document.id}-{number}", asked, plans, (query_of([document.title]),))


def _batches(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    return (items[at : at + size] for at in range(0, len(items), size))


def _joined(name: str, asked: Sequence[str], plans: Sequence[Plan], queries: tuple[str, ...]) -> Asked:
    facts = tuple(dict.fromkeys(fact for plan in plans for fact in plan.facts))
    answer = "; ".join(plan.answer for plan in plans)
    return Asked(name, " ".join(asked), "several", Plan((facts,), answer), queries=queries, passages=1)
