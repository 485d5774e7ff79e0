"""What a client of reports sends: a question, perhaps its sections, a budget, and the options of a chat request."""

from typing import Annotated

from pydantic import Field

from agent.report.outline import MOST_SECTIONS
from agent.report.research import SECTIONS
from agent.sanitize.strict import Chars, Strict
from server.chat.request import Effort, RunOptions, Text

Heading = Annotated[str, Chars(300)]


class ReportBudgetOptions(Strict):
    """What a whole report may use. A request can lower what the server allows, and never raise it."""

    seconds: float | None = Field(default=None, gt=0, description="Left out: 300.")
    searches: int | None = Field(default=None, ge=1)
    passages: int | None = Field(default=None, ge=1, description="Passages that the policy is shown.")
    tokens: int | None = Field(default=None, ge=1, description="Tokens that the policy writes.")
    credits: float | None = Field(default=None, ge=0, description="What paid searches may cost.")


class ReportRequest(RunOptions):
    """A report. The other options are those of chat completions; `budgets` is then that of one section's run."""

    question: Text = Field(min_length=1, description="What the report is about.")
    sections: Annotated[list[Heading], Field(fail_fast=True, max_length=MOST_SECTIONS)] | None = Field(
        default=None, description="Headings or questions of your own; left out, the outline is made."
    )
    most_sections: int = Field(
        default=SECTIONS, ge=1, le=MOST_SECTIONS, description="The most sections of an outline that is made."
    )
    budget: ReportBudgetOptions | None = None
    reasoning_effort: Effort | None = Field(
        default=None, description="`low` halves what the report and each of its runs may use, `high` doubles it."
    )

    @property
    def effort(self) -> Effort | None:
        return self.reasoning_effort


class StreamedReportRequest(ReportRequest):
    """A report that the client waits for."""

    stream: bool | None = Field(default=None, description="Whether events are sent as they happen, the report last.")
