"""From a question with its gold passages to plans: by evidence triples, by sub-questions, or by the passages alone.

Several plans may come out, the best first; the expert takes the first one that its searches bear out.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator

from train.evaluation.normalisations import squad
from train.expert.nations import same_value
from train.expert.plan import Gold, GoldPassages, NoPlan, QuotedFact, SolutionPlan
from train.expert.text import as_written, holds, mentions, plain_title, query_of, quote, shared_words

YES_NO: Final = ("yes", "no")
MOST_QUESTION_CHARS: Final = 300
_YEAR: Final = re.compile(r"\b(\d{3,4})\b")
_DAY: Final = re.compile(r"\b(\d{1,2})\b")
_MONTHS: Final = "january february march april may june july august september october november december".split()
_KEYWORDS: Final = 6
"""Words of the question that a passage is searched with where nothing names it."""
_REFERENCE: Final = re.compile(r"#(\d+)")
_RELATION: Final = re.compile(r"\s*>>\s*")


class SubQuestion(BaseModel):
    """One sub-question."""

    model_config = ConfigDict(extra="ignore")

    question: str
    answer: str = ""


class SolvedQuestion(BaseModel):
    """A question with what is known of its solution. Other fields are ignored."""

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    id: str
    question: str
    answers: tuple[str, ...] = Field(min_length=1)
    supporting: tuple[str, ...] = ()
    """Ids of the gold passages."""
    type: str = ""
    evidences: tuple[tuple[str, str, str], ...] = ()
    """(subject, relation, object), in the order of a solution."""
    decomposition: tuple[SubQuestion, ...] = ()
    """Sub-questions; `#1` stands for the answer of the first one."""

    @field_validator("decomposition", mode="before")
    @classmethod
    def _parts(cls, given: Any) -> Any:
        """Sub-questions without answers are no solution."""
        return () if given and isinstance(given[0], str) else given


@dataclass(frozen=True)
class EvidenceTriple:
    """An evidence triple with the passage that states it."""

    subject: str
    relation: str
    object: str
    passage: Gold


def plans_of(record: SolvedQuestion, passages: GoldPassages) -> list[SolutionPlan]:
    """The plans for a question, the best first.

    Raises:
        NoPlan: there is none; the message says why.
    """
    if len(record.question) > MOST_QUESTION_CHARS:
        raise NoPlan("the question is too long")
    gold = [passages(number) for number in dict.fromkeys(record.supporting)]
    if not gold:
        raise NoPlan("no gold passage is named")
    known = [passage for passage in gold if passage is not None]
    if len(known) < len(gold):
        raise NoPlan("a gold passage is not among the documents")
    if record.evidences:
        return [by_triples(record, known)]
    if record.decomposition and all(part.answer for part in record.decomposition):
        return [_by_parts(record, known)]
    plans = list(_by_passages(record, known))
    if not plans:
        raise NoPlan("no sentence of the gold passages holds the answer")
    return plans


# By triples


def by_triples(record: SolvedQuestion, gold: Sequence[Gold]) -> SolutionPlan:
    """A plan whose facts are the evidence triples; a triple about what another one found comes after it."""
    triples = [_stated(triple, gold) for triple in record.evidences]
    depths: list[int] = []
    for triple in triples:
        above = [depths[at] for at, other in enumerate(triples[: len(depths)]) if _same(other.object, triple.subject)]
        depths.append(max(above, default=-1) + 1)
    facts = [_triple_fact(triple, record.question) for triple in triples]
    stages = tuple(
        tuple(fact for fact, own in zip(facts, depths, strict=True) if own == depth) for depth in range(max(depths) + 1)
    )
    answer = record.answers[0]
    named = any(holds(triple.object, answer) or holds(answer, triple.object) for triple in triples)
    return SolutionPlan(stages, answer, "" if named and not _compares(record, triples) else _compared(record, triples))


def _stated(triple: tuple[str, str, str], gold: Sequence[Gold]) -> EvidenceTriple:
    subject, relation, value = triple
    for passage in sorted(gold, key=lambda one: not _same(one.title, subject)):
        if (_same(passage.title, subject) or mentions(passage.text, subject)) and holds(passage.text, value):
            return EvidenceTriple(subject, relation, value, passage)
    raise NoPlan("a gold passage does not state its triple")


def _triple_fact(triple: EvidenceTriple, question: str) -> QuotedFact:
    said = quote(triple.passage.text, triple.object, f"{question} {triple.relation} {triple.subject}")
    if not said:
        raise NoPlan("a sentence that would be quoted is too long")
    subject = plain_title(triple.subject)
    return QuotedFact(
        triple.passage.id, said, subject, triple.relation,
        title=subject, relation=triple.relation, value=as_written(said, triple.object),
    )  # fmt: skip


def _same(one: str, other: str) -> bool:
    return squad(plain_title(one)) == squad(plain_title(other))


def _compares(record: SolvedQuestion, triples: Sequence[EvidenceTriple]) -> bool:
    return record.answers[0].casefold() in YES_NO or any(_same(triple.subject, record.answers[0]) for triple in triples)


def _compared(record: SolvedQuestion, triples: Sequence[EvidenceTriple]) -> str:
    """What decides between two things: the value of each, and which is the earlier one or whether they are the same."""
    roots = [triple for triple in triples if not any(_same(other.object, triple.subject) for other in triples)]
    roots = list({squad(triple.subject): triple for triple in roots}.values())
    if len(roots) != 2:
        return ""
    values = [_last_of(root, triples) for root in roots]
    if None in values:
        return ""
    names = [_as_in_question(root.subject, record.question) for root in roots]
    chained = any(root.object != value for root, value in zip(roots, values, strict=True))
    values_first = "".join(f"{name}: {value}. " for name, value in zip(names, values, strict=True)) if chained else ""
    answer = record.answers[0]
    if answer.casefold() in YES_NO:
        same = same_value(str(values[0]), str(values[1]))
        if same != (answer.casefold() == "yes"):
            raise NoPlan("its values do not bear its answer out")
        return f"{values_first}{'The same.' if same else 'Not the same.'}"
    chosen = next((at for at, root in enumerate(roots) if _same(root.subject, answer)), None)
    if chosen is None:
        return ""
    decided = date_order(names, [str(value) for value in values], chosen)
    return f"{values_first}{decided}" if decided else ""


def date_order(names: Sequence[str], values: Sequence[str], chosen: int) -> str:
    """Which of two dates is the earlier or the later one, their years beside each other; empty where that is not known.

    "1929 and 1926: 1926 is earlier, Pirates of the Sky."
    """
    dates = [date_of(value) for value in values]
    if not in_order(*dates):
        return ""
    years = [str(date[0]) for date in dates]
    dates_or_years = list(values) if years[0] == years[1] else years
    how = "earlier" if dates.index(min(dates)) == chosen else "later"
    return f"{dates_or_years[0]} and {dates_or_years[1]}: {dates_or_years[chosen]} is {how}, {names[chosen]}."


def _last_of(root: EvidenceTriple, triples: Sequence[EvidenceTriple]) -> str | None:
    """The value at the end of the chain that begins with a triple; None where it is not one value."""
    if sum(_same(other.subject, root.subject) for other in triples) > 1:
        return None
    after = [triple for triple in triples if _same(triple.subject, root.object)]
    return root.object if not after else after[0].object if len(after) == 1 else None


def _as_in_question(name: str, question: str) -> str:
    """A name as the question spells it."""
    plain = plain_title(name)
    found = re.search(re.escape(plain), question, re.IGNORECASE)
    return found[0] if found else plain


def date_of(text: str) -> tuple[int, int, int]:
    """Year, month, day of a date in words, with 0 for what it does not say; nothing where there is no year."""
    year = _YEAR.search(text)
    if not year:
        return ()  # pyright: ignore[reportReturnType] - nothing to compare
    month = next((at for at, name in enumerate(_MONTHS, start=1) if name in text.casefold()), 0)
    rest = text.replace(year[0], "", 1)
    day = _DAY.search(rest)
    return int(year[0]), month, int(day[0]) if day and month else 0


def in_order(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether one of two dates is known to be the earlier one: "1950" and "12 May 1950" may be either way."""
    for first, second in zip(one, other, strict=False):
        if first != second:
            return bool(first and second)
    return False


# By sub-questions


def _by_parts(record: SolvedQuestion, gold: Sequence[Gold]) -> SolutionPlan:
    depths: list[int] = []
    facts: list[QuotedFact] = []
    for part in record.decomposition:
        references = [int(number) - 1 for number in _REFERENCE.findall(part.question)]
        if any(number >= len(depths) for number in references):
            raise NoPlan("a sub-question leans on a later one")
        depths.append(max((depths[number] for number in references), default=-1) + 1)
        facts.append(_part_fact(record, part, references, gold))
    last = record.decomposition[-1].answer
    if squad(last) not in {squad(answer) for answer in record.answers}:
        raise NoPlan("its sub-questions end in another answer")
    stages = tuple(
        tuple(fact for fact, own in zip(facts, depths, strict=True) if own == depth) for depth in range(max(depths) + 1)
    )
    return SolutionPlan(stages, record.answers[0])


def _part_fact(
    record: SolvedQuestion, part: SubQuestion, references: Sequence[int], gold: Sequence[Gold]
) -> QuotedFact:
    known = [record.decomposition[number].answer for number in references]
    wanted = _REFERENCE.sub(" ", _RELATION.sub(" ", part.question))
    holding = [passage for passage in gold if holds(passage.text, part.answer)]
    if not holding:
        raise NoPlan("no gold passage holds the answer of a sub-question")
    whole = " ".join([wanted, *known])
    passage = max(holding, key=lambda one: len(shared_words(whole, "", f"{one.title} {one.text}", most=99).split()))
    said = quote(passage.text, part.answer, whole)
    if not said:
        raise NoPlan("a sentence that would be quoted is too long")
    about = " ".join(known)
    words = shared_words(wanted, about, f"{passage.title} {passage.text}", most=4)
    if not known:  # its name is in the question
        about, words = shared_words(wanted, "", f"{passage.title} {passage.text}", most=5), ""
    _, _, relation = part.question.rpartition(">>") if ">>" in part.question else ("", "", "")
    return QuotedFact(
        passage.id, said, query_of([about]), words,
        title=plain_title(passage.title), relation=relation.strip(), value=as_written(said, part.answer),
    )  # fmt: skip


# By the passages alone


def _by_passages(record: SolvedQuestion, gold: Sequence[Gold]) -> Iterator[SolutionPlan]:
    answer, question = record.answers[0], record.question
    if len(gold) == 1:
        if fact := _fact(gold[0], "" if answer.casefold() in YES_NO else answer, question):
            yield SolutionPlan(((fact,),), answer)
        return
    if len(gold) == 2:
        yield from _comparison(record, gold)
        yield from _bridge(record, gold)


def _comparison(record: SolvedQuestion, gold: Sequence[Gold]) -> Iterator[SolutionPlan]:
    """Two things that the question names, and a fact about each."""
    answer, question = record.answers[0], record.question
    names = [plain_title(passage.title) for passage in gold]
    chooses = answer.casefold() in YES_NO or any(squad(name) == squad(answer) for name in names)
    if not all(mentions(question, name) for name in names):
        return
    facts = [
        _fact(passage, "", question, about=_as_in_question(name, question))
        for passage, name in zip(gold, names, strict=True)
    ]
    if not chooses:
        facts = [
            _fact(passage, answer, question, about=name) or fact
            for passage, name, fact in zip(gold, names, facts, strict=True)
        ]
        if not any(fact and holds(fact.quote, answer) for fact in facts):
            return
    if chooses and (dated := _dated(gold, names, question, answer)):
        yield dated
    if all(facts):
        yield SolutionPlan((tuple(fact for fact in facts if fact),), answer)


_ASKS_EARLIER: Final = re.compile(r"\b(?:first|earlier|older|oldest|earliest|before)\b")
_ASKS_LATER: Final = re.compile(r"\b(?:later|younger|last|recent|recently|newer|latest|youngest|after)\b")
_A_DATE: Final = re.compile(
    rf"\b(?:\d{{1,2}} (?:{'|'.join(_MONTHS)}) \d{{4}}|(?:{'|'.join(_MONTHS)}) \d{{1,2}}, \d{{4}}|1\d{{3}}|20\d\d)\b",
    re.IGNORECASE,
)


def _dated(gold: Sequence[Gold], names: Sequence[str], question: str, answer: str) -> SolutionPlan | None:
    """Two things of which the question asks for the earlier or the later one, by the first date in each passage."""
    earlier = bool(_ASKS_EARLIER.search(question.casefold()))
    if earlier == bool(_ASKS_LATER.search(question.casefold())):
        return None
    chosen = next((at for at, name in enumerate(names) if squad(name) == squad(answer)), None)
    found = [_A_DATE.search(passage.text) for passage in gold]
    values = [match[0] for match in found if match]
    if chosen is None or len(values) < len(gold):
        return None
    names = [_as_in_question(name, question) for name in names]
    decided = date_order(names, values, chosen)
    facts = [_fact(one, value, question, about=name) for one, value, name in zip(gold, values, names, strict=True)]
    if not decided or ("is earlier" in decided) != earlier or not all(facts):
        return None
    return SolutionPlan((tuple(fact for fact in facts if fact),), answer, decided)


def _bridge(record: SolvedQuestion, gold: Sequence[Gold]) -> Iterator[SolutionPlan]:
    """One passage names what the other one, which holds the answer, is about; or the question finds the last alone."""
    answer, question = record.answers[0], record.question
    if answer.casefold() in YES_NO:
        return
    for first, last in (gold, gold[::-1]):
        final = _fact(last, answer, question)
        name = plain_title(last.title)
        named = quote(first.text, name, question)
        if final and named and mentions(named, name):
            wanted = shared_words(question, name, f"{final.quote}") or shared_words(question, name, last.text)
            opening = QuotedFact(
                first.id, named, keywords=_keywords(question, first),
                title=plain_title(first.title), value=as_written(named, name),
            )  # fmt: skip
            yield SolutionPlan(((opening,), (replace(final, about=name, keywords=wanted),)), answer)
    for last in gold:
        if final := _fact(last, answer, question):
            yield SolutionPlan(((final,),), answer)


def _fact(passage: Gold, value: str, question: str, *, about: str = "") -> QuotedFact | None:
    said = quote(passage.text, value, question)
    if not said:
        return None
    title = plain_title(passage.title)
    name, short = about or title, as_written(said, value)
    if mentions(question, name):
        words = shared_words(question, name, f"{said} {passage.text}")
        return QuotedFact(passage.id, said, name, words, title=title, value=short)
    return QuotedFact(passage.id, said, keywords=_keywords(question, passage), title=title, value=short)


def _keywords(question: str, passage: Gold) -> str:
    return shared_words(question, "", f"{passage.title} {passage.text}", most=_KEYWORDS)
