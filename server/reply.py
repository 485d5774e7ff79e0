"""A rollout as a reader sees it: events in; reasoning, content, typed steps and at the end citations and usage out.

Pure: knows neither frames nor sockets. The streamed and the whole answer are both made from it.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal

from agent.protocols.base import TextProtocol
from agent.trace import Answered, Claim, Delta, Event, Evidenced, Gathered, Merged, Step, Stopped, Trace
from server.asked import AnswerStyle
from server.citations import AnswerText, Citations, derived_claims, marks

CAIRN_VERSION: Final = 1


@dataclass(frozen=True)
class Reasoning:
    text: str


@dataclass(frozen=True)
class Content:
    text: str


Part = Reasoning | Content | Step


class Reply:
    """Reads the events of one rollout. All reasoning comes before any content."""

    def __init__(self, protocol: TextProtocol, *, style: AnswerStyle = "short") -> None:
        self._protocol = protocol
        self._style: AnswerStyle = style
        self._citations = Citations()
        self._answer = AnswerText(self._citations)
        self._claims: list[Claim] = []
        self._derived = True
        self._open_role: str | None = None
        """Role of the block that reasoning comes from now; None between blocks."""
        self._reasoned = False
        self.content = ""

    def feed(self, event: Event) -> list[Part]:
        """What this event adds."""
        if isinstance(event, Delta):
            parts = self._delta(event)
        else:
            self._open_role = None
            parts = [event, *self._step(event)]
        self.content += "".join(part.text for part in parts if isinstance(part, Content))
        return parts

    def _delta(self, delta: Delta) -> list[Part]:
        if delta.role == "answer":
            return _content(self._answer.feed(delta.text))
        if self.content:
            return []
        gap = "\n\n" if self._reasoned and delta.role != self._open_role else ""
        self._open_role, self._reasoned = delta.role, True
        return [Reasoning(gap + delta.text)]

    def _step(self, step: Step) -> list[Part]:
        match step:
            case Gathered():
                self._citations.show(step.passages, anew=self._protocol.numbering == "round")
            case Merged() if self._derived:
                self._cite(derived_claims(step.text))
            case Evidenced():
                self._derived = False
                self._cite(list(step.claims))
            case Answered():
                return _content(self._answer.finish(step.text) + self._support(step.text))
            case Stopped() if not self.content:
                return _content(_apology(step))
            case _:
                pass
        return []

    def _cite(self, claims: list[Claim]) -> None:
        """These claims carry the answer; what they cite is numbered in their order."""
        self._claims = claims
        self._citations.cited.clear()
        for claim in claims:
            self._citations.places(claim.cites)

    def _support(self, answer: str) -> str:
        """What the server adds to the short answer: the claim behind it, or all of them."""
        if self._style == "short" or not self._claims:
            return ""
        if self._style == "with_evidence":
            return "\n\n" + "\n".join(f"- {self._sentence(claim)}" for claim in self._claims)
        behind = [claim for claim in self._claims if answer.strip().lower() in claim.text.lower()]
        return "\n\n" + self._sentence((behind or self._claims)[-1])

    def _sentence(self, claim: Claim) -> str:
        return f"{claim.text} {marks(self._citations.places(claim.cites))}".rstrip()

    @property
    def annotations(self) -> list[dict[str, Any]]:
        return self._citations.annotations(self.content)

    def sources(self) -> dict[str, Any]:
        """`citations` and `search_results`, as Perplexity's clients know them; `[n]` is the n-th of both."""
        return {"citations": self._citations.urls, "search_results": self._citations.search_results}

    def summary(self, trace: Trace) -> dict[str, Any]:
        """The `cairn` object of the end."""
        evidence = [
            {"text": claim.text, "cites": self._citations.places(claim.cites), "derived": self._derived}
            for claim in self._claims
        ]
        return {
            "v": CAIRN_VERSION,
            "kind": "done",
            "trace": trace.id,
            "evidence": evidence,
            "timings": trace.timings.model_dump(),
            "stopped": trace.stopped.reason if trace.stopped else None,
        }


def usage(trace: Trace) -> dict[str, Any]:
    """OpenAI's usage object. What the environment wrote into the context counts as prompt."""
    used = trace.usage
    prompt = used.prompt_tokens + used.environment_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": used.policy_tokens,
        "total_tokens": prompt + used.policy_tokens,
        "completion_tokens_details": {"reasoning_tokens": max(0, used.policy_tokens - used.answer_tokens)},
        "num_search_queries": used.searches,
    }


def finish_reason(trace: Trace) -> Literal["stop", "length"]:
    """`length` where tokens ended the rollout, `stop` for everything else."""
    stopped = trace.stopped
    return "length" if stopped is not None and stopped.budget in ("policy_tokens", "context") else "stop"


def _content(text: str) -> list[Part]:
    return [Content(text)] if text else []


def _apology(stopped: Stopped) -> str:
    """Never an empty answer: what happened instead."""
    if stopped.reason in ("engine", "cancelled", "interrupted"):
        return ""
    return "There is no answer: the policy ended outside of its format."
