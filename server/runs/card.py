"""What the API says of runs, as types: a card in a list, a page of cards, and one run with its trace."""

from datetime import UTC, datetime
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from agent.outbound.numbers import amount
from agent.trace import Trace
from server.chat.request import ChatRequest
from server.store.reading import LAST_SECOND
from server.store.records import Origin, RunRow, State


class RunRequest(ChatRequest):
    """A question, as chat completions take it; `stream` and `stream_options` mean nothing here."""

    conversation: str = Field(default="", max_length=200, description="An id that the turns of one conversation share.")
    follows: str = Field(
        default="",
        max_length=128,
        description="Id of the run that the question follows up: its searches are used again.",
    )
    context: Literal["summary", "evidence", "all"] = Field(
        default="summary",
        description="What the policy is given of that run: its answer, its claims too, or what it was shown, too.",
    )


class _Said(BaseModel):
    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class RunCard(_Said):
    """A run without its trace."""

    id: str
    conversation: str
    question: str
    answer: str | None = Field(description="Null while it runs, and where there is none.")
    state: State = Field(description="running, or why it stopped, as `stopped.reason` in its trace.")
    origin: Literal["api", "v1"] = Field(description="api: started here; v1: a request of /v1, kept when it had ended.")
    model: str
    protocol: str
    policy: str
    created: datetime
    ended: datetime | None
    seconds: float
    rounds: int
    searches: int
    passages: int
    tokens: int = Field(description="Prompt, what the environment wrote, and what the policy sampled.")
    credits: float
    usd: float

    @classmethod
    def of(cls, row: RunRow) -> Self:
        origin: Origin = row.origin
        return cls(
            id=row.id,
            conversation=row.conversation,
            question=row.question,
            answer=row.answer,
            state=row.state,
            origin=origin,
            model=row.model,
            protocol=row.protocol,
            policy=row.policy,
            created=datetime.fromtimestamp(amount(row.created, most=LAST_SECOND) or 0.0, UTC),
            ended=None if row.ended is None else datetime.fromtimestamp(row.ended, UTC),
            seconds=row.figures.seconds,
            rounds=row.figures.rounds,
            searches=row.figures.searches,
            passages=row.figures.passages,
            tokens=row.figures.tokens,
            credits=row.figures.credits,
            usd=row.figures.usd,
        )


class RunPage(_Said):
    """Runs, the latest first."""

    runs: list[RunCard]
    next: str | None = Field(description="What `before` must say for the next page; null on the last one.")


class RunDetail(RunCard):
    """A run with its trace; of one that still runs, as far as it is stored."""

    trace: Trace
