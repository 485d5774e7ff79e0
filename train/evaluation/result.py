"""The record of one question: what was said, how it was scored, or why it could not be."""

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

Status = Literal["scored", "failed"]
Failure = Literal[
    "", "engine", "source", "timeout", "rate", "server", "connection", "refused", "malformed", "interrupted"
]
FAILURES: Mapping[Failure, str] = {
    "engine": "the engine behind the policy failed",
    "source": "a source failed, and no other one replaced it",
    "timeout": "no answer within the time",
    "rate": "too many requests (429), also after waiting",
    "server": "the server failed (5xx), also after retries",
    "connection": "no connection, or one that broke off",
    "refused": "the server refused the request (4xx)",
    "malformed": "the reply does not fit this interface",
    "interrupted": "it was stopped before its end",
}
"""What each kind of failure means. None of them is a wrong answer."""


class QuestionResult(BaseModel):
    """One question. Read `status` first: of a failed one only id to answers, `failure`, `detail` and `trace` count."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    question: str
    type: str
    hops: int | None
    answers: tuple[str, ...]
    """Gold; empty where the question has no answer."""
    supporting: tuple[str, ...] = ()
    """Ids of its gold passages, where they are known."""
    prediction: str
    status: Status = "scored"
    failure: Failure = ""
    """What failed outside of the agent's own doing, where `status` is failed; see `FAILURES`."""
    detail: str = ""
    """The failure in a sentence, or what a rollout's end says of itself."""
    abstained: bool = False
    """It said that it does not know."""
    metrics: dict[str, float | None] = {}
    """Every figure of this question by its name in `train.evaluation.measure.METRICS`; None: it does not apply."""
    citations: tuple[str, ...] = ()
    """What the answer cites: ids of passages where they are known, else addresses."""
    said: str = ""
    """What an agent without a trace wrote, before the short answer was taken from it; empty where it is the same."""
    stopped: str = ""
    """How a rollout ended (`Stopped.reason`); an agent without a trace: answered."""
    budget: str = ""
    """The budget that ended a forced one."""
    trace: str = ""
    """Id of its trace in traces.jsonl; empty for an agent that shows none."""
