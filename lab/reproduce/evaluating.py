"""A policy, or the oracle, answers the questions of an unseen world: the figures that are kept of it."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agent.build.sources import build_sources
from agent.errors import SetupError
from agent.settings import CairnSettings, settings_of
from agent.sources.select import selected
from agent.trace.io import read_traces
from agent.world import World, load_world
from lab.reproduce.behaviour import BEHAVIOURS, behaviour
from lab.reproduce.design import AREA, ORACLE, Arm
from lab.reproduce.protocols import changed_protocol, protocol_of
from train.common.saving import as_a_whole
from train.evaluation.gold import GoldBook
from train.evaluation.measure import measure
from train.evaluation.questions import GoldQuestion, world_questions
from train.evaluation.session import Evaluation
from train.evaluation.store import TRACES, read_results
from train.sft.episodes import oracle_rollout
from train.sft.oracle import Teacher

ANSWERS: Final = "answers.json"
METRICS: Final = (
    "em",
    "f1",
    "searches",
    "rounds",
    "policy_tokens",
    "passages",
    "environment_tokens",
    "gold_found",
    "all_gold",
)
_COURSES: Final = ("em", "searches", "gold_found", *BEHAVIOURS)
"""Figures whose areas are kept."""
AT_ONCE: Final = 16
PATIENCE: Final = {"seconds": 3600, "search_seconds": 600}
"""However slow the machine is, no answer is forced by it."""

Answers = dict[str, dict[str, Any]]
"""Question id → its `type`, and its figures by name (None where one does not apply)."""
Show = Callable[[float, float, str, str], None]
"""Gets the progress: done, of how many, of what, and what there is to see."""


def evaluate(arm: Arm, *, world: Path, policy: Path, out: Path, seed: int = 0, show: Show) -> Answers:
    """Ask every question that is not answered yet, and keep the figures.

    Args:
        arm: the policy, and how it answers.
        world: folder of the world.
        policy: folder of the exported checkpoint.
        out: of the results; questions that have one there are left out.
        seed: of sampling.
        show: gets the progress.

    Raises:
        SetupError: something cannot be used, or no question could be scored.
    """
    out.mkdir(parents=True, exist_ok=True)
    if arm.policy == ORACLE:
        answers = _oracle(arm, load_world(world))
    else:
        settings = _settings(arm, world, policy, out)
        answers = _read(settings, show) if arm.reader else _evaluate(arm, settings, out, seed, show)
    if not answers:
        raise SetupError(f"no question of {world} could be scored for {arm.name}")
    keep_answers(answers, out)
    return answers


def read_answers(folder: Path) -> Answers | None:
    """What was kept; None where it is not there yet.

    Raises:
        SetupError: it is damaged.
    """
    path = folder / ANSWERS
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    except (OSError, ValueError) as error:
        raise SetupError(f"{path} cannot be read ({error}): remove it, then run the same command again") from error


def points_as_one(answers: Sequence[Answers]) -> Answers:
    """The answers of a training's last point, with the EM at each point, and the areas under the curves.

    An area is the mean of a figure over the points: `area` of EM, `area_searches` and so on of the others.
    """
    *_, last = answers
    made: Answers = {}
    for key, figures in last.items():
        courses = {name: [one[key][name] for one in answers if one[key].get(name) is not None] for name in _COURSES}
        points = {f"em_{point}": em for point, em in enumerate(courses["em"], start=1)}
        areas = {f"{AREA}_{name}": sum(own) / len(own) if own else None for name, own in courses.items()}
        made[key] = {**figures, **points, **areas, AREA: areas.pop(f"{AREA}_em")}
    return made


def keep_answers(answers: Answers, out: Path) -> None:
    with as_a_whole(out / ANSWERS) as made:
        made.write_text(json.dumps(answers, indent=0) + "\n", encoding="utf-8")


def _figures(kind: str, metrics: Mapping[str, float | None], did: Mapping[str, float | None]) -> dict[str, Any]:
    return {"type": kind, **{name: metrics.get(name) for name in METRICS}, **did}


def _settings(arm: Arm, world: Path, policy: Path, out: Path) -> CairnSettings:
    return settings_of(
        policy="embedded",
        checkpoint=policy,
        world=str(world),
        protocol=changed_protocol(arm.protocol, arm.protocol_changes, label=arm.name, folder=out),
        sources=arm.sources or None,
        temperature=arm.temperature or None,
        budgets={**PATIENCE, **arm.budgets},
    )


def _evaluate(arm: Arm, settings: CairnSettings, out: Path, seed: int, show: Show) -> Answers:
    named = arm.sources and protocol_of(arm.protocol, arm.protocol_changes).sources
    if named:  # the policy names sources that are not there: those that are answer in their place
        settings = settings.model_copy(update={"sources": ()})
    sources = selected(build_sources(settings), only=arm.sources) if named else None
    evaluation = Evaluation(settings, sources=sources, concurrency=AT_ONCE, seed=seed, out=out, retry_failed=True)
    figures = evaluation.run(lambda so_far: show(so_far.done, so_far.total, "questions", ""))
    if figures["n"] < len(evaluation.questions):
        raise SetupError(f"{arm.name}: some questions failed ({evaluation.last_failure})")
    return figures_of(evaluation.questions, out)


def figures_of(questions: Sequence[GoldQuestion], out: Path) -> Answers:
    """The figures of every question that was evaluated into a folder, read off its result and its trace."""
    gold = {question.id: question.answers for question in questions}
    results = {result.id: result for result in read_results(out) if result.status == "scored"}
    traces = {trace.id: trace for trace in read_traces(out / TRACES)}
    return {
        key: _figures(result.type, result.metrics, behaviour(traces[result.trace], gold[key]))
        for key, result in results.items()
    }


def _oracle(arm: Arm, world: World) -> Answers:
    """What the oracle answers through the same searches; where it finds no way, it has no answer."""
    protocol = protocol_of(arm.protocol, arm.protocol_changes)
    book = GoldBook.of(plain_ones := world_questions(world.questions), world.documents)
    answers: Answers = {}
    for question, plain in zip(world.questions, plain_ones, strict=True):
        try:
            teacher = Teacher(question, protocol, world.document)
            trace = oracle_rollout(world, question, protocol, teacher, only=arm.sources)
        except LookupError:
            answers[question.id] = {"type": question.type, "em": 0.0, "f1": 0.0}
            continue
        did = behaviour(trace, plain.answers)
        answers[question.id] = _figures(question.type, measure(plain, trace, book=book), did)
    return answers


def _read(settings: CairnSettings, show: Show) -> Answers:
    """EM of the reader in each condition, and of the agent itself."""
    from lab.cli.reader import CHECKPOINT
    from lab.reader.transfer import ask_each
    from train.reader.reading import TrainedReader

    reader = TrainedReader.load(CHECKPOINT)
    scored, _ = ask_each(settings, reader, show=lambda done, total: show(done, total, "questions", ""))
    return {
        one.id: {
            "type": one.type,
            "em": one.agent_em,
            **{f"em_{name}": one.em[name] for name in one.em},
            **{f"given_{name}": one.gold_given[name] for name in one.gold_given},
        }
        for one in scored
    }
