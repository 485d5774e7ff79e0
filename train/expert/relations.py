"""Questions by template about documents whose relations are known, each with the sentences that state it."""

from collections.abc import Iterable, Iterator

from pydantic import BaseModel, ConfigDict

from train.evaluation.normalisations import squad
from train.expert.combine import HOPS, hop, hop_of_pronoun, pronoun_in, two_hop
from train.expert.plan import Gold, PlannedQuestion, QuotedFact, SolutionPlan
from train.expert.reading import SolvedQuestion
from train.expert.text import QUOTE_CHARS, as_written, holds, mentions, plain_title

_SEVERAL = frozenset("cast member|award received|member of sports team|child|sibling|part of|conflict".split("|"))
"""Relations that have several objects: one of them is no answer."""


class StatedRelation(BaseModel):
    """One relation of a document."""

    model_config = ConfigDict(extra="ignore")

    subject: str
    relation: str
    object: str
    sentences: tuple[int, ...] = ()


class DocumentWithRelations(BaseModel):
    """A document with its sentences and relations."""

    model_config = ConfigDict(extra="ignore")

    id: str
    title: str
    text: str
    sentences: tuple[str, ...]
    relations: tuple[StatedRelation, ...]


def questions_about(document: DocumentWithRelations) -> Iterator[PlannedQuestion]:
    """One-hop questions about what the document is about, with lists; two-hop ones within it; and follow-ups."""
    gold = Gold(id=document.id, title=document.title, text=document.text)
    own = _own(document)
    for number, one in enumerate(own):
        question = hop(one.relation, one.subject)
        plan = SolutionPlan(((_fact(document, one),),), one.object)
        yield PlannedQuestion(f"{document.id}-{number}", question, "one hop", plan)
        if number:
            before = own[number - 1]
            pronoun = pronoun_in(gold.text)
            history = ((hop(before.relation, before.subject), before.object),)
            said = hop_of_pronoun(one.relation, pronoun)
            yield PlannedQuestion(f"{document.id}-{number}-then", said, "follow-up", plan, history, question)
    for number, (one, other) in enumerate(_two_hops(document, own)):
        if question := two_hop(one.relation, other.relation, one.subject):
            facts = (_fact(document, one), _fact(document, other))
            plan = SolutionPlan(tuple((fact,) for fact in dict.fromkeys(facts)), other.object)
            yield PlannedQuestion(f"{document.id}-two-{number}", question, "two hops", plan)
    yield from _lists(document)


def as_record(document: DocumentWithRelations) -> SolvedQuestion | None:
    """A document's own relations as evidence triples, to be combined with those of others; None where it has none."""
    own = _own(document)
    triples = tuple((one.subject, one.relation, one.object) for one in own)
    if not triples:
        return None
    return SolvedQuestion(
        id=document.id, question="", answers=(triples[0][2],), supporting=(document.id,), evidences=triples
    )


def own_facts(document: DocumentWithRelations) -> Iterator[QuotedFact]:
    """What a document says of what it is about, relation by relation."""
    return (_fact(document, one) for one in _own(document))


def facts_of(document: DocumentWithRelations) -> Iterator[tuple[str, QuotedFact, str]]:
    """Every relation that one sentence states, whatever it is about: a question, the fact, the answer."""
    for one in _stated(document):
        fact = _fact(document, one)
        yield hop(one.relation, one.subject), fact, fact.value


_LISTS = {
    "cast member": "Who starred in {s}?",
    "award received": "Which awards did {s} receive?",
    "child": "Who are the children of {s}?",
    "sibling": "Who are the siblings of {s}?",
    "performer": "Who performed {s}?",
    "has part": "What are the parts of {s}?",
    "member of sports team": "Which teams did {s} play for?",
}


def _lists(document: DocumentWithRelations) -> Iterator[PlannedQuestion]:
    """Questions whose answer is all that one sentence names."""
    groups: dict[tuple[str, str], list[StatedRelation]] = {}
    for one in document.relations:
        if one.relation in _LISTS and squad(one.subject) == squad(plain_title(document.title)):
            groups.setdefault((one.subject, one.relation), []).append(one)
    for (subject, relation), group in groups.items():
        names = list(dict.fromkeys(one.object for one in group))
        said = next((s for s in document.sentences if all(name in s for name in names)), "")
        if len(names) > 1 and said in document.text and 0 < len(said) <= QUOTE_CHARS:
            names.sort(key=said.index)
            answer = f"{', '.join(names[:-1])} and {names[-1]}"
            fact = QuotedFact(document.id, said, subject, relation, title=subject, relation=relation, value=answer)
            yield PlannedQuestion(
                f"{document.id}-{relation}",
                _LISTS[relation].format(s=subject),
                "list",
                SolutionPlan(((fact,),), answer),
            )


def _stated(document: DocumentWithRelations) -> list[StatedRelation]:
    """The relations that have one object and a sentence that says it and can be quoted."""
    objects: dict[tuple[str, str], set[str]] = {}
    for one in document.relations:
        objects.setdefault((squad(one.subject), one.relation), set()).add(squad(one.object))
    return [
        one
        for one in document.relations
        if one.relation in HOPS
        and one.relation not in _SEVERAL
        and len(objects[squad(one.subject), one.relation]) == 1
        and _sentence(document, one)
    ]


def _own(document: DocumentWithRelations) -> list[StatedRelation]:
    """Those of what the document is about."""
    return [one for one in _stated(document) if squad(one.subject) == squad(plain_title(document.title))]


def _two_hops(
    document: DocumentWithRelations, own: Iterable[StatedRelation]
) -> Iterator[tuple[StatedRelation, StatedRelation]]:
    stated = _stated(document)
    for one in own:
        for other in stated:
            if squad(other.subject) == squad(one.object) and squad(other.object) != squad(one.subject):
                yield one, other


def _sentence(document: DocumentWithRelations, one: StatedRelation) -> str:
    said = [document.sentences[at] for at in one.sentences if at < len(document.sentences)]
    fitting = [text for text in said if holds(text, one.object) and len(text) <= QUOTE_CHARS and text in document.text]
    return max(fitting, key=lambda text: mentions(text, one.subject), default="")


def _fact(document: DocumentWithRelations, one: StatedRelation) -> QuotedFact:
    said = _sentence(document, one)
    return QuotedFact(
        document.id, said, one.subject, one.relation,
        title=one.subject, relation=one.relation, value=as_written(said, one.object),
    )  # fmt: skip
