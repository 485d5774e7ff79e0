"""What came out of a study: rulings, means of the arms, jobs. figures.json beside the page has them for programs."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from lab.reproduce.design import Side
from lab.reproduce.evaluating import Answers, read_answers
from lab.reproduce.jobs import Job, all_jobs
from lab.reproduce.ledger import Entry, Ledger
from lab.reproduce.papers import all_arms, directions_of
from lab.reproduce.real import REAL
from lab.reproduce.real import real_arms as all_real_arms
from lab.reproduce.study import Study
from lab.reproduce.verdict import Checked, Found, Judged, Ruling, figures, over_questions, rule
from train.evaluation.statistics import Interval
from train.safety.manifest import Machine

KEPT: Final = Path("reproduction") / "figures.json"
"""Beside the page."""
MEANS: Final = ("em", "f1", "searches", "rounds", "policy_tokens", "gold_found")


class ArmResult(BaseModel):
    """The figures of an arm, over its seeds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seeds: int
    means: dict[str, float]
    """Of the figures that apply to it."""


@dataclass(frozen=True)
class Findings:
    """Of one study, perhaps with what an earlier run of the same plan had found."""

    machine: Machine
    jobs: Mapping[str, Entry]
    """Those that are done, by this very plan."""
    rulings: Mapping[str, Ruling]
    """By direction."""
    arms: Mapping[str, ArmResult]
    found: Found
    """The answers themselves."""
    real: Mapping[str, Ruling]
    """By direction, on real questions; empty where there are none."""
    real_arms: Mapping[str, ArmResult]

    def made_at(self, jobs: str) -> str:
        """A sentence: the commits at which jobs whose names begin so were begun; nothing where none says."""
        begun = Counter(one.code for name, one in self.jobs.items() if name.startswith(jobs) and one.code)
        named = ", ".join(f"{commit} ({number} jobs)" for commit, number in begun.most_common())
        return f"The answers were made at {named}." if named else ""


def findings_of(study: Study, ledger: Ledger) -> Findings:
    """Judge every direction by the answers that are there.

    Args:
        study: with its folder.
        ledger: of what is done there.

    Raises:
        SetupError: an answer file is damaged.
    """
    done = [job for job in all_jobs(study) if ledger.has(job.name, job.plan)]
    there = _found(study, done)
    rulings = {one.name: rule(one, there, seeds=len(study.seeds)) for one in directions_of("all")}
    arms = {name: _arm(name, answers.values()) for name, answers in there.items()}
    real, real_arms = _real(study, done)
    jobs = {job.name: ledger.kept.jobs[job.name] for job in done}
    return Findings(ledger.kept.machine, jobs, rulings, arms, there, real, real_arms)


def _real(study: Study, done: Iterable[Job]) -> tuple[dict[str, Ruling], dict[str, ArmResult]]:
    if study.real is None:
        return {}, {}
    there: dict[str, dict[int | str, Answers]] = {}
    for job in done:
        if job.real is not None and job.real_set is not None:
            answers = read_answers(study.real_folder(job.real.name, job.real_set.name))
            if answers is not None:
                there.setdefault(job.real.name, {})[job.real_set.name] = answers
    wanted = {arm.name: len(study.real.sets_of(arm)) for arm in all_real_arms()}
    rulings = {one.name: rule(one, there, seeds=wanted[one.expected[0].first.arm], over=over_questions) for one in REAL}
    return rulings, {name: _arm(name, answers.values()) for name, answers in there.items()}


def as_figures(study: Study, findings: Findings) -> str:
    """figures.json: the same for programs, and for the next run."""
    said = {
        "name": study.recipe.name,
        "machine": findings.machine.model_dump(),
        "seeds": list(study.seeds),
        "jobs": {name: entry.model_dump() for name, entry in sorted(findings.jobs.items())},
        "arms": {name: findings.arms[name].model_dump() for name in all_arms() if name in findings.arms},
        "real_arms": {name: arm.model_dump() for name, arm in findings.real_arms.items()},
        "real": [_ruling(name, one) for name, one in findings.real.items()],
        "directions": [_ruling(name, one) for name, one in findings.rulings.items()],
    }
    return json.dumps(said, indent=1) + "\n"


def _ruling(name: str, one: Ruling) -> dict[str, Any]:
    return {
        "name": name,
        "verdict": one.verdict,
        "left_out": {str(seed): verdict for seed, verdict in one.left_out.items()},
        "judged": [_plain(judged) for judged in one.judged],
        "checked": [_checked(checked) for checked in one.checked],
    }


def _plain(one: Judged) -> dict[str, Any]:
    first, second = one.expected.first, one.expected.second
    return {
        "kind": one.expected.kind,
        "first": first.model_dump(),
        "second": second.model_dump() if isinstance(second, Side) else second,
        "means": [round(one.first, 5), round(one.second, 5)],
        "difference": bounds(one.difference),
        "margin": one.expected.margin,
        "n": one.n,
        "seeds": one.seeds,
        "verdict": one.verdict,
    }


def _checked(one: Checked) -> dict[str, Any]:
    said = one.check.model_dump(mode="json")
    return {**said, "value": bounds(one.value), "seeds": one.seeds, "passed": one.passed}


def bounds(interval: Interval) -> list[float | None]:
    """Value and bounds; None where one seed has none."""
    values = (interval.value, interval.low, interval.high)
    return [round(value, 5) if math.isfinite(value) else None for value in values]


def _found(study: Study, done: Iterable[Job]) -> Found:
    """All answers that are there, of every seed of the study."""
    there: dict[str, dict[int | str, Answers]] = {}
    for job in done:
        if job.arm is not None:
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
