"""From the sections' runs to a report: sources numbered once, nothing said twice, doubts named. Pure."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Final, TypeVar

from agent import __version__
from agent.checks import check_claim
from agent.checks.claims import claims_of
from agent.checks.relevance import content_words
from agent.checks.tokens import sentences
from agent.evidence import Passage
from agent.report.outline import BETWEEN, document_of, one_line
from agent.report.report import (
    Contradiction,
    Outline,
    PlannedSection,
    Report,
    ReportBudget,
    ReportSentence,
    ReportSource,
    ReportState,
    ReportUsage,
    Section,
    SectionState,
    SourcePassage,
    SourceQuote,
    Unverified,
)
from agent.report.sentences import ENOUGH, FoundSentence, chosen, plain, unsaid
from agent.trace import DOUBTED, Claim, Gathered, Searched, SearchFailed, Trace

Sides = tuple[str, tuple[Passage, ...], str, tuple[Passage, ...]]
"""What is said and by whom (none: the model alone), and what is said against it and by whom."""
_READ: Final = 12


def refuted(trace: Trace, kept: Sequence[FoundSentence]) -> Iterator[Sides]:
    """The claims of a run that a sentence of a page which they cite contradicts by itself, each with that sentence.

    A claim in short whose value is in a sentence of the section that was kept is none: its relation is put wrongly.
    """
    claims, shown = claims_of(trace)
    for claim in claims:
        value = content_words(claim.text.rpartition(": ")[2])
        if claim.check == "contradicted" and not any(value <= one.words for one in kept):
            cited = [passage for number in claim.cites for passage in shown.get(number, ())]
            sides = ((said, passage) for passage in cited for said in _against(claim.text, passage))
            for against, passage in islice(sides, 1):
                yield plain(claim.text), (), against, (passage,)


def disputed(sentence: FoundSentence, passages: Sequence[Passage]) -> Iterator[Sides]:
    """Other documents about the same thing that contradict a sentence of the report.

    A page about something else that has another date or name says nothing against it: only pages with the same title,
    or whose sentence has every word of the title, are compared.
    """
    own = {document_of(passage) for passage in sentence.passages}
    topic = content_words(sentence.passages[0].title)
    if not topic:
        return
    others = [p for p in passages if document_of(p) not in own and topic & content_words(f"{p.title} {p.text}")]
    for passage in others[:_READ]:
        against = next(_against(sentence.text, passage), "")
        if against and (topic == content_words(passage.title) or topic <= content_words(against)):
            yield sentence.text, sentence.passages, against, (passage,)


def _against(text: str, passage: Passage) -> Iterator[str]:
    """The sentences of a passage that contradict a text, each by itself; none where the whole passage does not."""
    claim = Claim(text=text, cites=(1,))
    if check_claim(claim, {1: (passage,)}).check == "contradicted":
        for found in sentences(passage.text):
            said = passage.text[found.start : found.end]
            if check_claim(claim, {1: (passage.model_copy(update={"text": said}),)}).check == "contradicted":
                yield plain(said)


T = TypeVar("T")
_MOST_UNVERIFIED: Final = 30
_MOST_CONTRADICTIONS: Final = 30
_ABOVE: Final = "what was found is in the sections above"
_NOTHING: Final = "nothing was found that could be verified"
_CLAIM_CHARS: Final = 600


@dataclass(frozen=True)
class SectionResult:
    """What came of one section."""

    planned: PlannedSection
    state: SectionState = "waiting"
    why: str = ""
    trace: Trace | None = None
    passages: tuple[Passage, ...] = ()
    """That the section was made from, best first."""
    sentences: tuple[FoundSentence, ...] = ()
    refused: tuple[str, ...] = ()
    """Sentences that a model wrote and no quotation supports."""
    about: str = ""
    """The report's question."""
    written: bool = False
    """Whether a model wrote the sentences."""

    def without_repeats(self, said: Sequence[FoundSentence]) -> tuple[FoundSentence, ...]:
        """Its sentences; instead of those that earlier sections have, others of its passages."""
        if not any(sentence.repeats(said) for sentence in self.sentences):
            return self.sentences
        if self.written:
            return tuple(sentence for sentence in self.sentences if not sentence.repeats(said))
        return self.choose(said=said)

    def choose(self, *, said: Sequence[FoundSentence] = (), enough: int = ENOUGH) -> tuple[FoundSentence, ...]:
        """Sentences of its run and its passages."""
        planned = self.planned
        found = chosen(
            planned.question,
            self.trace,
            self.passages,
            about=self.about,
            focus=planned.heading.rsplit(BETWEEN, 1)[-1],
            said=said,
            enough=enough,
        )
        return tuple(found)


@dataclass(frozen=True)
class ReportHead:
    """What a report says of itself."""

    id: str
    question: str
    created: datetime
    budget: ReportBudget
    policy: str
    protocol: str


@dataclass
class _Sources:
    """Documents get their numbers in the order in which they are cited."""

    numbers: dict[str, int] = field(default_factory=dict[str, int])
    passages: dict[int, dict[tuple[str, str], Passage]] = field(
        default_factory=dict[int, dict[tuple[str, str], Passage]]
    )

    def number(self, passage: Passage) -> int:
        number = self.numbers.setdefault(document_of(passage), len(self.numbers) + 1)
        self.passages.setdefault(number, {}).setdefault((passage.id, passage.text), passage)
        return number

    def all_of(self, passages: Iterable[Passage]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(map(self.number, passages)))

    def listed(self) -> Iterator[ReportSource]:
        for number, kept in self.passages.items():
            passages = list(kept.values())
            first, titles = passages[0], {passage.title for passage in passages}
            yield ReportSource(
                number=number,
                source=first.source,
                title=first.title if len(titles) == 1 else first.title.split(BETWEEN, 1)[0],
                url=first.url,
                date=max(passage.date for passage in passages),
                passages=tuple(SourcePassage(id=p.id, title=p.title, text=p.text) for p in passages),
            )


def assemble(
    head: ReportHead, outline: Outline, results: Sequence[SectionResult], *, state: ReportState, used: ReportUsage
) -> Report:
    """The report, as far as its sections are done."""
    sources, said, sections = _Sources(), list[FoundSentence](), list[Section]()
    contradictions: list[Contradiction] = []
    shown = _shown(results)
    for result in results:
        kept = result.without_repeats(said)
        said += kept
        sections.append(_section(result, kept, sources))
        sides = [
            *(refuted(result.trace, kept) if result.trace else ()),
            *(s for one in kept for s in disputed(one, shown)),
        ]
        contradictions += (_contradiction(result.planned.heading, side, sources) for side in sides)
    refused = {one.says for one in contradictions}
    return Report(
        id=head.id,
        title=outline.title,
        question=head.question,
        state=state,
        created=head.created,
        outline_by=outline.by,
        note=outline.note,
        sections=tuple(sections),
        contradictions=_once(contradictions)[:_MOST_CONTRADICTIONS],
        unverified=_once(one for result in results for one in _unverified(result, refused))[:_MOST_UNVERIFIED],
        sources=tuple(sources.listed()),
        budget=head.budget,
        used=used,
        policy=head.policy,
        protocol=head.protocol,
        cairn=__version__,
    )


def unsupported(report: Report) -> list[ReportSentence]:
    """The sentences that the checker does not call supported when they are checked again: none, in a report of ours."""
    shown = {
        source.number: [Passage(source=source.source, **passage.model_dump()) for passage in source.passages]
        for source in report.sources
    }
    return [
        sentence
        for sentence in report.sentences
        if check_claim(Claim(text=sentence.text, cites=sentence.sources), shown).check in DOUBTED
    ]


def _shown(results: Iterable[SectionResult]) -> list[Passage]:
    """Every passage that a run was shown or a section was made from."""
    passages: dict[tuple[str, str], Passage] = {}
    for result in results:
        steps = result.trace.steps if result.trace else ()
        gathered = [passage for step in steps if isinstance(step, Gathered) for passage in step.passages]
        passages |= {passage.identity: passage for passage in (*gathered, *result.passages)}
    return list(passages.values())


def _section(result: SectionResult, kept: Sequence[FoundSentence], sources: _Sources) -> Section:
    why = result.why
    if result.state == "researched" and not kept:
        why = _failure(result.trace) or why or (_ABOVE if result.sentences else _NOTHING)
    return Section(
        heading=result.planned.heading,
        question=result.planned.question,
        state=result.state,
        why=why,
        sentences=tuple(_sentence(one, sources) for one in kept),
        run=result.trace.id if result.trace else "",
    )


def _failure(trace: Trace | None) -> str:
    """Why a run that found nothing at all did not, where its searches failed."""
    steps = trace.steps if trace else ()
    if any(isinstance(step, Searched) and step.passages for step in steps):
        return ""
    return next((f"its searches failed: {step.why}" for step in steps if isinstance(step, SearchFailed)), "")


def _sentence(one: FoundSentence, sources: _Sources) -> ReportSentence:
    numbers = sources.all_of(one.passages)
    quotes = tuple(
        SourceQuote(
            source=sources.number(passage := one.passages[quote.number - 1]),
            passage=passage.id,
            start=quote.start,
            end=quote.end,
            text=quote.text,
        )
        for quote in one.quotes
    )
    return ReportSentence(text=one.text, kind=one.kind, sources=numbers, check=one.check, quotes=quotes)


def _contradiction(heading: str, sides: Sides, sources: _Sources) -> Contradiction:
    says, by, against, other = sides
    return Contradiction(
        section=heading,
        says=one_line(says, _CLAIM_CHARS),
        says_sources=sources.all_of(by),
        against=one_line(against, _CLAIM_CHARS),
        against_sources=sources.all_of(other),
    )


def _unverified(result: SectionResult, named: Collection[str]) -> Iterator[Unverified]:
    """What a run claimed and no source says, but for what is named as contradicted."""
    for text in (*(unsaid(result.trace) if result.trace else ()), *result.refused):
        if (said := one_line(text, _CLAIM_CHARS)) not in named:
            yield Unverified(section=result.planned.heading, text=said)


def _once(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))


def left_out(result: SectionResult, why: str, state: SectionState = "left_out") -> SectionResult:
    """The section, not researched."""
    return replace(result, state=state, why=why)
