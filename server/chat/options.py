"""The options of a request beside its question, whichever address it came to: sources, filters, budgets, its form.

Ours, and Perplexity's names for filters. Everything may be left out or be null; what is not declared is ignored.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from agent.errors import QuestionError
from agent.loop.budgets import Budgets
from agent.plan import EVERY_SOURCE, Filter
from agent.protocols import TextProtocol
from agent.sanitize.strict import Chars, Strict
from agent.sources.base import Source
from agent.sources.select import choose
from server.chat.profiles import ProfileName
from server.http.errors import bad_request, sentence

AnswerStyle = Literal["short", "sentence", "with_evidence"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
SearchMode = Literal["web", "academic", "sec"]
Recency = Literal["hour", "day", "week", "month", "year"]

_MEANT: Final[Mapping[Effort, Literal["low", "medium", "high"]]] = {
    **dict.fromkeys(("none", "minimal", "low"), "low"),
    "medium": "medium",
    **dict.fromkeys(("high", "xhigh", "max"), "high"),
}
_KINDS: Final[Mapping[SearchMode, str]] = {"academic": "science", "sec": "finance"}
_HOST: Final = re.compile(r"[\w-]+(\.[\w-]+)*")
_DOMAIN: Final = r"^-?\s*(https?://)?\.?[A-Za-z0-9]"
_DAY: Final = r"^(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}/\d{1,2}/\d{4})$"


def _host(given: str) -> str:
    """A domain without what people write around it; one to leave out keeps its `-`."""
    out = given.strip().startswith("-")
    host = re.sub(r"^\w+://", "", given.strip().lstrip("-").strip().lower()).split("/")[0].lstrip(".")
    if not _HOST.fullmatch(host):
        raise ValueError("write a domain like 'nasa.gov', or '-pinterest.com' to leave one out")
    return f"-{host}" if out else host


def _day(given: str) -> str:
    """An ISO date; Perplexity's clients write 3/1/2026."""
    try:
        if "/" in given:
            return datetime.strptime(given, "%m/%d/%Y").date().isoformat()
        return date(*map(int, given.split("-"))).isoformat()
    except ValueError:
        raise ValueError("write the day as 2026-03-01 or 3/1/2026") from None


Domain = Annotated[str, Field(pattern=_DOMAIN, max_length=253), AfterValidator(_host)]
Day = Annotated[str, Field(pattern=_DAY, max_length=10), AfterValidator(_day)]
Name = Annotated[str, Chars(200)]
Text = Annotated[str, Chars(1_000_000)]
"""What a person or a model wrote. How much of it may be a question is a setting."""


class Incoming(BaseModel):
    """Part of a request. Parameters that are not declared are accepted and mean nothing."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class BudgetOptions(Strict):
    """What one answer may use. A request can lower what the server allows, and never raise it."""

    rounds: int | None = Field(default=None, ge=0, description="Rounds of searches.")
    searches: int | None = Field(default=None, ge=0)
    passages: int | None = Field(default=None, ge=0, description="Passages that the policy is shown.")
    tokens: int | None = Field(default=None, ge=1, description="Tokens that the policy writes, its answer included.")
    seconds: float | None = Field(
        default=None, gt=0, description="Until the answer is forced, which may then take as long again."
    )
    credits: float | None = Field(default=None, ge=0, description="What paid searches may cost.")


class RunOptions(Incoming):
    """Parameters of ours and of Perplexity's."""

    model: Name = Field(default="cairn", description="One of those that `/v1/models` lists.")
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    answer_style: AnswerStyle | None = Field(
        default=None, description="The answer alone, with the claim behind it, or with all claims."
    )
    profile: ProfileName | None = Field(
        default=None, description="For which client the answer is made; left out, what the server's settings say."
    )
    sources: Annotated[list[Name], Field(fail_fast=True, max_length=32)] | None = Field(
        default=None, description="Names of the sources that may be searched; left out: each."
    )
    budgets: BudgetOptions | None = None
    search_domain_filter: Annotated[list[Domain], Field(fail_fast=True, max_length=20)] | None = Field(
        default=None, description="Domains to search, or with a leading `-` to leave out."
    )
    search_recency_filter: Recency | None = Field(default=None, description="`hour` is taken as `day`.")
    search_after_date_filter: Day | None = None
    search_before_date_filter: Day | None = None
    search_mode: SearchMode | None = Field(
        default=None, description="`academic` searches arxiv where it is a source, or else wants science."
    )
    disable_search: bool | None = Field(default=None, description="Answer without searching; the answer says so.")

    @property
    def effort(self) -> Effort | None:
        """How much may be done for the answer."""
        return None

    @property
    def most_tokens(self) -> int | None:
        """What the policy may write."""
        return None

    def filters(self, sources: Mapping[str, Source]) -> tuple[Filter, ...]:
        """Of every search for this answer."""
        said: list[tuple[str, str | None]] = [
            ("not", domain[1:]) if domain.startswith("-") else ("site", domain)
            for domain in self.search_domain_filter or ()
        ]
        recent = "day" if self.search_recency_filter == "hour" else self.search_recency_filter
        said += [
            ("recent", recent),
            ("after", self.search_after_date_filter),
            ("before", self.search_before_date_filter),
        ]
        kind = _KINDS.get(self.search_mode or "web")
        said.append(("kind", None if self.only(sources) == ("arxiv",) else kind))
        return tuple(Filter(name=name, value=value) for name, value in said if value)

    def only(self, sources: Mapping[str, Source]) -> tuple[str, ...]:
        """The sources that may be searched; empty: each.

        Raises:
            ApiError: one of them is not there.
        """
        if not self.sources:
            return ("arxiv",) if self.search_mode == "academic" and "arxiv" in sources else ()
        wanted = tuple(dict.fromkeys(name.strip().lower() for name in self.sources))
        try:
            choose(sources, wanted)
        except QuestionError as error:
            raise bad_request(sentence(error), param="sources") from error
        return () if EVERY_SOURCE in wanted else wanted


def budgets_for(request: RunOptions, budgets: Budgets, protocol: TextProtocol) -> Budgets:
    """What the effort allows, and never more of anything than the request does."""
    budgets = budgets.for_effort(_MEANT[request.effort or "medium"], rounds=protocol.max_rounds)
    wanted = request.budgets or BudgetOptions()
    tokens = _least(budgets.policy_tokens, request.most_tokens, wanted.tokens)
    return replace(
        budgets,
        rounds=0 if request.disable_search else _least(budgets.rounds or 0, wanted.rounds),
        searches=_least(budgets.searches, wanted.searches),
        passages=_least(budgets.passages, wanted.passages),
        seconds=min(budgets.seconds, wanted.seconds or budgets.seconds),
        credits=budgets.credits if wanted.credits is None else min(budgets.credits, wanted.credits),
        policy_tokens=tokens,
        answer_tokens=min(budgets.answer_tokens, tokens),
        answer_seconds=min(budgets.answer_seconds, wanted.seconds or budgets.answer_seconds),
    )


def _least(own: int, *wanted: int | None) -> int:
    return min([own, *(number for number in wanted if number is not None)])
