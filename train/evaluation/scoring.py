"""What makes a `QuestionResult` of what was said to a question."""

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from agent.checks.claims import read_claims
from agent.evidence import Passage
from agent.trace import Answered, Evidenced, Gathered, SearchFailed, Step, Stopped, Timings, Trace, Usage
from train.evaluation.answer import AgentAnswer
from train.evaluation.gold import GoldBook
from train.evaluation.measure import measure, measure_answer, measure_reply
from train.evaluation.questions import GoldQuestion
from train.evaluation.respondents import AskFailed, Said
from train.evaluation.result import Failure, QuestionResult
from train.evaluation.support import claims_of

if TYPE_CHECKING:
    from train.evaluation.judge import Judge


@dataclass(frozen=True)
class Scoring:
    """How answers are scored, the same for every question of a run."""

    agent: str = ""
    """Who answers, for the traces of agents that show none."""
    book: GoldBook | None = None
    """What the searched corpus has of the gold passages."""
    judge: "Judge | None" = None
    """Says, too, whether answers are right."""
    judge_blocks: bool = False
    """The judge also looks at what was shown and merged, sentence by sentence."""

    async def result(self, question: GoldQuestion, said: Said) -> tuple[QuestionResult, Trace]:
        """Score what was said; an answer without a trace gets a small one, of what can be shown of it."""
        if isinstance(said, Trace):
            return await self._judged(question, score_trace(question, said, book=self.book), said), said
        trace = shown(said, question, self.agent)
        result = score_answer(question, said, book=self.book).model_copy(update={"trace": trace.id})
        return await self._judged(question, result), trace

    async def _judged(
        self, question: GoldQuestion, result: QuestionResult, trace: Trace | None = None
    ) -> QuestionResult:
        """With the judge's figures; what failed is not judged."""
        if self.judge is None or result.status == "failed":
            return result
        looked_at = trace if self.judge_blocks else None
        figures = await self.judge.figures(question, result.prediction, looked_at, abstained=result.abstained)
        return result.model_copy(update={"metrics": result.metrics | figures})


def failed(question: GoldQuestion, error: AskFailed) -> QuestionResult:
    """The record of a question that got no answer."""
    blank = _scored(question, "", {})
    return blank.model_copy(update={"status": "failed", "failure": error.kind, "detail": str(error)})


def score_text(question: GoldQuestion, text: str) -> QuestionResult:
    """Score an answer of which nothing else is known."""
    return _scored(question, text, measure_answer(question, text))


def score_answer(question: GoldQuestion, answer: AgentAnswer, *, book: GoldBook | None = None) -> QuestionResult:
    """Score what an agent without a trace said."""
    return _scored(question, answer.text, measure_reply(question, answer, book=book)).model_copy(
        update={
            "citations": tuple(citation.name for citation in answer.citations),
            "said": "" if answer.said == answer.text else answer.said,
            "stopped": "answered",
        }
    )


def score_trace(question: GoldQuestion, trace: Trace, *, book: GoldBook | None = None) -> QuestionResult:
    """Score a rollout. One that an engine or a source failed has no figures: they would say nothing of the policy."""
    stopped, failure = trace.stopped, _failure(trace)
    metrics = {} if failure else measure(question, trace, book=book)
    return _scored(question, trace.answer or "", metrics).model_copy(
        update={
            "citations": _cited(trace),
            "status": "failed" if failure else "scored",
            "failure": failure,
            "stopped": stopped.reason if stopped else "interrupted",
            "budget": (stopped and stopped.budget) or "",
            "detail": _detail(trace, failure),
            "trace": trace.id,
        }
    )


def shown(answer: AgentAnswer, question: GoldQuestion, agent: str) -> Trace:
    """What can be shown of an answer without a trace: its citations as passages, what cites them, and the end."""
    passages = tuple(
        Passage(id=c.id or c.url, source="cited", title=c.title, text=c.text, url=c.url, rank=n, number=n)
        for n, c in enumerate(answer.citations, start=1)
    )
    claims = tuple(claim for claim in read_claims(answer.said) if claim.cites)
    steps: list[Step] = [Gathered(round=1, passages=passages)] if passages else []
    steps += [Evidenced(text=answer.said, claims=claims)] if claims else []
    steps += [Answered(text=answer.text), Stopped(reason="answered")]
    return Trace(
        id=uuid4().hex,
        history=question.history,
        question=question.question,
        protocol="",
        policy=agent,
        steps=steps,
        passages=list(passages),
        usage=Usage(
            prompt_tokens=answer.prompt_tokens or 0,
            policy_tokens=answer.completion_tokens or 0,
            searches=answer.searches or 0,
            usd=answer.usd or 0.0,
        ),
        timings=Timings(total=answer.seconds, first_token=answer.first_token),
    )


def _scored(question: GoldQuestion, prediction: str, metrics: dict[str, float | None]) -> QuestionResult:
    return QuestionResult(
        id=question.id,
        question=question.question,
        type=question.type,
        hops=question.hops,
        answers=question.answers,
        supporting=question.supporting,
        prediction=prediction,
        abstained=bool(metrics.get("abstained")),
        metrics=metrics,
    )


def _cited(trace: Trace) -> tuple[str, ...]:
    """Ids of the passages that the claims cite, each once."""
    by_number = {passage.number: passage.id for passage in trace.passages}
    numbers = [number for claim in claims_of(trace) for number in claim.cites]
    return tuple(dict.fromkeys(by_number[number] for number in numbers if number in by_number))


def _failure(trace: Trace) -> Failure:
    """What outside of the policy's doing went wrong."""
    reason = trace.stopped.reason if trace.stopped else "interrupted"
    if reason in ("interrupted", "cancelled"):
        return "interrupted"
    if reason == "engine":
        return "engine"
    return "source" if trace.infrastructure or trace.lost else ""


def _detail(trace: Trace, failure: Failure) -> str:
    if failure == "source":
        broken = next((step for step in trace.steps if isinstance(step, SearchFailed)), None)
        lost = ", ".join(trace.lost)
        return f"{broken.source}: {broken.why}" if broken else f"{lost or 'a source'} failed"
    return trace.stopped.detail if trace.stopped else ""
