"""A rollout as a reader sees it: events in; reasoning, content, typed steps and at the end citations and usage out.

Pure: knows neither frames nor sockets. The streamed and the whole answer are both made from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, assert_never

from agent.evidence import Passage
from agent.protocols.base import TextProtocol
from agent.trace import Answered, Claim, Delta, Event, Evidenced, Gathered, Merged, Reflected, Step, Stopped, Trace
from agent.trace.attempts import UNSEARCHED, not_in_passages, nothing_found, unsearched
from server.chat.citations import AnswerText, Citations, doubt, marks
from server.chat.profiles import DEFAULT, Profile
from server.chat.request import AnswerStyle

CAIRN_VERSION: Final = 1


@dataclass(frozen=True)
class Reasoning:
    text: str


@dataclass(frozen=True)
class Content:
    text: str


Part = Reasoning | Content | Step


class RolloutReply:
    """Reads the events of one rollout. All reasoning comes before any content."""

    def __init__(
        self,
        protocol: TextProtocol,
        *,
        style: AnswerStyle = "short",
        profile: Profile = DEFAULT,
        searchless: bool = False,
    ) -> None:
        """Begin a reply.

        Args:
            protocol: of the rollout.
            style: how much of the evidence is in the answer.
            profile: what the client needs.
            searchless: the client wanted no search; then the answer says that there was none.
        """
        self._protocol = protocol
        self._style: AnswerStyle = style
        self._profile = profile
        self._searchless = searchless
        self._citations = Citations(numbered=protocol.numbered)
        self._answer = AnswerText(self._citations, spaced=profile.marks)
        self._claims: list[Claim] = []
        self._meant: Mapping[int, tuple[Passage, ...]] = {}
        """What their numbers meant when they cited."""
        self._evidenced = False
        self._steps: list[Step] = []
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
            boxed = self._protocol.answer_in == "boxed"  # what the box holds is known when it is closed
            return [] if boxed else _content(self._answer.feed(delta.text))
        if self.content:
            return []
        gap = "\n\n" if self._reasoned and delta.role != self._open_role else ""
        self._open_role, self._reasoned = delta.role, True
        return [Reasoning(gap + delta.text)]

    def _step(self, step: Step) -> list[Part]:
        self._steps.append(step)
        match step:
            case Gathered():
                restarts = self._protocol.numbering != "rollout"
                self._citations.show(step.passages, restarts=restarts, imitated=step.imitated)
            case Merged() | Reflected() if step.claims and not self._evidenced:
                return self._cite(step.claims)
            case Evidenced():
                self._evidenced = True
                return self._cite(step.claims)
            case Answered():
                said = self._answer.finish(step.text) + self._support(step.text)
                return _content(said + self._marked(self.content + said))
            case Stopped() if not self.content:
                return _content(" ".join(part for part in (_apology(step), nothing_found(self._steps)) if part))
            case Stopped(reason="forced") if self._protocol.max_rounds and not self._says_unsearched:
                return _content(self._unsearched)  # it would have searched; who wants no search hears it at the answer
            case _:
                pass
        return []

    def _cite(self, claims: Sequence[Claim]) -> list[Part]:
        """These claims carry the answer; what they cite is numbered in their order. What was not found is marked."""
        self._claims, self._meant = list(claims), self._citations.shown
        self._citations.cited.clear()
        for claim in claims:
            self._places(claim)
        doubted = [claim for claim in claims if doubt(claim)]
        if not doubted or self.content:
            return []
        self._reasoned = True
        return [Reasoning("\n\n" + "\n".join(f"- {claim.text} {doubt(claim)}" for claim in doubted))]

    def _support(self, answer: str) -> str:
        """What the server adds to the short answer: the claim behind it, or all of them; or that there is none."""
        if why := nothing_found(self._steps) or not_in_passages(answer, self._steps):
            return f"\n\n{why}"
        if self._says_unsearched and self._unsearched:
            return self._unsearched
        if self._style == "short" or not self._claims:
            return ""
        if self._style == "with_evidence":
            return "\n\n" + "\n".join(f"- {self._sentence(claim)}" for claim in self._claims)
        found = [claim for claim in self._claims if not doubt(claim)] or self._claims
        behind = [claim for claim in found if answer.strip().lower() in claim.text.lower()]
        return "\n\n" + self._sentence((behind or found)[-1])

    @property
    def _says_unsearched(self) -> bool:
        """Whether an answer without a search says so however it came about."""
        return self._searchless or (self._style != "short" and not self._claims)

    @property
    def _unsearched(self) -> str:
        return f"\n\n{UNSEARCHED}" if unsearched(self._steps) else ""

    def _marked(self, content: str) -> str:
        """After the answer: marks for its supporting claims that have none yet, and the links of all marks."""
        if not self._profile.marks:
            return ""
        found = [claim for claim in self._claims if not doubt(claim)]
        behind = dict.fromkeys(place for claim in found or self._claims for place in self._places(claim))
        added = marks([place for place in behind if f"[{place}]" not in content])
        if added and not found:
            added += f" {doubt(self._claims[-1])}"
        added = f" {added}" if added else ""
        return added + (self._citations.definitions(content + added) if self._profile.definitions else "")

    def _sentence(self, claim: Claim) -> str:
        parts = (claim.text, marks(self._places(claim)), doubt(claim))
        return " ".join(part for part in parts if part)

    def _places(self, claim: Claim) -> list[int]:
        return self._citations.places(claim.cites, claim.quotes, shown=self._meant)

    @property
    def annotations(self) -> list[dict[str, Any]]:
        return self._citations.annotations(self.content)

    def sources(self) -> dict[str, Any]:
        """`citations` and `search_results`, as Perplexity's clients know them; `[n]` is the n-th of both."""
        return {"citations": self._citations.urls, "search_results": self._citations.search_results}

    def summary(self, trace: Trace) -> dict[str, Any]:
        """The `cairn` object of the end."""
        return {
            "v": CAIRN_VERSION,
            "kind": "done",
            "trace": trace.id,
            "evidence": [self._shown(claim) for claim in self._claims],
            "citations": self._citation_claims(),
            "timings": trace.timings.model_dump(),
            "stopped": trace.stopped.reason if trace.stopped else None,
        }

    def _shown(self, claim: Claim) -> dict[str, Any]:
        """One claim as clients read it: its numbers are those of the answer's marks."""
        quotes = [
            {"cite": place, "start": quote.start, "end": quote.end, "text": quote.text}
            for quote in claim.quotes
            for place in self._citations.places((quote.number,), (quote,), shown=self._meant)[:1]
        ]
        cites = self._places(claim)
        return {"text": claim.text, "cites": cites, "derived": claim.derived, "check": claim.check, "quotes": quotes}

    def _citation_claims(self) -> list[dict[str, Any]]:
        """For each mark `[n]` of the answer the claims behind it, by their place, and those of them that were found."""
        cites = [self._places(claim) for claim in self._claims]
        found = [not doubt(claim) for claim in self._claims]
        return [
            {
                "cite": number,
                "claims": [place for place, numbers in enumerate(cites) if number in numbers],
                "found": [place for place, numbers in enumerate(cites) if number in numbers and found[place]],
            }
            for number in range(1, len(self._citations.cited) + 1)
        ]


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
    match stopped.reason:
        case "engine" | "cancelled" | "interrupted":
            return ""
        case "forced":
            return f"There is no answer: the budget of {str(stopped.budget).replace('_', ' ')} had ended before it."
        case "bad_format" | "answered":  # with an empty answer
            return "There is no answer: the policy ended outside of its format."
        case _:
            assert_never(stopped.reason)
