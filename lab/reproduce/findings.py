"""What came out of a study, without the folder that it came out of: rulings, means of the arms, jobs.

It is kept beside the page as figures.json. From there another folder, or another machine, goes on: a ruling is taken
over where every answer that it depends on was given by the very plan that would give it here.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from agent.errors import SetupError, wrong_fields
from lab.reproduce.design import Direction, Expected, Side
from lab.reproduce.evaluating import Answers, read_answers
from lab.reproduce.jobs import jobs_of
from lab.reproduce.ledger import Entry, Jobs, Ledger, sha256_of
from lab.reproduce.papers import all_arms, directions_of
from lab.reproduce.study import EVALUATED, Study
from lab.reproduce.verdict import Found, Judged, Ruling, Verdict, figures, rule
from train.evaluation.statistics import Interval
from train.safety.manifest import Machine

KEPT: Final = Path("reproduction") / "figures.json"
"""Beside the page."""
MEANS: Final = ("em", "f1", "searches", "rounds", "policy_tokens")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ArmResult(_Part):
    """The figures of an arm, over its seeds."""

    seeds: int
    means: dict[str, float]
    """Of the figures that apply to it."""


class _KeptJudged(_Part):
    """An inequality, and what was found; `means` of both sides, `difference` with its bounds."""

    kind: str
    first: Side
    second: Side | float
    means: tuple[float, float]
    difference: tuple[float, float, float]
    margin: float
    n: int
    seeds: int
    verdict: Verdict

    def of(self, expected: Expected) -> Judged | None:
        """The same as it is judged here; None where another inequality is claimed by now."""
        if (expected.kind, expected.first, expected.second, expected.margin) != (
            self.kind,
            self.first,
            self.second,
            self.margin,
        ):
            return None
        return Judged(expected, *self.means, Interval(*self.difference), self.n, self.seeds, self.verdict)


class _KeptRuling(_Part):
    name: str
    verdict: Verdict
    judged: tuple[_KeptJudged, ...]

    def of(self, direction: Direction, seeds: int) -> Ruling | None:
        """The same as it is ruled here, if it was finished, by as many seeds, and claims the same."""
        pairs = zip(self.judged, direction.expected, strict=False)
        judged = [one.of(expected) for one, expected in pairs if one.seeds == seeds]
        ruling = Ruling(direction, tuple(one for one in judged if one is not None), seeds)
        return ruling if ruling.verdict == self.verdict != "not run" else None


class _Kept(_Part):
    """figures.json."""

    name: str
    machine: Machine
    seeds: tuple[int, ...]
    steps: int
    jobs: Jobs
    arms: dict[str, ArmResult]
    directions: tuple[_KeptRuling, ...]


@dataclass(frozen=True)
class Findings:
    """Of one study, perhaps with what an earlier run of the same plan had found."""

    machine: Machine
    jobs: Mapping[str, Entry]
    rulings: Mapping[str, Ruling]
    """By direction."""
    arms: Mapping[str, ArmResult]
    earlier: frozenset[str] = frozenset()
    """Directions whose ruling is an earlier run's."""


def findings_of(study: Study, ledger: Ledger, earlier: Findings | None = None) -> Findings:
    """Judge every direction by the answers that are there.

    Args:
        study: with its folder.
        ledger: of what is done there.
        earlier: in the place of directions and arms that this folder has not finished.

    Raises:
        SetupError: an answer file is damaged.
    """
    there = _found(study, ledger)
    rulings = {one.name: rule(one, there, seeds=len(study.seeds)) for one in directions_of("all")}
    arms = {name: _arm(name, answers.values()) for name, answers in there.items()}
    if earlier is None:
        return Findings(ledger.kept.machine, ledger.kept.jobs, rulings, arms)
    taken = {name: one for name, one in earlier.rulings.items() if rulings[name].verdict == "not run"}
    more = {name: arm for name, arm in earlier.arms.items() if name not in arms or arms[name].seeds < arm.seeds}
    jobs = {**earlier.jobs, **ledger.kept.jobs}
    return Findings(ledger.kept.machine, jobs, rulings | taken, arms | more, frozenset(taken))


def read_findings(study: Study, folder: Path) -> Findings:
    """What an earlier run left beside its page, as far as it was made by the plan of this study.

    Raises:
        SetupError: there is none, it is damaged, or nothing in it was made by this plan.
    """
    path = folder / KEPT
    try:
        kept = _Kept.model_validate_json(path.read_bytes())
    except OSError as error:
        raise SetupError(f"{path} cannot be read ({error.strerror}); name the folder of an earlier page") from error
    except ValidationError as error:
        raise SetupError(f"{path} holds no figures of `cairn reproduce`: {wrong_fields(error)}") from error
    plans = {job.name: sha256_of(job.plan) for job in jobs_of(study, directions_of("all"))}
    jobs = {name: entry for name, entry in kept.jobs.items() if entry.done and plans.get(name) == entry.plan_sha256}
    said, seeds = {one.name: one for one in kept.directions}, len(study.seeds)
    rulings = {
        one.name: ruling
        for one in directions_of("all")
        if one.name in said and _answered(one, study, jobs) and (ruling := said[one.name].of(one, seeds)) is not None
    }
    arms = {name: arm for name, arm in kept.arms.items() if all(_job(name, seed) in jobs for seed in study.seeds)}
    if not rulings:
        raise SetupError(f"{path}: no claim there was judged by this plan (recipe, --seeds, --steps, --start)")
    return Findings(kept.machine, jobs, rulings, arms)


def as_figures(study: Study, findings: Findings) -> str:
    """figures.json: the same for programs, and for the next run."""
    said = {
        "name": study.recipe.name,
        "machine": findings.machine.model_dump(),
        "seeds": list(study.seeds),
        "steps": study.steps,
        "jobs": {name: entry.model_dump() for name, entry in sorted(findings.jobs.items())},
        "arms": {name: findings.arms[name].model_dump() for name in all_arms() if name in findings.arms},
        "directions": [
            {"name": name, "verdict": one.verdict, "judged": [_plain(judged) for judged in one.judged]}
            for name, one in findings.rulings.items()
        ],
    }
    return json.dumps(said, indent=1) + "\n"


def _plain(one: Judged) -> dict[str, Any]:
    first, second = one.expected.first, one.expected.second
    return {
        "kind": one.expected.kind,
        "first": first.model_dump(),
        "second": second.model_dump() if isinstance(second, Side) else second,
        "means": [round(one.first, 5), round(one.second, 5)],
        "difference": [round(value, 5) for value in (one.difference.value, one.difference.low, one.difference.high)],
        "margin": one.expected.margin,
        "n": one.n,
        "seeds": one.seeds,
        "verdict": one.verdict,
    }


def _found(study: Study, ledger: Ledger) -> Found:
    """All answers that are there, of every seed of the study, and of this very plan."""
    there: dict[str, dict[int, Answers]] = {}
    for job in jobs_of(study, directions_of("all")):
        if job.arm is not None and ledger.has(job.name, job.plan):
            answers = read_answers(study.answers_folder(job.arm.name, job.seed))
            if answers is not None:
                there.setdefault(job.arm.name, {})[job.seed] = answers
    return there


def _arm(name: str, answers: Iterable[Answers]) -> ArmResult:
    answers = list(answers)
    means = {metric: mean for metric in MEANS if (mean := _mean(name, metric, answers)) is not None}
    return ArmResult(seeds=len(answers), means=means)


def _mean(name: str, metric: str, answers: Iterable[Answers]) -> float | None:
    side = Side(arm=name, metric=metric)
    values = [sum(own.values()) / len(own) for one in answers if (own := figures(side, one))]
    return round(sum(values) / len(values), 5) if values else None


def _answered(direction: Direction, study: Study, jobs: Mapping[str, Entry]) -> bool:
    """Whether every answer that a direction depends on is among these jobs."""
    return all(_job(side.arm, seed) in jobs for side in direction.sides for seed in study.seeds)


def _job(arm: str, seed: int) -> str:
    return f"{EVALUATED}/{arm}/{seed}"
