"""What every reward has in common: parts by name, their sum, None for what is masked, and what it may ask outside."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from agent.errors import SetupError
from agent.protocols import TextProtocol, protocol_named
from agent.trace import Answered, Trace
from train.rewards.support.blocks import ContextBlock, blocks_of
from train.rewards.support.masking import Masked, why_masked
from train.rewards.support.vectors import Vectors, hashed_words
from train.rewards.task import Task

Parts = Mapping[str, float]


class Judging(Protocol):
    async def score(self, task: Task, answer: str) -> float | None:
        """How right an answer is, 0 to 1; None where there is no verdict."""
        ...


class EvidenceReader(Protocol):
    async def read(self, question: str, evidence: str) -> str | None:
        """What is answered from the evidence alone; None where the reader failed."""
        ...


@dataclass(frozen=True)
class RewardTools:
    """What a reward may ask outside of trace and task. A tool that fails masks the rollout."""

    judge: Judging | None = None
    reader: EvidenceReader | None = None
    vectors: Vectors = hashed_words
    protocol: TextProtocol | None = None
    """Of the traces, where it is not a built-in one."""


@dataclass(frozen=True)
class Rewarded:
    """The parts of one reward, in the reward's own order, each with its weight in it."""

    parts: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.parts.values())


@dataclass(frozen=True)
class RolloutView:
    """A trace, and what rewards read of it; all of it is the policy's but for what is said to be found."""

    trace: Trace
    protocol: TextProtocol

    @cached_property
    def blocks(self) -> tuple[ContextBlock, ...]:
        return blocks_of(self.trace, self.protocol)

    @cached_property
    def answer(self) -> str | None:
        """What the policy answered, forced or not; None where it did not."""
        own = (step.text for step in reversed(self.trace.steps) if isinstance(step, Answered) and step.by == "policy")
        return next(own, None)

    @property
    def ended_well(self) -> bool:
        """Whether the policy ended it with an answer of its own accord."""
        return self.trace.stopped is not None and self.trace.stopped.reason == "answered"

    def all(self, role: str) -> list[ContextBlock]:
        """Its blocks of one role, whole or not."""
        return [block for block in self.blocks if block.tagged and block.role == role]


class RewardSettings(BaseModel, ABC):
    """Of one reward. The defaults of a class are the paper's; `ours` names what our own recipes change."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    ours: ClassVar[Mapping[str, object]] = {}

    @abstractmethod
    def bounds(self, *, rounds: int) -> tuple[float, float]:
        """The lowest and the highest total that a rollout of at most this many rounds can reach."""


S = TypeVar("S", bound=RewardSettings)


@dataclass
class Reward(ABC, Generic[S]):
    """One reward. `score` gives its parts, or None; `masked` counts why there were none."""

    settings: S
    tools: RewardTools = field(default_factory=RewardTools)
    masked: Counter[str] = field(default_factory=Counter[str])

    name: ClassVar[str]
    parts: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        """Refuse settings that need a tool which is not there.

        Raises:
            SetupError: the sentence says what to give.
        """
        for tool in self.needs():
            if getattr(self.tools, tool) is None:
                raise SetupError(
                    f"the reward {self.name!r} needs a {tool} with these settings, and the recipe has none: add "
                    f"[{tool}], or choose settings that need none (docs/rewards.md)"
                )

    def needs(self) -> tuple[str, ...]:
        """Names of the tools that must be there."""
        return ()

    async def score(
        self, trace: Trace, task: Task, *, progress: float = 0.0, protocol: TextProtocol | None = None
    ) -> Rewarded | None:
        """The parts of one rollout; None where it must be masked: no reward, no gradient, no share in its group.

        Args:
            trace: of the rollout, ended.
            task: of its question.
            progress: share of the training that is done, 0 to 1, for rewards with stages.
            protocol: of the trace; left out, that of the tools, or the built-in one of its name.
        """
        try:
            if why := why_masked(trace):
                raise Masked(why)
            rollout = RolloutView(trace, protocol or self.tools.protocol or protocol_named(trace.protocol))
            parts = await self._score(rollout, task, progress)
        except Masked as masked:
            self.masked[str(masked)] += 1
            return None
        assert tuple(parts) == self.parts, (tuple(parts), self.parts)
        return Rewarded(dict(parts))

    @abstractmethod
    async def _score(self, rollout: RolloutView, task: Task, progress: float) -> Parts:
        """The parts of a rollout that is not masked.

        Raises:
            Masked: a tool failed.
        """

    async def judged(self, task: Task, answer: str) -> float:
        """What the judge says, 0 to 1.

        Raises:
            Masked: it said nothing.
        """
        assert self.tools.judge is not None
        return await _or_mask(self.tools.judge.score(task, answer), "the judge gave no verdict")

    async def read(self, question: str, evidence: str) -> str:
        """What the reader answers.

        Raises:
            Masked: it did not.
        """
        assert self.tools.reader is not None
        return await _or_mask(self.tools.reader.read(question, evidence), "the reader gave no answer")


T = TypeVar("T")


async def _or_mask(reply: Awaitable[T | None], why: str) -> T:
    said = await reply
    if said is None:
        raise Masked(why)
    return said
