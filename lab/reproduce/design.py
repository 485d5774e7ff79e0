"""What a miniature consists of: runs of reinforcement learning, the arms that are compared, and what a paper claims.

Records only. The papers' modules fill them in; `plan` makes jobs of them, `verdict` judges.
"""

from collections.abc import Iterator
from typing import Any, Final, Literal

from pydantic import AliasChoices, Field

from agent.evidence import Frozen
from agent.world.records import QuestionType

WorldKind = Literal["plain", "flat", "known"]
PaperName = Literal["multisearch", "dag", "evidence", "reflect", "kg"]
QuestionList = Literal["pipeline", "single"]
Kind = Literal["more", "same", "no_more"]

MIXES: Final[dict[WorldKind, dict[QuestionType, float]]] = {
    "plain": {"chain1": 0.2, "chain2": 0.25, "chain3": 0.15, "comparison": 0.15, "intersection": 0.1, "choice": 0.15},
    "flat": {"chain1": 0.3, "comparison": 0.25, "intersection": 0.1, "choice": 0.2, "time": 0.15},
    "known": {"known": 0.3, "chain1": 0.3, "chain2": 0.2, "comparison": 0.1, "choice": 0.1},
}
"""Questions of each kind of world. `flat`: what one plan can reach. `known`: three in ten can be known by heart."""
WORLDS: Final[dict[WorldKind, str]] = {
    "plain": "chains of one to three, comparisons, intersections, choices",
    "flat": "what one plan can reach: single look-ups, comparisons, intersections, choices, time",
    "known": "three in ten of the closed set that every world shares; chains of one and two, comparisons, choices",
}
SHIPPED: Final = "shipped"
START: Final = "start"


class Training(Frozen):
    """One run of reinforcement learning from the shared start, made once a seed."""

    name: str
    says: str
    """What is particular about it."""
    protocol: str
    changes: dict[str, Any]
    """Of the base recipe; tables are merged, key by key."""
    length: float = 1.0
    """Steps, as a multiple of the study's."""
    world: WorldKind = "plain"
    """Whose mix of questions it is trained on, in worlds of its own."""
    mix: dict[QuestionType, float] = Field(default_factory=dict[QuestionType, float])
    """Another mix than that."""
    sources: tuple[str, ...] = ()
    """Of the worlds, only these answer; empty: all."""
    questions: QuestionList | None = None
    """A question list in the place of worlds as they come."""


class Arm(Frozen):
    """A policy that answers the questions of unseen worlds, one world a seed."""

    name: str
    says: str
    policy: str = SHIPPED
    """`shipped`, `start`, or the name of a training."""
    protocol: str
    world: WorldKind = "plain"
    protocol_changes: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Of the protocol's fields."""
    budgets: dict[str, int] = Field(default_factory=dict[str, int])
    sources: tuple[str, ...] = ()
    queries: int = 0
    """Most queries of one search; 0: as many as the policy writes."""
    dense: bool = False
    """Searched by the vectors of an encoder instead of BM25."""
    reader: bool = False
    """The evidence goes to a reader of another architecture, which also answers from plain retrieval."""

    @property
    def trained(self) -> bool:
        return self.policy not in (SHIPPED, START)


class Side(Frozen):
    """One figure of one policy."""

    arm: str = Field(validation_alias=AliasChoices("arm", "asked"))
    """Its name."""
    metric: str = "em"
    types: tuple[str, ...] = ()
    """Only questions of these types; empty: all."""
    but: tuple[str, ...] = ()
    """None of these types."""


class Expected(Frozen):
    """One inequality of a claim. Differences are first − second, question by question, seed by seed."""

    kind: Kind = "more"
    """`more`: first > second. `same`: no further apart than the margin. `no_more`: first is at most the margin above.
    """
    first: Side
    second: Side | float
    """A number: a fixed bound."""
    margin: float = 0.05


class Direction(Frozen):
    """A claim of a paper, and what must come out for it to hold."""

    name: str
    paper: PaperName
    claim: str
    figures: str
    place: str
    """Of the figures, in the paper."""
    expected: tuple[Expected, ...]
    cannot: str
    """What the miniature cannot say."""

    @property
    def sides(self) -> Iterator[Side]:
        for one in self.expected:
            yield one.first
            if isinstance(one.second, Side):
                yield one.second


class Paper(Frozen):
    """One paper's directions, with the runs that they need."""

    name: PaperName
    title: str
    trainings: tuple[Training, ...]
    arms: tuple[Arm, ...]
    directions: tuple[Direction, ...]


def arm_of(training: Training) -> Arm:
    """The arm of a trained policy: worlds of the kind that it was trained on, under the same name."""
    return Arm(
        name=training.name,
        says=training.says,
        policy=training.name,
        protocol=training.protocol,
        world=training.world,
        sources=training.sources,
    )


def sides(*names: str, metric: str = "em", margin: float = 0.05, kind: Kind = "more") -> tuple[Expected, ...]:
    """The first one against each of the others, in one figure."""
    first, *others = (Side(arm=name, metric=metric) for name in names)
    return tuple(Expected(kind=kind, first=first, second=other, margin=margin) for other in others)
