"""Errors a caller may want to catch.

* AgentError
  - QuestionError      a question that cannot be used: empty, or too long
  - PlanError          the policy wrote a plan that cannot run; the sentence goes back to it
  - SourceError        a source failed (`kind` says how); recorded as a `SearchFailed` step
  - PolicyError        the engine behind the policy failed, or another model at an endpoint (`kind` says how)
    + ContextFull      the context has no room left for what must come next
    + TurnBroken       the engine's connection ended in the middle of a turn
    + RequestRefused   the engine is there, and does not take such a request
    + ReplyUnread      the model replied, and not in the form that was requested
  - SetupError         a setting, file or folder that cannot be used; the sentence names the fix
    + CorpusError      documents or an index folder that cannot be read
    + NotTrusted       a settings file that needs the user's consent
    + CheckpointError  a checkpoint that is missing, incomplete or corrupt

Wrong arguments raise `ValueError`. A broken invariant is an `assert`.
"""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

from agent.sanitize.text import shortened

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

SourceErrorKind = Literal["auth", "quota", "rate", "bad_query", "upstream", "timeout", "parse"]
PolicyErrorKind = Literal["engine", "timeout", "rate", "server", "connection", "refused", "malformed"]


@dataclass(frozen=True, slots=True)
class Failure:
    """How one backend failed on the way to an answer, or to none."""

    backend: str
    kind: SourceErrorKind
    why: str
    took: float = 0.0
    """Seconds."""


class AgentError(Exception):
    """Base of every error that this package raises on purpose."""


def first_of(group: ExceptionGroup[Exception], kind: type[Exception]) -> Exception:
    """The first error of a kind that tasks ended with; the group itself, where none is of that kind.

    What is raised inside `except*` would be in a group again before Python 3.11.4.
    """
    first: Any = group.subgroup(kind) or group
    while first is not group and hasattr(first, "exceptions"):
        first = first.exceptions[0]
    return first


class QuestionError(AgentError):
    """The question cannot be used; the sentence says why, and `about` which of its parts is wrong."""

    def __init__(self, why: str, *, about: str = "question") -> None:
        super().__init__(why)
        self.about = about


class PlanError(AgentError):
    """The text between the search tags is not a plan that can run."""


class SourceError(AgentError):
    """One source could not answer one query.

    `kind` is one of auth, quota, rate, bad_query, upstream, timeout, parse. `retry_after` is how many seconds the
    other side wants to be left alone; `failures` are those of the backends that were tried, in their order. `credits`
    and `usd` are what others cost that were searched as well, and found nothing.
    """

    def __init__(
        self,
        why: str,
        *,
        kind: SourceErrorKind = "upstream",
        retry_after: float | None = None,
        failures: tuple[Failure, ...] = (),
        credits: float = 0.0,
        usd: float = 0.0,
    ) -> None:
        super().__init__(why)
        self.kind: SourceErrorKind = kind
        self.retry_after = retry_after
        self.failures = failures
        self.credits = credits
        self.usd = usd

    def after(self, failures: tuple[Failure, ...], *, credits: float, usd: float) -> Self:
        """The same error of a search on whose way these failed, at this cost."""
        return type(self)(
            str(self), kind=self.kind, retry_after=self.retry_after, failures=failures, credits=credits, usd=usd
        )


class PolicyError(AgentError):
    """A language model failed: the engine behind the policy, or a model at an endpoint.

    `kind` is engine in this process, and at an endpoint one of timeout, rate, server, connection, refused, malformed.
    `status` is that of its HTTP response, `retry_after` how many seconds it wants to be left alone. `begun`: it may
    have begun to answer, so a second try may sample the same turn twice.
    """

    def __init__(
        self,
        why: str,
        *,
        kind: PolicyErrorKind = "engine",
        status: int | None = None,
        retry_after: float | None = None,
        begun: bool = True,
    ) -> None:
        super().__init__(why)
        self.kind: PolicyErrorKind = kind
        self.status = status
        self.retry_after = retry_after
        self.begun = begun


class ContextFull(PolicyError):
    """The context has no room for the tokens that must come next."""


class TurnBroken(PolicyError):
    """The engine's connection ended in the middle of a turn."""


class RequestRefused(PolicyError):
    """The engine is there, and does not take such a request."""


class ReplyUnread(PolicyError):
    """The model replied, and not in the form that was requested."""


class SetupError(AgentError):
    """Something the user named cannot be used; the message says what is wrong and how to fix it."""


class NotTrusted(SetupError):
    """A settings file of the current folder sets what needs the user's consent."""


class CorpusError(SetupError):
    """Documents or an index folder that cannot be read."""


class CheckpointError(SetupError):
    """A checkpoint that is missing, incomplete or corrupt."""


def nearest(name: str, known: Iterable[str], *, alike: float = 0.6) -> str:
    """What to say behind an unknown name: "; did you mean 'cairn'?" where a known one is alike enough, else nothing.

    Args:
        name: the unknown one.
        known: names.
        alike: how much one must be, from 0 to 1.
    """
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=alike)
    return f"; did you mean {near[0]!r}?" if near else ""


def _why_wrong(one: "ErrorDetails", missing: Iterable[str]) -> str:
    """What is wrong with one field, in words for who wrote it and not for who made the model."""
    if one["type"] == "extra_forbidden":
        return "there is no such field" + nearest(str(one["loc"][-1]), missing)
    if one["type"] == "missing":
        return "it is missing"
    return one["msg"].removeprefix("Value error, ")


def wrong_fields(error: "ValidationError", *, whole: str = "", most: int = 5) -> str:
    """What pydantic refuses, each with its place: "budgets.rounds: Input should be …; name: it is missing; and 7 more".

    Args:
        error: of pydantic.
        whole: the place of what is wrong with everything together; "" leaves it out.
        most: that are reported; of the others only their number.
    """
    found = error.errors(include_url=False, include_input=False)
    # Unknown keys first: a misspelt one is often why another is missing.
    wrong = sorted(found, key=lambda one: one["type"] != "extra_forbidden")[:most]
    missing = [str(one["loc"][-1]) for one in found if one["type"] == "missing"]
    said = [(".".join(map(str, one["loc"])) or whole, _why_wrong(one, missing)) for one in wrong]
    lines = [f"{shortened(place, 200)}: {shortened(why, 500)}" if place else shortened(why, 500) for place, why in said]
    more = error.error_count() - len(wrong)
    return "; ".join([*lines, *([f"and {more:,} more"] if more else [])])
