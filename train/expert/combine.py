"""More questions from the evidence triples of a list: their single hops, other pairs to compare, follow-ups."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from train.evaluation.normalisations import squad
from train.expert.nations import country_of, same_value
from train.expert.plan import GoldPassages, NoPlan, PlannedQuestion
from train.expert.reading import SolvedQuestion, by_triples, date_of, in_order
from train.expert.text import plain_title

Chain = tuple[tuple[str, str, str], ...]
"""Triples of which each but the first is about what the one before it found."""

_HOP: Final[dict[str, tuple[str, ...]]] = {
    "director": ("Who directed {s}?", "Who is the director of {s}?", "Who directed the film {s}?"),
    "performer": ("Who performed {s}?", "Who is the performer of {s}?", "Who sang {s}?"),
    "composer": ("Who composed {s}?", "Who composed the music of {s}?"),
    "spouse": ("Who is the spouse of {s}?", "Who was {s} married to?", "Who is {s}'s spouse?"),
    "father": ("Who is the father of {s}?", "Who is {s}'s father?"),
    "mother": ("Who is the mother of {s}?", "Who is {s}'s mother?"),
    "child": ("Who is the child of {s}?",),
    "sibling": ("Who is the sibling of {s}?", "Who is {s}'s sibling?"),
    "date of birth": ("When was {s} born?", "What is the date of birth of {s}?", "When is {s}'s birthday?"),
    "date of death": ("When did {s} die?", "What is the date of death of {s}?"),
    "place of birth": ("Where was {s} born?", "What is the place of birth of {s}?", "In which place was {s} born?"),
    "place of death": ("Where did {s} die?", "Where was the place of death of {s}?"),
    "place of burial": ("Where was {s} buried?",),
    "cause of death": ("Why did {s} die?", "What is the cause of death of {s}?"),
    "country of citizenship": ("What nationality is {s}?", "Which country is {s} from?"),
    "country of origin": ("Which country is {s} from?", "What is the country of origin of {s}?"),
    "country": ("Which country is {s} in?", "In which country is {s}?"),
    "educated at": ("Where did {s} study?", "Where did {s} graduate from?", "Which school did {s} go to?"),
    "employer": ("Where did {s} work?", "Where does {s} work at?"),
    "publication date": ("When was {s} released?", "What is the publication date of {s}?"),
    "award received": ("Which award did {s} receive?",),
    "author": ("Who wrote {s}?", "Who is the author of {s}?"),
    "creator": ("Who created {s}?",),
    "producer": ("Who produced {s}?", "Who is the producer of {s}?"),
    "screenwriter": ("Who wrote the screenplay of {s}?",),
    "cast member": ("Who starred in {s}?",),
    "record label": ("Which label released {s}?", "What is the record label of {s}?"),
    "developer": ("Who developed {s}?",),
    "publisher": ("Who published {s}?",),
    "inception": ("When was {s} founded?", "In what year was {s} formed?"),
    "founded by": ("Who founded {s}?", "Who is the founder of {s}?"),
    "headquarters location": ("Where is the headquarters of {s}?", "In which city is {s} headquartered?"),
    "owned by": ("Who owns {s}?",),
    "parent organization": ("What is the parent organization of {s}?",),
    "head of government": ("Who heads the government of {s}?",),
    "capital": ("What is the capital of {s}?",),
    "located in the administrative territorial entity": ("Where is {s} located?",),
    "located in or next to body of water": ("Which body of water is {s} next to?",),
    "continent": ("On which continent is {s}?",),
    "member of sports team": ("Which team did {s} play for?",),
    "member of political party": ("Which party did {s} belong to?",),
    "position held": ("Which position did {s} hold?",),
    "military branch": ("In which military branch did {s} serve?",),
    "conflict": ("In which war did {s} fight?",),
    "religion": ("What is the religion of {s}?",),
    "official language": ("What is the official language of {s}?",),
    "original language of work": ("What is the original language of {s}?",),
    "part of": ("What is {s} part of?",),
    "follows": ("What came before {s}?",),
    "followed by": ("What came after {s}?",),
    "series": ("Which series is {s} part of?",),
    "platform": ("On which platform was {s} released?",),
}
"""Questions for the single hop of a relation, about the subject `{s}`; the first wording takes a pronoun, too."""
HOPS: Final = frozenset(_HOP)
_OF: Final[dict[str, tuple[str, ...]]] = {
    "director": ("the director of {s}", "the director of film {s}", "the director of the film {s}"),
    "performer": ("the performer of {s}", "the performer of song {s}", "the singer of {s}"),
    "composer": ("the composer of {s}", "the composer of film {s}"),
    "author": ("the author of {s}", "the writer of {s}"),
    "creator": ("the creator of {s}",),
    "producer": ("the producer of {s}",),
    "spouse": ("the spouse of {s}", "{s}'s spouse"),
    "father": ("the father of {s}", "{s}'s father"),
    "mother": ("the mother of {s}", "{s}'s mother"),
    "sibling": ("the sibling of {s}",),
    "founded by": ("the founder of {s}",),
    "record label": ("the label that released {s}",),
    "developer": ("the developer of {s}", "the company that developed {s}"),
    "owned by": ("the owner of {s}",),
    "country": ("the country where {s} is", "the country where {s} is located", "the country that {s} is in"),
    "country of citizenship": ("the country {s} is from", "the country of which {s} is a citizen"),
    "country of origin": ("the country {s} comes from", "the country {s} is from"),
    "located in the administrative territorial entity": (
        "the place where {s} is", "the place where {s} is located", "the place {s} is in",
    ),
    "headquarters location": ("the city where {s} has its headquarters",),
    "place of birth": ("the place where {s} was born", "the birthplace of {s}"),
    "place of death": ("the place where {s} died",),
    "educated at": ("the school where {s} studied", "the university that {s} went to"),
    "employer": ("the employer of {s}",),
    "publisher": ("the publisher of {s}", "the company that published {s}"),
    "parent organization": ("the parent organization of {s}",),
    "capital": ("the capital of {s}",),
    "member of political party": ("the party of {s}", "the political party that {s} belongs to"),
    "military branch": ("the military branch in which {s} served",),
    "religion": ("the religion of {s}",),
    "official language": ("the official language of {s}",),
    "original language of work": ("the original language of {s}",),
    "part of": ("what {s} is part of",),
}  # fmt: skip
"""What a relation's object is called in a question about that object."""
_KIN: Final = {
    ("father", "father"): "paternal grandfather",
    ("father", "mother"): "paternal grandmother",
    ("mother", "father"): "maternal grandfather",
    ("mother", "mother"): "maternal grandmother",
    ("spouse", "father"): "father-in-law",
    ("spouse", "mother"): "mother-in-law",
    ("spouse", "sibling"): "sibling-in-law",
    ("father", "sibling"): "uncle or aunt",
}
"""Two relations in a row that have a word of their own."""
_KINDRED: Final = ("Who is the {k} of {s}?", "Who is {s}'s {k}?")
DATES: Final = {
    ("date of birth", "earlier"): (
        "Who was born first, {a} or {b}?", "Who is older, {a} or {b}?", "Who was born earlier, {a} or {b}?",
        "Was {a} or {b} born first?", "Who was born first out of {a} and {b}?",
    ),
    ("date of birth", "later"): ("Who was born later, {a} or {b}?", "Who is younger, {a} or {b}?"),
    ("date of death", "earlier"): ("Who died first, {a} or {b}?", "Who died earlier, {a} or {b}?"),
    ("date of death", "later"): ("Who died later, {a} or {b}?",),
    ("publication date", "earlier"): (
        "Which film came out first, {a} or {b}?", "Which film was released first, {a} or {b}?",
        "Which film came out earlier, {a} or {b}?", "Which was released earlier, {a} or {b}?",
    ),
    ("publication date", "later"): (
        "Which film was released more recently, {a} or {b}?", "Which film came out later, {a} or {b}?",
        "Which was released later, {a} or {b}?",
    ),
    ("inception", "earlier"): (
        "Which was founded first, {a} or {b}?", "Which was formed first, {a} or {b}?",
        "Which was established earlier, {a} or {b}?", "Which is older, {a} or {b}?",
        "Which company was founded first, {a} or {b}?", "Which band was formed first, {a} or {b}?",
        "Which museum was established first, {a} or {b}?", "Which university was founded earlier, {a} or {b}?",
        "Which magazine was started first, {a} or {b}?",
    ),
    ("inception", "later"): (
        "Which was founded later, {a} or {b}?", "Which was established more recently, {a} or {b}?",
    ),
}  # fmt: skip
"""Relation, and which of two is wanted → questions."""
_SAME: Final = {
    "country of citizenship": (
        "Are {a} and {b} of the same nationality?", "Do {a} and {b} have the same nationality?",
        "Were {a} and {b} of the same nationality?", "Are {a} and {b} both from the same country?",
        "Were {a} and {b} from the same country?", "Does {a} have the same nationality as {b}?",
    ),
    "country of origin": (
        "Are {a} and {b} from the same country?", "Did the movies {a} and {b} originate from the same country?",
        "Are the movies {a} and {b} from the same country?", "Are both {a} and {b} from the same country?",
    ),
    "country": (
        "Are {a} and {b} located in the same country?", "Are both {a} and {b} in the same country?",
        "Are both {a} and {b} located in the same country?", "Are {a} and {b} both located in the same country?",
    ),
}  # fmt: skip
_BRIDGE_DATES: Final = {
    ("date of birth", "earlier"): (
        "Which film has the {r} who was born first, {a} or {b}?", "Which film has the {r} born earlier, {a} or {b}?",
        "Which film has the {r} who is older, {a} or {b}?", "Which film whose {r} was born first, {a} or {b}?",
        "Which film has the {r} who is older than the other, {a} or {b}?",
    ),
    ("date of birth", "later"): (
        "Which film has the {r} who was born later, {a} or {b}?", "Which film has the {r} born later, {a} or {b}?",
        "Which film whose {r} is younger, {a} or {b}?", "Which film has the {r} who is younger, {a} or {b}?",
    ),
    ("date of death", "earlier"): (
        "Which film has the {r} who died first, {a} or {b}?", "Which film has the {r} died earlier, {a} or {b}?",
        "Which film has the {r} who died earlier, {a} or {b}?",
    ),
    ("date of death", "later"): (
        "Which film has the {r} who died later, {a} or {b}?", "Which film has the {r} died later, {a} or {b}?",
    ),
}  # fmt: skip
_BRIDGE_SAME: Final = (
    "Do the {r}s of {a} and {b} have the same nationality?",
    "Do both films {a} and {b} have the {r}s that share the same nationality?",
    "Are both {r} of film {a} and {r} of film {b} from the same country?",
    "Are the {r}s of films {a} and {b} both from the same country?",
    "Do both {r}s of films {a} and {b} have the same nationality?",
    "Do {r} of film {a} and {r} of film {b} share the same nationality?",
    "Do both films {a} and {b} have the {r}s from the same country?",
)


def hop(relation: str, subject: str) -> str:
    """A question for the object of a relation; the same relation and subject always give the same wording."""
    return _worded(_HOP[relation], relation, subject).format(s=subject)


def hop_of_pronoun(relation: str, pronoun: str) -> str:
    """The same about "he", "she" or "it"."""
    return _HOP[relation][0].format(s=pronoun)


def called(relation: str, subject: str) -> str:
    """What the object of a relation is called by its subject; empty where there is no such phrase."""
    return _worded(_OF[relation], relation, subject).format(s=subject) if relation in _OF else ""


def two_hop(first: str, second: str, subject: str) -> str:
    """A question over two relations in a row; empty where there are no words for it."""
    if (first, second) in _KIN:
        return _worded(_KINDRED, first, subject).format(k=_KIN[first, second], s=subject)
    inner = called(first, subject)
    if not inner or second not in HOPS:
        return ""
    wordings = [one for one in _HOP[second] if "{s}'s" not in one or not inner.endswith("'s")]
    return _worded(wordings, second, subject).format(s=inner)


def _worded(wordings: Sequence[str], relation: str, subject: str) -> str:
    return random.Random(f"{relation} {subject}").choice(wordings)


def one_hops(records: Sequence[SolvedQuestion], passages: GoldPassages) -> Iterator[PlannedQuestion]:
    """The single hops of every triple."""
    known = {triple: record for record in records for triple in record.evidences}
    for (subject, relation, value), record in known.items():
        if relation in HOPS:
            question = hop(relation, plain_title(subject))
            yield from _questions(record, question, value, ((subject, relation, value),), passages, kind="one hop")


def two_hops(records: Sequence[SolvedQuestion], passages: GoldPassages) -> Iterator[PlannedQuestion]:
    """Chains of two triples."""
    made: set[str] = set()
    for chain, record in chains(records):
        (subject, first, _), (_, second, value) = chain
        question = two_hop(first, second, plain_title(subject))
        if question and question not in made:
            made.add(question)
            yield from _questions(record, question, value, chain, passages, kind="two hops")


def follow_ups(records: Sequence[SolvedQuestion], passages: GoldPassages) -> Iterator[PlannedQuestion]:
    """A chain over two turns: the second question says "he" or "she" of what the first one found."""
    for chain, record in chains(records):
        (subject, first, middle), (_, second, value) = chain
        if first not in HOPS or second not in HOPS:
            continue
        pronoun = pronoun_in(" ".join(p.text for number in record.supporting if (p := passages(number))))
        restated = hop(second, plain_title(middle))
        history = ((hop(first, plain_title(subject)), middle),)
        for planned in _questions(record, restated, value, chain[1:], passages, kind="follow-up"):
            said = hop_of_pronoun(second, pronoun)
            yield PlannedQuestion(f"{planned.id} after {subject}", said, planned.kind, planned.plan, history, restated)


def chains(records: Sequence[SolvedQuestion]) -> Iterator["Known"]:
    """Two triples, of one question or of two, that meet in a name, with the passages of both."""
    by_subject: dict[str, list[tuple[tuple[str, str, str], SolvedQuestion]]] = defaultdict(list)
    for record in records:
        for triple in record.evidences:
            by_subject[squad(plain_title(triple[0]))].append((triple, record))
    for record in records:
        for first in record.evidences:
            for second, other in by_subject.get(squad(plain_title(first[2])), ()):
                if squad(second[2]) != squad(first[0]) and second != first:
                    supporting = tuple(dict.fromkeys((*record.supporting, *other.supporting)))
                    yield (first, second), record.model_copy(update={"supporting": supporting})


def pronoun_in(text: str) -> str:
    """How a text speaks of whom it is about: he, she, or it."""
    said = f" {text.casefold()} "
    counts = {word: said.count(f" {word} ") for word in ("he", "she")}
    best = max(counts, key=lambda word: counts[word])
    return best if counts[best] else "it"


def comparisons(
    records: Sequence[SolvedQuestion], passages: GoldPassages, rng: random.Random, *, each: int
) -> Iterator[PlannedQuestion]:
    """Pairs of triples of the same relation that no question of the list compares; `each` of every kind."""
    by_relation: dict[str, dict[str, Known]] = defaultdict(dict)
    for record in records:
        for triple in record.evidences:
            by_relation[triple[1]].setdefault(squad(triple[0]), ((triple,), record))
    for (relation, order), wordings in DATES.items():
        pairs = _pairs(list(by_relation[relation].values()), rng, each)
        yield from _dated(pairs, order, wordings, passages, rng, relation)
    for relation, wordings in _SAME.items():
        for one, other in _pairs(list(by_relation[relation].values()), rng, each, alike=True):
            yield from _pair(one, other, _alike(one, other), rng.choice(wordings), passages, relation)


_LEAST_POOL: Final = 8
"""Chains of a kind; pairs of fewer would be the same few again and again."""


def bridge_comparisons(
    records: Sequence[SolvedQuestion], passages: GoldPassages, rng: random.Random, *, each: int
) -> Iterator[PlannedQuestion]:
    """Pairs of chains, as from a film over its director to a date."""
    by_kind: dict[tuple[str, str], dict[str, Known]] = defaultdict(dict)
    for chain, record in chains(records):
        by_kind[chain[0][1], chain[1][1]].setdefault(squad(chain[0][0]), (chain, record))
    for (first, second), known in by_kind.items():
        if first not in ("director", "composer", "producer"):
            continue
        all_known = list(known.values())
        if len(all_known) < _LEAST_POOL:
            continue
        for (relation, order), wordings in _BRIDGE_DATES.items():
            if relation == second:
                texts = [wording.replace("{r}", first) for wording in wordings]
                yield from _dated(_pairs(all_known, rng, each), order, texts, passages, rng, f"{first} {second}")
        if second == "country of citizenship":
            for one, other in _pairs(all_known, rng, each, alike=True):
                text = rng.choice(_BRIDGE_SAME).replace("{r}", first)
                yield from _pair(one, other, _alike(one, other), text, passages, f"{first} {second}")


Known = tuple[Chain, SolvedQuestion]


def _dated(
    pairs: Sequence[tuple[Known, Known]],
    order: str,
    wordings: Sequence[str],
    passages: GoldPassages,
    rng: random.Random,
    kind: str,
) -> Iterator[PlannedQuestion]:
    for one, other in pairs:
        dates = [date_of(chain[-1][2]) for chain, _ in (one, other)]
        if not in_order(*dates):
            continue
        earlier, later = (one, other) if dates[0] < dates[1] else (other, one)
        chain, _ = earlier if order == "earlier" else later
        yield from _pair(one, other, plain_title(chain[0][0]), rng.choice(wordings), passages, kind)


def _pair(
    one: Known, other: Known, answer: str, wording: str, passages: GoldPassages, kind: str
) -> Iterator[PlannedQuestion]:
    chains = (one[0], other[0])
    names = [plain_title(chain[0][0]) for chain in chains]
    if squad(names[0]) == squad(names[1]):
        return
    supporting = tuple(dict.fromkeys((*one[1].supporting, *other[1].supporting)))
    record = one[1].model_copy(update={"supporting": supporting})
    triples = tuple(chain[at] for at in range(max(map(len, chains))) for chain in chains if at < len(chain))
    question = wording.format(a=names[0], b=names[1])
    yield from _questions(record, question, answer, triples, passages, kind=f"compared {kind}")


def _pairs(known: Sequence[Known], rng: random.Random, most: int, *, alike: bool = False) -> list[tuple[Known, Known]]:
    """Drawn pairs; where `alike`, half of them have the same value where there are any."""
    if len(known) < 2:
        return []
    by_value: dict[str, list[Known]] = defaultdict(list)
    for one in known:
        by_value[squad(country_of(one[0][-1][2]))].append(one)
    shared = [group for group in by_value.values() if len(group) > 1]
    found: list[tuple[Known, Known]] = []
    for _ in range(most):
        group = rng.choice(shared) if alike and shared and rng.random() < 0.5 else known
        one, other = rng.sample(group, 2)
        found.append((one, other))
    return found


def _alike(one: Known, other: Known) -> str:
    return "yes" if same_value(one[0][-1][2], other[0][-1][2]) else "no"


def _questions(
    record: SolvedQuestion, question: str, answer: str, triples: Chain, passages: GoldPassages, *, kind: str
) -> Iterator[PlannedQuestion]:
    """The question with its plan, where the passages bear the triples out."""
    made = record.model_copy(update={"question": question, "answers": (answer,), "evidences": triples})
    gold = [passage for number in record.supporting if (passage := passages(number))]
    try:
        yield PlannedQuestion(f"{record.id}: {question}", question, kind, by_triples(made, gold))
    except NoPlan:
        return
