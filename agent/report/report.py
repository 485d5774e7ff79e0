"""The one schema of a report: sections of checked sentences, sources numbered once, and what could not be verified.

It is data about runs that have ended. A reader can check every sentence again: the passages are in it.
"""

from datetime import datetime
from typing import Final, Literal

from pydantic import Field

from agent.evidence import Frozen, WebAddress
from agent.trace import Check

REPORT_VERSION: Final = 1

OutlineBy = Literal["user", "model", "sources"]
SectionState = Literal["waiting", "running", "researched", "left_out", "failed", "cancelled"]
ReportState = Literal["running", "done", "cut", "failed", "cancelled", "interrupted"]


class ReportBudget(Frozen):
    """What a whole report may use, over its outline and all of its sections."""

    seconds: float = Field(default=300.0, gt=0)
    searches: int = Field(default=48, ge=1)
    passages: int = Field(default=240, ge=1, description="Passages that the policy is shown.")
    tokens: int = Field(default=24_000, ge=1, description="Tokens that the model writes.")
    credits: float = Field(default=100.0, ge=0, description="What paid searches may cost.")


class ReportUsage(Frozen):
    """What was used until now."""

    seconds: float = 0.0
    searches: int = 0
    passages: int = 0
    tokens: int = 0
    credits: float = 0.0
    usd: float = 0.0
    """What the paid searches cost, by the prices in the settings."""


class PlannedSection(Frozen):
    """A section before it is researched."""

    heading: str
    question: str


class Outline(Frozen):
    """What the report is to hold."""

    title: str
    sections: tuple[PlannedSection, ...]
    by: OutlineBy = Field(
        description="user: the request named the sections; model: it wrote them; sources: made from what a search for "
        "the question found."
    )
    note: str = Field(default="", description="Why it was not made as usual.")


class SourcePassage(Frozen):
    """Text of a source that a sentence rests on, as the search gave it."""

    id: str
    title: str
    text: str


class ReportSource(Frozen):
    """A document that the report cites."""

    number: int = Field(description="From 1, in the order in which the report cites them.")
    source: str = Field(description="Where it was found, for example web, news, arxiv, corpus or kg.")
    title: str
    url: WebAddress = Field(description='"" where it has none.')
    date: str = Field(description='ISO date; "" where the source gives none.')
    passages: tuple[SourcePassage, ...]


class SourceQuote(Frozen):
    """Words of a source, unchanged: `text` is `[start:end]` of the passage with this id."""

    source: int
    passage: str
    start: int
    end: int
    text: str


class ReportSentence(Frozen):
    """One sentence of a section. The checker calls it supported by the sources that it cites."""

    text: str
    kind: Literal["claim", "quote"] = Field(description="claim: the model's own words; quote: the source's.")
    sources: tuple[int, ...]
    check: Check
    quotes: tuple[SourceQuote, ...] = Field(description="The words that support it.")


class Section(Frozen):
    heading: str
    question: str
    state: SectionState
    why: str = Field(default="", description="Where it was not researched to its end, why.")
    sentences: tuple[ReportSentence, ...] = ()
    run: str = Field(default="", description="Id of its run, whose trace shows each search.")

    @property
    def only_quotes(self) -> bool:
        return bool(self.sentences) and all(sentence.kind == "quote" for sentence in self.sentences)


class Contradiction(Frozen):
    """Two statements that cannot both be true."""

    section: str
    says: str
    says_sources: tuple[int, ...] = Field(description="Empty: only the model says it.")
    against: str
    against_sources: tuple[int, ...]


class Unverified(Frozen):
    """What a run claimed and no source that it cites says."""

    section: str
    text: str


class Report(Frozen):
    version: Literal[1] = REPORT_VERSION
    id: str
    title: str
    question: str
    state: ReportState = Field(
        description="done; cut: a budget ended or the user wanted it now, and sections are left out; failed: no "
        "section could be researched; cancelled; interrupted: the server that ran it ended."
    )
    created: datetime
    outline_by: OutlineBy
    note: str = ""
    sections: tuple[Section, ...] = ()
    sources: tuple[ReportSource, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    unverified: tuple[Unverified, ...] = ()
    budget: ReportBudget
    used: ReportUsage = ReportUsage()
    policy: str = ""
    protocol: str = ""
    cairn: str = Field(default="", description="Version of Cairn.")

    def ended(self, state: ReportState) -> "Report":
        """The report, where it ended so without being able to say it: what was not done is not waited for."""
        done = (
            section.model_copy(update={"state": "cancelled", "why": section.why or f"the report was {state}"})
            if section.state in ("waiting", "running")
            else section
            for section in self.sections
        )
        return self.model_copy(update={"state": state, "sections": tuple(done)})

    @property
    def sentences(self) -> tuple[ReportSentence, ...]:
        return tuple(sentence for section in self.sections for sentence in section.sentences)
