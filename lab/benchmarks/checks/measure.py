"""How well claims are checked: claims of the little world, true and corrupted, and how long it takes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final

from agent.checks import State, check_claims, state_of
from agent.checks.claims import checked, shown_under
from agent.checks.page import page
from agent.evidence import Passage
from agent.loop.agent import Agent
from agent.trace import DOUBTED, Claim, Evidenced, Merged, Reflected
from agent.world.store import load_world
from agent.world.world import World
from lab.benchmarks.checks.cases import CORRUPTIONS, CaseTrace, CaseWriter, ClaimCase, Corruption
from lab.benchmarks.checks.claims import MAKERS, WRONGS, RealClaim

TARGET: Final = 0.95
ROLLOUT_SHARE: Final = 0.05
"""Most of a rollout's time that its checks may take."""


@dataclass(frozen=True)
class Checked:
    """A case and what was found for it."""

    case: ClaimCase
    check: str


@dataclass(frozen=True)
class ClaimFigures:
    """What `measure` found."""

    traces: int
    checked: tuple[Checked, ...]
    seconds: float
    """For all claims, pages read again."""

    def found(self, *, standard: bool) -> tuple[int, int]:
        """Of the true claims: found, all."""
        of = [c for c in self.checked if c.case.corruption is None and c.case.standard is standard]
        return sum(c.check not in DOUBTED for c in of), len(of)

    def refused(self, kind: Corruption) -> tuple[int, int]:
        """Of the claims corrupted in this way: not found, all."""
        of = [c for c in self.checked if c.case.corruption == kind]
        return sum(c.check in DOUBTED for c in of), len(of)

    def precision(self, kinds: Sequence[Corruption] = CORRUPTIONS) -> float:
        """Of the claims marked as not found, the share that is false; as many true claims as false ones are checked.

        For one kind the true claims weigh as much as that kind's, so that the figures of all kinds can be compared.
        """
        refused, false = (sum(numbers) for numbers in zip(*map(self.refused, kinds), strict=True))
        found, true = self.found(standard=False)
        alarms = (true - found) / true * false if true else 0.0
        return refused / (refused + alarms) if refused else 0.0

    def recall(self, kinds: Sequence[Corruption] = CORRUPTIONS) -> float:
        """Of the false claims, the share that is marked as not found."""
        refused, false = (sum(numbers) for numbers in zip(*map(self.refused, kinds), strict=True))
        return refused / false if false else 0.0

    @property
    def a_second(self) -> float:
        return len(self.checked) / self.seconds

    @property
    def holds(self) -> bool:
        whole = [self.precision(), self.recall()]
        return all(figure >= TARGET for figure in (*whole, *(self.recall([kind]) for kind in CORRUPTIONS)))

    def as_dict(self) -> dict[str, Any]:
        found, true = self.found(standard=False)
        standard_found, standard = self.found(standard=True)
        kinds = {
            kind: {"false": self.refused(kind)[1], "not_found": self.refused(kind)[0],
                   "precision": round(self.precision([kind]), 4), "recall": round(self.recall([kind]), 4)}
            for kind in CORRUPTIONS
        }  # fmt: skip
        return {
            "traces": self.traces, "claims": len(self.checked), "true": true, "true_found": found,
            "standard": standard, "standard_found": standard_found, "kinds": kinds,
            "precision": round(self.precision(), 4),
            "recall": round(self.recall(), 4), "claims_a_second": round(self.a_second), "holds": self.holds,
        }  # fmt: skip


def measure(worlds: Iterable[World], *, traces: int, seed: int = 0) -> ClaimFigures:
    """Check every claim of `traces` traces of the worlds, one world after the other."""
    made: list[CaseTrace] = []
    for world in worlds:
        made += CaseWriter(world, seed=seed).write()
    return measure_cases(made[:traces])


def measure_cases(made: Sequence[CaseTrace]) -> ClaimFigures:
    """Check every claim of the traces; no page has been read before."""
    page.cache_clear()
    started = perf_counter()
    checked = tuple(found for one in made for found in check(one))
    return ClaimFigures(len(made), checked, perf_counter() - started)


async def rollout_share(agent: Agent, questions: Sequence[str]) -> float:
    """The share of the rollouts' wall time that checking their claims takes, no page having been read before."""
    checking = total = 0.0
    for question in questions:
        trace = await agent.run(agent.new_trace(question))
        total += trace.timings.total
        for at, step in enumerate(trace.steps):
            if isinstance(step, Evidenced | Merged | Reflected):
                page.cache_clear()
                started = perf_counter()
                checked(step.claims, trace.steps[:at])
                checking += perf_counter() - started
    return checking / total if total else 0.0


def check(one: CaseTrace) -> Iterable[Checked]:
    """Every claim of one trace, with what its cited passages say of it."""
    claims = [Claim(text=case.text, cites=case.cites) for case in one.cases]
    done = check_claims(claims, shown_under(one.trace.steps))
    return [Checked(case, claim.check) for case, claim in zip(one.cases, done, strict=True)]


def frozen_worlds() -> list[World]:
    """The frozen lists, the newest first: what figures are of."""
    return [load_world("test-v2"), load_world("test-v1")]


STATES: Final[tuple[State, ...]] = ("supported", "not_verified", "contradicted")


@dataclass(frozen=True)
class RealFigures:
    """How many true and false claims about real pages got which state, by who made them and by what is wrong."""

    true: Counter[tuple[str, State]] = field(default_factory=Counter[tuple[str, State]])
    false: Counter[tuple[str, State]] = field(default_factory=Counter[tuple[str, State]])
    rows: tuple[str, ...] = (*MAKERS, "all", *(f"wrong {wrong}" for wrong in WRONGS))

    def share(self, row: str, state: State, *, true: bool) -> float:
        """Of the true or the false claims of a row, the share with a state; 0 where it has none."""
        of = self.true if true else self.false
        return of[row, state] / count if (count := self.count(row, true=true)) else 0.0

    def count(self, row: str, *, true: bool) -> int:
        of = self.true if true else self.false
        return sum(of[row, state] for state in STATES)

    def recall(self, row: str) -> float:
        """Of the false claims, the share that is not supported."""
        return 1 - self.share(row, "supported", true=False)

    def precision(self, row: str) -> float:
        """Of the claims that are not supported, the share that is false; as many true claims as false ones."""
        missed = 1 - self.share(row, "supported", true=True)
        return self.recall(row) / (self.recall(row) + missed) if self.count(row, true=True) else 0.0

    def right(self, row: str, state: State) -> float:
        """Of the claims with a state, the share that has it rightly: true if supported, false if contradicted."""
        true, false = self.share(row, state, true=True), self.share(row, state, true=False)
        good = true if state == "supported" else false
        return good / (true + false) if true + false else 0.0

    def as_dict(self) -> dict[str, Any]:
        return {
            row: {
                "true": {state: self.true[row, state] for state in STATES},
                "false": {state: self.false[row, state] for state in STATES},
                "precision": round(self.precision(row), 4), "recall": round(self.recall(row), 4),
                "supported_right": round(self.right(row, "supported"), 4),
                "contradicted_right": round(self.right(row, "contradicted"), 4),
            }
            for row in self.rows
        }  # fmt: skip


def measure_real(claims: Iterable[RealClaim]) -> RealFigures:
    """Check claims about real pages, each against its page."""
    figures = RealFigures()
    for one in claims:
        passage = Passage(id="1", source="wiki", title=one.title, text=one.page, number=1)
        state = state_of(Claim(text=one.text, cites=(1,)), {1: (passage,)})
        of = figures.true if one.wrong is None else figures.false
        for row in (one.maker, "all", f"wrong {one.wrong}"):
            of[row, state] += 1
    return figures
