"""A report as headings, paragraphs and items, which each format writes in its own way. It decides what is shown."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from agent.report.report import OutlineBy, Report, ReportBudget, ReportSentence, ReportUsage, Section
from agent.sanitize.text import shown_line

QUOTES_ONLY: Final = "Every sentence of this report is quoted from the source that it cites."
QUOTES_MARKED: Final = "Sentences in quotation marks are quoted from the source that they cite."
_QUOTED_SECTION: Final = "In the words of the sources:"
_MADE_BY: Final[dict[OutlineBy, str]] = {
    "user": "The sections are the user's.",
    "model": "The model wrote the outline.",
    "sources": "The outline is made from what a search for the question found.",
}
_STATES: Final = {
    "cut": "The report is cut short.",
    "failed": "No section could be researched.",
    "cancelled": "The report was cancelled.",
    "interrupted": "The server that wrote this report ended before it was done.",
    "running": "The report is still being researched.",
}


@dataclass(frozen=True)
class Text:
    text: str
    em: bool = False


@dataclass(frozen=True)
class Cite:
    """A citation: the number of a source."""

    number: int


@dataclass(frozen=True)
class Link:
    url: str


Span = Text | Cite | Link


@dataclass(frozen=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True)
class TextBlock:
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class ListItem:
    """Of a list; with a number, a source."""

    spans: tuple[Span, ...]
    number: int = 0


Block = Heading | TextBlock | ListItem


def blocks_of(report: Report) -> Iterator[Block]:
    """Everything that a reader is shown, in order."""
    yield Heading(1, shown_line(report.title))
    spoken = [section for section in report.sections if section.sentences]
    yield _note(" ".join(_about(report, spoken)))
    only = bool(spoken) and all(section.only_quotes for section in spoken)
    for section in spoken:
        yield Heading(2, shown_line(section.heading))
        if section.only_quotes and not only:
            yield _note(_QUOTED_SECTION)
        yield TextBlock(tuple(_sentences(section, marks=not section.only_quotes)))
        if section.why:
            yield _note(f"Researched less than planned: {shown_line(section.why)}.")
    yield from _contradictions(report)
    yield from _missing(report, spoken)
    if report.sources:
        yield Heading(2, "Sources")
        for source in report.sources:
            said = " · ".join(part for part in (source.title or "(no title)", source.source, source.date) if part)
            link = (Text(" "), Link(source.url)) if source.url else ()
            yield ListItem((Text(shown_line(said)), *link), number=source.number)
    yield _note(used_line(report))


def used_line(report: Report) -> str:
    """What the report cost, beside what it might."""
    return f"Used {used_text(report.used, report.budget)}."


def used_text(used: ReportUsage, budget: ReportBudget) -> str:
    """What is used of a budget, in figures."""
    parts = [
        f"{used.seconds:.0f} of {budget.seconds:.0f} seconds",
        f"{used.searches:,} of {budget.searches:,} searches",
        f"{used.tokens:,} of {budget.tokens:,} tokens",
        *([f"${used.usd:.3f}"] if used.usd else []),
        *([f"{used.credits:g} of {budget.credits:g} credits"] if used.credits else []),
    ]
    return ", ".join(parts)


def _about(report: Report, spoken: list[Section]) -> Iterator[str]:
    policy = f" with {shown_line(report.policy)}" if report.policy else ""
    yield f"Researched by Cairn{policy} on {report.created.date().isoformat()}."
    yield _MADE_BY[report.outline_by]
    if report.note:
        yield shown_line(report.note)
    if report.state in _STATES:
        yield _STATES[report.state]
    kinds = {sentence.kind for section in spoken for sentence in section.sentences}
    if kinds == {"quote"}:
        yield QUOTES_ONLY
    elif "quote" in kinds:
        yield QUOTES_MARKED


def _sentences(section: Section, *, marks: bool) -> Iterator[Span]:
    for place, sentence in enumerate(section.sentences):
        yield Text(f"{' ' if place else ''}{_shown(sentence, marks=marks)} ")
        yield from (Cite(number) for number in sentence.sources)


def _shown(sentence: ReportSentence, *, marks: bool) -> str:
    text = shown_line(sentence.text)
    return f"“{text}”" if marks and sentence.kind == "quote" else text


def _contradictions(report: Report) -> Iterator[Block]:
    if not report.contradictions:
        return
    yield Heading(2, "Contradictions")
    for one in report.contradictions:
        who = "" if one.says_sources else "the model claimed "
        by = [Text(f"{shown_line(one.section)}: {who}"), *_quoted(one.says)]
        by += [Cite(number) for number in one.says_sources]
        against = [
            Text(f"{' ' if one.says_sources else ''}but a source says "),
            *_quoted(one.against),
            *map(Cite, one.against_sources),
        ]
        yield ListItem((*by, *against))


def _quoted(text: str) -> tuple[Text, ...]:
    return (Text(f"“{shown_line(text)}” "),)


def _missing(report: Report, spoken: list[Section]) -> Iterator[Block]:
    """What the report doesn't say, and why."""
    silent = [section for section in report.sections if not section.sentences]
    if report.unverified or silent:
        yield Heading(2, "Not verified")
    if report.unverified:
        yield TextBlock((Text("The model also claimed this, and no source that it cites says so:"),))
        for one in report.unverified:
            yield ListItem((Text(f"{shown_line(one.text)} "), Text(f"({shown_line(one.section)})", em=True)))
    if silent:
        yield TextBlock((Text("These sections are left out:" if spoken else "No section has anything to say:"),))
        for section in silent:
            yield ListItem((Text(f"{shown_line(section.heading)}: {shown_line(section.why) or section.state}"),))


def _note(text: str) -> TextBlock:
    return TextBlock((Text(text, em=True),))
