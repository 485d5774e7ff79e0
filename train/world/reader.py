"""A perfect reader: it answers a question from what given documents state, and from nothing else."""

from collections.abc import Iterable, Sequence

from agent.world.records import Document, Lookup, Question, Stated
from agent.world.world import World


def answer_from(documents: Iterable[Document], question: Question) -> str | None:
    """The answer that follows from the documents alone; None where they do not hold all that the plan needs."""
    stated = [stated for document in documents for stated in document.states]
    values: list[list[tuple[str, ...]]] = []
    for lookups in question.plan:
        known = [value_of(stated, lookup) for lookup in lookups]
        if any(value is None for value in known):
            return None
        values.append([value for value in known if value is not None])
    return _conclude(question, values[-1])


def value_of(stated: Iterable[Stated], lookup: Lookup) -> tuple[str, ...] | None:
    """What is said of a look-up; None where nothing is.

    A current statement beats an outdated one, and any beats that of an unreliable page: dates and addresses show it to
    those who read both. The members of a list are put together from all that speak of it.
    """
    said = [s for s in stated if s.subject == lookup.subject and s.relation == lookup.relation]
    if lookup.when:
        return _at(said, lookup)
    if lookup.is_list:
        return tuple(dict.fromkeys(value for s in said for value in s.values)) or None
    best = [s for s in said if not s.outdated and not s.doubtful] or [s for s in said if not s.doubtful] or said
    return best[0].values if best else None


def _at(said: Sequence[Stated], lookup: Lookup) -> tuple[str, ...] | None:
    for s in said:
        if s.doubtful or not s.since:
            continue
        match lookup.when:
            case "before" if lookup.what in s.values and s.follows:
                return (s.follows,)
            case "since" if lookup.what in s.values:
                return (s.since,)
            case "in" if int(s.since) <= int(lookup.what) < int(s.until or _OPEN):
                return s.values
            case _:
                continue
    return None


_OPEN = 2025
"""An open end holds for the years before this one: what changed since, the same page need not know."""


def _conclude(question: Question, values: Sequence[tuple[str, ...]]) -> str:
    match question.type:
        case "comparison":
            years = [int(value[0]) for value in values]
            first = (years[0] < years[1]) == (question.asks == "earlier")
            return question.candidates[0 if first else 1]
        case "intersection":
            return next((name for name in values[0] if name in values[1]), "")
        case "count":
            return str(len(values[-1]))
        case _:
            return values[-1][0]


def first_passage_answer(world: World, question: Question) -> str:
    """What a perfect reader gets out of the first passage of one search, the question as query; else its best guess.

    The guess is a name that the passage makes likely: an option or a candidate that it speaks of, the first member of
    the list that it holds, or the value of the last relation of the plan. Of an earlier turn it knows the answer.
    """
    query = " ".join([*(text for turn in question.history for text in turn), question.question])
    found = world.find("all", query, limit=1)
    document = world.document(found[0].id) if found else None
    if document is None:
        return question.candidates[0] if question.candidates else ""
    if (answer := answer_from([document], question)) is not None:
        return answer
    if question.candidates and question.type in ("choice", "comparison"):
        text = f"{document.title} {document.text}"
        known = [name for name in question.candidates if name in text] if question.type == "choice" else []
        return (known or list(question.candidates))[0] if question.type == "choice" or not question.reveals else ""
    last = {lookup.relation for lookup in question.plan[-1]}
    return next((s.values[0] for s in document.states if s.relation in last), "")
