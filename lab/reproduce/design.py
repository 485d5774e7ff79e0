"""What a miniature consists of: runs of reinforcement learning, the arms that are compared, and what a paper claims.

Records only. The papers' modules fill them in; `plan` makes jobs of them, `verdict` judges.
"""

from collections.abc import Iterator
from typing import Any, Final, Literal

from pydantic import Field

from agent.evidence import Frozen
from agent.world.records import QuestionType
from lab.reproduce.power import Spread

WorldKind = Literal["plain", "hard", "flat", "known", "hops"]
PaperName = Literal["multisearch", "dag", "evidence", "reflect", "kg"]
QuestionList = Literal["pipeline", "single"]
Kind = Literal["more", "same", "no_more"]
CheckKind = Literal["differs", "more", "uncertain", "room"]

MIXES: Final[dict[WorldKind, dict[QuestionType, float]]] = {
    "plain": {"chain1": 0.2, "chain2": 0.25, "chain3": 0.15, "comparison": 0.15, "intersection": 0.1, "choice": 0.15},
    "hard": {"chain1": 0.2, "chain2": 0.3, "chain3": 0.1, "comparison": 0.2, "choice": 0.2},
    "flat": {"chain1": 0.3, "comparison": 0.25, "intersection": 0.1, "choice": 0.2, "time": 0.15},
    "known": {"known": 0.3, "chain1": 0.3, "chain2": 0.2, "comparison": 0.1, "choice": 0.1},
    "hops": {"chain2": 0.3, "chain3": 0.4, "chain4": 0.3},
}
"""Questions of each kind of world."""
DIFFICULTIES: Final[dict[WorldKind, dict[str, float]]] = {
    "hard": {"noise": 0.8, "paraphrase": 1.0},
    "hops": {"exclusivity": 0.0},
}
"""What is harder or easier in a kind of world than the recipe says of all."""
SHARES: Final[dict[WorldKind, float]] = {"hops": 0.7}
"""Of the recipe's questions, where a kind of world has fewer: those that take long."""
WORLDS: Final[dict[WorldKind, str]] = {
    "plain": "chains of one to three, comparisons, intersections, choices",
    "hard": "chains, comparisons and choices in passages whose words are not the questions'",
    "flat": "what one plan can reach: single look-ups, comparisons, intersections, choices, time",
    "known": "three in ten of the closed set that every world shares; chains of one and two, comparisons, choices",
    "hops": "chains of two to four; every fact is in a document, too",
}
SHIPPED: Final = "shipped"
START: Final = "start"
ORACLE: Final = "oracle"
AREA: Final = "area"
"""The mean EM of a training's evaluated steps: the area under its curve, from the first of them to the last."""
ENDS: Final = Spread(seeds=0.02, questions=0.28)
"""Of the EM of two policies from one start: they disagree on one question of twelve."""
CURVES: Final = Spread(seeds=0.02, questions=0.2)
"""The same of the area under their curves, which is a mean."""
INFERRED: Final = Spread(seeds=0.03, questions=0.45)
"""Of the EM of one policy in two set-ups: they disagree on one question of five."""
LIKELY: Final = (0.2, 0.8)
"""Between these a behaviour of the start is uncertain."""
ROOM: Final = 0.15
"""Least EM from a start to the oracle."""


class Training(Frozen):
    """One run of reinforcement learning from the shared start, made once a seed."""

    name: str
    says: str
    """What is particular about it."""
    protocol: str
    """A built-in one; or, with `protocol_changes`, the one that is changed."""
    changes: dict[str, Any]
    """Of the base recipe; tables are merged, key by key."""
    length: float = 1.0
    """Steps, as a multiple of the study's."""
    world: WorldKind = "plain"
    """Whose mix of questions it is trained on, in worlds of its own."""
    protocol_changes: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Of the protocol's fields, in training and evaluation."""
    questions: QuestionList | None = None
    """A question list in the place of worlds as they come."""


class Arm(Frozen):
    """A policy that answers the questions of unseen worlds, one world a seed."""

    name: str
    says: str
    policy: str = SHIPPED
    """`shipped`, `start`, `oracle`, or the name of a training."""
    protocol: str
    world: WorldKind = "plain"
    protocol_changes: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Of the protocol's fields."""
    budgets: dict[str, int] = Field(default_factory=dict[str, int])
    sources: tuple[str, ...] = ()
    temperature: float = 0.0
    """Of sampling; above 0 it shows how probable a behaviour is."""
    reader: bool = False
    """The evidence goes to a reader of another architecture, which also answers from plain retrieval."""

    @property
    def trained(self) -> bool:
        return self.policy not in (SHIPPED, START, ORACLE)

    @property
    def has_curve(self) -> bool:
        """Whether it is evaluated at every point of its training."""
        return self.policy == self.name


class Side(Frozen):
    """One figure of one policy."""

    arm: str
    """Its name."""
    metric: str = "em"
    types: tuple[str, ...] = ()
    """Only questions of these types; empty: all."""
    but: tuple[str, ...] = ()
    """None of these types."""
    minus: str = ""
    """An arm, such as its own start, whose EM is taken off, question by question."""


class Expected(Frozen):
    """One inequality of a claim. Differences are first − second, question by question, seed by seed."""

    kind: Kind = "more"
    """`more`: first > second. `same`: no further apart than the margin. `no_more`: first is at most the margin above.
    """
    first: Side
    second: Side | float
    """A number: a fixed bound."""
    margin: float
    """Half of the paper's effect, where it has a figure."""
    spread: Spread
    """Of this difference, as it was expected before the run."""


class Check(Frozen):
    """What must be so for a verdict to mean something."""

    kind: CheckKind
    """`differs`: the interval of first − second excludes 0. `more`: it lies above 0. `uncertain`: the start does it
    with a probability between .2 and .8. `room`: first, the oracle, is at least .15 above second."""
    first: Side
    second: Side | None = None
    says: str
    """What is checked, in words."""

    @property
    def sides(self) -> tuple[Side, ...]:
        return (self.first,) if self.second is None else (self.first, self.second)


class Direction(Frozen):
    """A claim of a paper, and what must come out for it to hold."""

    name: str
    paper: PaperName
    claim: str
    figures: str
    place: str
    """Of the figures, in the paper."""
    manipulated: str
    """The quantity that the arms change."""
    margin_from: str
    """Why the margins are what they are."""
    expected: tuple[Expected, ...]
    checks: tuple[Check, ...]
    departures: tuple[str, ...]
    """From the paper's set-up."""
    larger_because: str = ""
    """Where its seeds see only a larger effect than the paper's: why one is expected here."""

    @property
    def sides(self) -> Iterator[Side]:
        """All that are compared or checked."""
        for one in self.expected:
            for side in (one.first, one.second):
                if isinstance(side, Side):
                    yield side
                    if side.minus:
                        yield Side(arm=side.minus)
        for check in self.checks:
            yield from check.sides


class Untested(Frozen):
    """A claim that is not run, and why not."""

    name: str
    claim: str
    figures: str
    why: str


class Paper(Frozen):
    """One paper's directions, with the runs that they need."""

    name: PaperName
    title: str
    trainings: tuple[Training, ...]
    arms: tuple[Arm, ...]
    directions: tuple[Direction, ...]
    untested: tuple[Untested, ...]


def arm_of(training: Training) -> Arm:
    """The arm of a trained policy: worlds of the kind that it was trained on, under the same name."""
    return Arm(
        name=training.name,
        says=training.says,
        policy=training.name,
        protocol=training.protocol,
        protocol_changes=training.protocol_changes,
        world=training.world,
    )


BASELINES: Final = {
    "start": (START, 0.0, "the shared start, untrained"),
    "start-sampled": (START, 1.0, "the shared start, sampled at temperature 1"),
    "untouched": (SHIPPED, 0.0, "the shipped policy, which the start was made from"),
    "oracle": (ORACLE, 0.0, "the oracle that knows the plan, through the same searches"),
}
"""How names of arms end → policy, temperature, and what it is."""


def baselines(protocol: str, world: WorldKind, label: str = "", **more: Any) -> tuple[Arm, ...]:
    """The arms beside the trained policies of a protocol: start, sampled start, the policy before it, and oracle.

    Args:
        protocol: of all of them.
        world: of all of them.
        label: begins their names, where it is not the protocol's.
        more: of their fields.
    """
    return tuple(
        Arm(
            name=f"{label or protocol}-{name}",
            says=says,
            policy=policy,
            protocol=protocol,
            world=world,
            temperature=warm,
            **more,
        )
        for name, (policy, warm, says) in BASELINES.items()
    )


def sides(*names: str, metric: str = "em", margin: float, spread: Spread, kind: Kind = "more") -> tuple[Expected, ...]:
    """The first one against each of the others, in one figure."""
    first, *others = (Side(arm=name, metric=metric) for name in names)
    return tuple(Expected(kind=kind, first=first, second=other, margin=margin, spread=spread) for other in others)


def differs(first: str, second: str, metric: str, says: str, **which: Any) -> Check:
    """The manipulation check where either arm may have more of the quantity."""
    one, two = (Side(arm=name, metric=metric, **which) for name in (first, second))
    return Check(kind="differs", first=one, second=two, says=says)


def more(first: str, second: str, metric: str, says: str, **which: Any) -> Check:
    """The manipulation check where the first arm must have more of it."""
    return differs(first, second, metric, says, **which).model_copy(update={"kind": "more"})


def uncertain(label: str, metric: str, says: str, **which: Any) -> Check:
    """The start's behaviour is neither certain nor absent; which questions count is said by fields of `Side`."""
    return Check(kind="uncertain", first=Side(arm=f"{label}-start-sampled", metric=metric, **which), says=says)


def room(label: str, below: str = "start") -> Check:
    """There is something to learn, or to lose."""
    name = f"{label}-{below}" if below in ("start", "untouched") else below
    says = f"the oracle's EM is at least {ROOM:g} above that of `{name}`"
    return Check(kind="room", first=Side(arm=f"{label}-oracle"), second=Side(arm=name), says=says)
