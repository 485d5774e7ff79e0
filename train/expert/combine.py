"""More questions from the evidence triples of a list: their single hops, other pairs to compare, follow-ups."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from train.evaluation.normalisations import squad
from train.expert.plan import Asked, NoPlan, Passages
from train.expert.reading import Record, by_triples, date_of
from train.expert.text import plain_title

Chain = tuple[tuple[str, str, str], ...]
"""Triples of which each but the first is about what the one before it found."""

HOP: Final = {
    "director": "Who directed {s}?",
    "performer": "Who performed {s}?",
    "composer": "Who composed {s}?",
    "spouse": "Who is the spouse of {s}?",
    "father": "Who is the father of {s}?",
    "mother": "Who is the mother of {s}?",
    "child": "Who is the child of {s}?",
    "sibling": "Who is the sibling of {s}?",
    "date of birth": "When was {s} born?",
    "date of death": "When did {s} die?",
    "place of birth": "Where was {s} born?",
    "place of death": "Where did {s} die?",
    "place of burial": "Where was {s} buried?",
    "cause of death": "Why did {s} die?",
    "country of citizenship": "What nationality is {s}?",
    "country of origin": "Which country is {s} from?",
    "country": "Which country is {s} in?",
    "educated at": "Where did {s} study?",
    "employer": "Where did {s} work?",
    "publication date": "When was {s} released?",
    "award received": "Which award did {s} receive?",
    "author": "Who wrote {s}?",
    "creator": "Who created {s}?",
    "producer": "Who produced {s}?",
    "screenwriter": "Who wrote the screenplay of {s}?",
    "cast member": "Who starred in {s}?",
    "record label": "Which label released {s}?",
    "developer": "Who developed {s}?",
    "publisher": "Who published {s}?",
    "inception": "When was {s} founded?",
    "founded by": "Who founded {s}?",
    "headquarters location": "Where is the headquarters of {s}?",
    "owned by": "Who owns {s}?",
    "parent organization": "What is the parent organization of {s}?",
    "head of government": "Who heads the government of {s}?",
    "capital": "What is the capital of {s}?",
    "located in the administrative territorial entity": "Where is {s} located?",
    "located in or next to body of water": "Which body of water is {s} next to?",
    "continent": "On which continent is {s}?",
    "member of sports team": "Which team did {s} play for?",
    "member of political party": "Which party did {s} belong to?",
    "position held": "Which position did {s} hold?",
    "military branch": "In which military branch did {s} serve?",
    "conflict": "In which war did {s} fight?",
    "religion": "What is the religion of {s}?",
    "official language": "What is the official language of {s}?",
    "original language of work": "What is the original language of {s}?",
    "part of": "What is {s} part of?",
    "follows": "What came before {s}?",
    "followed by": "What came after {s}?",
    "series": "Which series is {s} part of?",
    "platform": "On which platform was {s} released?",
}
"""A question for the single hop of a relation, about the subject `{s}`."""
OF: Final = {
    "director": "the director of {s}",
    "performer": "the performer of {s}",
    "composer": "the composer of {s}",
    "author": "the author of {s}",
    "creator": "the creator of {s}",
    "producer": "the producer of {s}",
    "spouse": "the spouse of {s}",
    "father": "the father of {s}",
    "mother": "the mother of {s}",
    "founded by": "the founder of {s}",
    "record label": "the label that released {s}",
    "developer": "the developer of {s}",
    "owned by": "the owner of {s}",
    "located in the administrative territorial entity": "the place where {s} is",
    "place of birth": "the place where {s} was born",
    "educated at": "the school where {s} studied",
    "employer": "the employer of {s}",
}
"""What a relation's object is called in a question about that object."""
_DATES: Final = {
    ("date of birth", "earlier"): ("Who was born first, {a} or {b}?", "Who is older, {a} or {b}?"),
    ("date of birth", "later"): ("Who was born later, {a} or {b}?", "Who is younger, {a} or {b}?"),
    ("date of death", "earlier"): ("Who died first, {a} or {b}?",),
    ("date of death", "later"): ("Who died later, {a} or {b}?",),
    ("publication date", "earlier"): ("Which came out first, {a} or {b}?", "Which was released first, {a} or {b}?"),
    ("publication date", "later"): ("Which came out later, {a} or {b}?",),
    ("inception", "earlier"): ("Which was founded first, {a} or {b}?",),
    ("inception", "later"): ("Which was founded later, {a} or {b}?",),
}
_SAME: Final = {
    "country of citizenship": ("Are {a} and {b} of the same nationality?", "Do {a} and {b} have the same nationality?"),
    "country of origin": ("Are {a} and {b} from the same country?", "Did {a} and {b} originate from the same country?"),
    "country": ("Are {a} and {b} located in the same country?", "Are both {a} and {b} in the same country?"),
}
_BRIDGE_DATES: Final = {
    ("date of birth", "earlier"): ("Which film has the {r} who was born first, {a} or {b}?",),
    ("date of birth", "later"): ("Which film has the {r} who was born later, {a} or {b}?",),
    ("date of death", "earlier"): ("Which film has the {r} who died first, {a} or {b}?",),
    ("date of death", "later"): ("Which film has the {r} who died later, {a} or {b}?",),
}
_BRIDGE_SAME: Final = ("Do the {r}s of {a} and {b} have the same nationality?",)


def one_hops(records: Sequence[Record], passages: Passages) -> Iterator[Asked]:
    """The single hops of every triple."""
    known = {triple: record for record in records for triple in record.evidences}
    for (subject, relation, value), record in known.items():
        if relation in HOP:
            question = HOP[relation].format(s=plain_title(subject))
            yield from _asked(record, question, value, ((subject, relation, value),), passages, kind="one hop")


def two_hops(records: Sequence[Record], passages: Passages) -> Iterator[Asked]:
    """Chains of two triples, of one question or of two that meet in a name."""
    by_subject: dict[str, list[tuple[tuple[str, str, str], Record]]] = defaultdict(list)
    for record in records:
        for triple in record.evidences:
            by_subject[squad(plain_title(triple[0]))].append((triple, record))
    made: set[str] = set()
    for record in records:
        for first in record.evidences:
            for second, other in by_subject[squad(plain_title(first[2]))]:
                if first[1] not in OF or second[1] not in HOP or squad(second[2]) == squad(first[0]):
                    continue
                question = HOP[second[1]].format(s=OF[first[1]].format(s=plain_title(first[0])))
                if question not in made:
                    made.add(question)
                    supporting = tuple(dict.fromkeys((*record.supporting, *other.supporting)))
                    both = record.model_copy(update={"supporting": supporting})
                    yield from _asked(both, question, second[2], (first, second), passages, kind="two hops")


def follow_ups(records: Sequence[Record], passages: Passages) -> Iterator[Asked]:
    """A chain asked for in two turns: the second one says "he" or "she" of what the first one found."""
    for record in records:
        for chain in _chains(record):
            (subject, first, middle), (_, second, value) = chain
            if first not in HOP or second not in HOP:
                continue
            pronoun = pronoun_in(" ".join(p.text for number in record.supporting if (p := passages(number))))
            restated = HOP[second].format(s=plain_title(middle))
            history = ((HOP[first].format(s=plain_title(subject)), middle),)
            for asked in _asked(record, restated, value, chain[1:], passages, kind="follow-up"):
                said = HOP[second].format(s=pronoun)
                yield Asked(asked.id, said, asked.kind, asked.plan, history, restated)


def pronoun_in(text: str) -> str:
    """How a text speaks of whom it is about: he, she, or it."""
    said = f" {text.casefold()} "
    counts = {word: said.count(f" {word} ") for word in ("he", "she")}
    best = max(counts, key=lambda word: counts[word])
    return best if counts[best] else "it"


def comparisons(records: Sequence[Record], passages: Passages, rng: random.Random, *, each: int) -> Iterator[Asked]:
    """Pairs of triples of the same relation that no question of the list compares; `each` of every kind."""
    by_relation: dict[str, dict[str, Known]] = defaultdict(dict)
    for record in records:
        for triple in record.evidences:
            by_relation[triple[1]].setdefault(squad(triple[0]), ((triple,), record))
    for (relation, order), wordings in _DATES.items():
        pairs = _pairs(list(by_relation[relation].values()), rng, each)
        yield from _dated(pairs, order, wordings, passages, rng, relation)
    for relation, wordings in _SAME.items():
        for one, other in _pairs(list(by_relation[relation].values()), rng, each, alike=True):
            yield from _pair(one, other, _alike(one, other), rng.choice(wordings), passages, relation)


def bridge_comparisons(
    records: Sequence[Record], passages: Passages, rng: random.Random, *, each: int
) -> Iterator[Asked]:
    """Pairs of chains, as from a film over its director to a date."""
    by_kind: dict[tuple[str, str], dict[str, Known]] = defaultdict(dict)
    for record in records:
        for chain in _chains(record):
            by_kind[chain[0][1], chain[1][1]].setdefault(squad(chain[0][0]), (chain, record))
    for (first, second), known in by_kind.items():
        if first not in ("director", "composer", "producer"):
            continue
        chains = list(known.values())
        for (relation, order), wordings in _BRIDGE_DATES.items():
            if relation == second:
                texts = [wording.replace("{r}", first) for wording in wordings]
                yield from _dated(_pairs(chains, rng, each), order, texts, passages, rng, f"{first} {second}")
        if second == "country of citizenship":
            for one, other in _pairs(chains, rng, each, alike=True):
                text = rng.choice(_BRIDGE_SAME).replace("{r}", first)
                yield from _pair(one, other, _alike(one, other), text, passages, f"{first} {second}")


Known = tuple[Chain, Record]


def _dated(
    pairs: Sequence[tuple[Known, Known]],
    order: str,
    wordings: Sequence[str],
    passages: Passages,
    rng: random.Random,
    kind: str,
) -> Iterator[Asked]:
    for one, other in pairs:
        dates = [date_of(chain[-1][2]) for chain, _ in (one, other)]
        if not all(dates) or dates[0] == dates[1]:
            continue
        earlier, later = (one, other) if dates[0] < dates[1] else (other, one)
        chain, _ = earlier if order == "earlier" else later
        yield from _pair(one, other, plain_title(chain[0][0]), rng.choice(wordings), passages, kind)


def _pair(one: Known, other: Known, answer: str, wording: str, passages: Passages, kind: str) -> Iterator[Asked]:
    chains = (one[0], other[0])
    names = [plain_title(chain[0][0]) for chain in chains]
    if squad(names[0]) == squad(names[1]):
        return
    supporting = tuple(dict.fromkeys((*one[1].supporting, *other[1].supporting)))
    record = one[1].model_copy(update={"supporting": supporting})
    triples = tuple(chain[at] for at in range(max(map(len, chains))) for chain in chains if at < len(chain))
    question = wording.format(a=names[0], b=names[1])
    yield from _asked(record, question, answer, triples, passages, kind=f"compared {kind}")


def _pairs(known: Sequence[Known], rng: random.Random, most: int, *, alike: bool = False) -> list[tuple[Known, Known]]:
    """So many pairs, drawn; where `alike`, half of them have the same value where there are any."""
    if len(known) < 2:
        return []
    by_value: dict[str, list[Known]] = defaultdict(list)
    for one in known:
        by_value[squad(one[0][-1][2])].append(one)
    twins = [group for group in by_value.values() if len(group) > 1]
    found: list[tuple[Known, Known]] = []
    for _ in range(most):
        group = rng.choice(twins) if alike and twins and rng.random() < 0.5 else known
        one, other = rng.sample(group, 2)
        found.append((one, other))
    return found


def _alike(one: Known, other: Known) -> str:
    return "yes" if squad(one[0][-1][2]) == squad(other[0][-1][2]) else "no"


def _chains(record: Record) -> Iterator[Chain]:
    for first in record.evidences:
        for second in record.evidences:
            if squad(plain_title(first[2])) == squad(plain_title(second[0])) and first != second:
                yield (first, second)


def _asked(
    record: Record, question: str, answer: str, triples: Chain, passages: Passages, *, kind: str
) -> Iterator[Asked]:
    """The question with its plan, where the passages bear the triples out."""
    made = record.model_copy(update={"question": question, "answers": (answer,), "evidences": triples})
    gold = [passage for number in record.supporting if (passage := passages(number))]
    try:
        yield Asked(f"{record.id}: {question}", question, kind, by_triples(made, gold))
    except NoPlan:
        return
