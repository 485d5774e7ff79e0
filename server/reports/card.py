"""What the API says of reports, as types: cards, pages of cards, a report with its card, and frames of a stream."""

from datetime import UTC, datetime
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.outbound.numbers import amount
from agent.report import Report, ReportEvent
from agent.report.report import ReportState, ReportUsage
from server.store.reading import LAST_SECOND
from server.store.reports import ReportRow


class _Said(BaseModel):
    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class ReportFigures(_Said):
    """What is counted of a report."""

    title: str = ""
    sections: int = Field(default=0, description="That have something to say.")
    sentences: int = 0
    sources: int = 0
    used: ReportUsage = ReportUsage()

    @classmethod
    def of(cls, report: Report) -> Self:
        return cls(
            title=report.title,
            sections=sum(bool(section.sentences) for section in report.sections),
            sentences=len(report.sentences),
            sources=len(report.sources),
            used=report.used,
        )

    @classmethod
    def read(cls, stored: str) -> Self:
        """Those of the store; what another version wrote counts as nothing."""
        try:
            return cls.model_validate_json(stored)
        except ValidationError:
            return cls()


class ReportCard(_Said):
    """A report without its text."""

    id: str
    question: str
    state: ReportState = Field(description="running, or how it ended; see the report's own.")
    created: datetime
    ended: datetime | None
    figures: ReportFigures

    @classmethod
    def of(cls, row: ReportRow) -> Self:
        states: dict[str, ReportState] = {
            "running": "running", "done": "done", "cut": "cut", "failed": "failed", "cancelled": "cancelled",
        }  # fmt: skip
        return cls(
            id=row.id,
            question=row.question,
            state=states.get(row.state, "interrupted"),
            created=datetime.fromtimestamp(amount(row.created, most=LAST_SECOND) or 0.0, UTC),
            ended=None if row.ended is None else datetime.fromtimestamp(row.ended, UTC),
            figures=ReportFigures.read(row.figures),
        )


class ReportPage(_Said):
    """Reports, the latest first."""

    reports: list[ReportCard]
    next: str | None = Field(description="What `before` must say for the next page; null on the last one.")


class ReportDetail(ReportCard):
    """A report with its text; of one that still runs, as far as it goes."""

    report: Report


class ReportReply(BaseModel):
    """The report. Of a stream, this is the last frame before `[DONE]`."""

    object: Literal["report"] = "report"
    id: str
    report: Report


class ReportFrame(BaseModel):
    """A frame of a stream before the report: something happened."""

    object: Literal["report.event"] = "report.event"
    id: str
    event: ReportEvent
