"""The five papers by their names, and everything that they name, looked up."""

from collections.abc import Iterable, Sequence
from typing import Final

from agent.errors import SetupError
from lab.reproduce.design import BASELINES, Arm, Direction, Paper, Training, arm_of
from lab.reproduce.papers.dag import DAG
from lab.reproduce.papers.evidence import EVIDENCE
from lab.reproduce.papers.kg import KG
from lab.reproduce.papers.multisearch import MULTISEARCH
from lab.reproduce.papers.reflect import REFLECT

PAPERS: Final[dict[str, Paper]] = {paper.name: paper for paper in (MULTISEARCH, DAG, EVIDENCE, REFLECT, KG)}


def directions_of(which: str, only: Sequence[str] = ()) -> list[Direction]:
    """The directions of a paper, or of `all` of them; only those that are named, where some are.

    Raises:
        SetupError: there is no such paper or direction.
    """
    if which != "all" and which not in PAPERS:
        raise SetupError(f"there is no paper {which!r}; choose from: all, {', '.join(PAPERS)}")
    there = [one for paper in PAPERS.values() if which in ("all", paper.name) for one in paper.directions]
    names = [one.name for one in there]
    if unknown := [name for name in only if name not in names]:
        raise SetupError(f"{which} has no direction {unknown[0]!r}; it has: {', '.join(names)}")
    return [one for one in there if not only or one.name in only]


def trainings() -> dict[str, Training]:
    """Every training by its name."""
    return {one.name: one for paper in PAPERS.values() for one in paper.trainings}


def all_arms() -> dict[str, Arm]:
    """Every arm by its name: what the papers list, and each trained policy."""
    listed = [one for paper in PAPERS.values() for one in paper.arms]
    after = [arm_of(training) for training in trainings().values()]
    return {one.name: one for one in (*after, *listed)}


def arms_of(directions: Iterable[Direction]) -> list[Arm]:
    """The arms that these directions compare or check, each once, in their order.

    Whose oracle is among them, of that protocol the start and the policy that it was made from are, too.
    """
    there = all_arms()
    names = [side.arm for one in directions for side in one.sides]
    labels = [name.removesuffix("-oracle") for name in names if name.endswith("-oracle")]
    beside = [f"{label}-{who}" for label in labels for who in BASELINES]
    return [there[name] for name in dict.fromkeys([*names, *beside])]
