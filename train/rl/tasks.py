"""Which questions a batch has: a pure function of recipe, step and attempt, so that a resumed run has the same ones."""

import random
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, cast

from pydantic import ValidationError

from agent.build.agent import build_protocol
from agent.errors import SetupError, wrong_fields
from agent.policies.model_folder import as_in_training
from agent.protocols import TextProtocol
from agent.settings import CairnSettings
from agent.sources.base import Source
from agent.sources.questions import GoldQuestion
from agent.world import World
from agent.world.names import Split
from train.evaluation.questions import world_questions
from train.rewards.task import Task
from train.rl.recipe import RlRecipe

_KEPT: Final = 4
"""Worlds that are held in memory."""
_EXTRA: Final = 500_000
"""Worlds from this one on are for the further questions of dynamic sampling."""
_DEV_QUESTIONS: Final = 16
"""Of each dev world."""


@dataclass(frozen=True)
class Ask:
    """One question, with its protocol and its sources."""

    question: GoldQuestion
    task: Task
    protocol: TextProtocol
    sources: Mapping[str, Source]
    world: World | None = None
    """Whose sources these are; None for those of a question list."""


class Tasks(Protocol):
    """Where questions come from."""

    def draw(self, step: int, attempt: int, number: int) -> list[Ask]:
        """The first `number` questions of an attempt of a step.

        Args:
            step: from 0.
            attempt: 0, or the number of a further one of dynamic sampling.
            number: at most the recipe's `prompts`.
        """
        ...

    def held_out(self) -> list[Ask]:
        """Questions of dev worlds or of the dev list, always the same ones."""
        ...


def tasks_of(recipe: RlRecipe, *, sources: Mapping[str, Source] | None = None) -> Tasks:
    """The recipe's questions.

    Args:
        recipe: the run's.
        sources: for a question list.

    Raises:
        SetupError: a protocol, a list or sources that cannot be used.
    """
    if recipe.data.questions is not None:
        return ListTasks(recipe, sources=sources)
    return WorldTasks(recipe)


class WorldTasks:
    """Questions of little worlds, `questions_per_world` from each."""

    def __init__(self, recipe: RlRecipe) -> None:
        self._recipe = recipe
        self._protocols = protocols_of(recipe)
        self._worlds: OrderedDict[tuple[int, Split, int], tuple[World, list[Ask]]] = OrderedDict()

    def draw(self, step: int, attempt: int, number: int) -> list[Ask]:
        first = _first_place(self._recipe, step, attempt)
        stage = self._recipe.stage(step / self._recipe.steps)
        return [
            self._ask(place, extra=attempt > 0, stage=self._recipe.curriculum.index(stage) if stage else -1)
            for place in range(first, first + number)
        ]

    def held_out(self) -> list[Ask]:
        wanted = self._recipe.report.dev_questions
        worlds = range(-(-wanted // _DEV_QUESTIONS))
        asks = [ask for world in worlds for ask in self._of_world(world, "dev", -1, questions=_DEV_QUESTIONS)]
        return asks[:wanted]

    def _ask(self, place: int, *, extra: bool, stage: int) -> Ask:
        size = self._recipe.data.questions_per_world
        world = self._recipe.seed * 1_000_000 + place // size + (_EXTRA if extra else 0)
        return self._of_world(world, self._recipe.data.split, stage, questions=size)[place % size]

    def _of_world(self, seed: int, split: Split, stage: int, *, questions: int) -> list[Ask]:
        """The questions of a world, each under one protocol, in an order of chance."""
        key = (seed, split, stage)
        if key not in self._worlds:
            self._worlds[key] = self._made(seed, split, stage, questions=questions)
            while len(self._worlds) > _KEPT:
                self._worlds.popitem(last=False)
        return self._worlds[key][1]

    def _made(self, seed: int, split: Split, stage: int, *, questions: int) -> tuple[World, list[Ask]]:
        data = self._recipe.data
        mix = self._recipe.curriculum[stage].mix if stage >= 0 else None
        try:
            world = data.world(seed, questions=questions, mix=mix, split=split)
        except ValueError as error:
            raise SetupError(f"the worlds of the recipe's [data] cannot be made: {error}") from error
        sources = world.sources()
        rng = random.Random(f"rl protocols {self._recipe.seed} {split} {seed}")
        questions_of_world = world_questions(world.questions)
        rng.shuffle(questions_of_world)
        return world, [
            Ask(question, world_task(question, world), self._protocol(rng), cast(Mapping[str, Source], sources), world)
            for question in questions_of_world
        ]

    def _protocol(self, rng: random.Random) -> TextProtocol:
        weights = [self._recipe.data.protocol_weights.get(name, 1.0) for name in self._recipe.protocols]
        return rng.choices(self._protocols, weights)[0]


class ListTasks:
    """Questions of a list, epoch after epoch, with sources of its own; a second list, if there is one, is dev."""

    def __init__(self, recipe: RlRecipe, *, sources: Mapping[str, Source] | None = None) -> None:
        """Read the list.

        Raises:
            SetupError: it cannot be read, is too short for a batch, or its sources cannot be built.
        """
        from agent.build.sources import build_sources
        from train.evaluation.datasets import read_dataset

        assert recipe.data.questions is not None
        if any(stage.settings.get("relevance") == "similar" for stage in recipe.reward):
            raise SetupError(
                '`relevance = "similar"` compares with the texts of gold passages, which a question list does not '
                "have: leave it out, and passages are relevant by their id or title"
            )
        found = read_dataset(recipe.data.questions, recipe.data.dataset).questions
        self._questions: Sequence[GoldQuestion] = found[: recipe.data.limit or None]
        self._recipe = recipe
        self._protocols = protocols_of(recipe)
        self._sources = build_sources(source_settings(recipe.data.search)) if sources is None else sources
        self._dev = self._dev_asks() if recipe.data.dev is not None else []
        if len(self._questions) < recipe.rollout.prompts:
            raise SetupError(
                f"{recipe.data.questions} has {len(self._questions)} questions, fewer than the {recipe.rollout.prompts}"
                " of one batch"
            )

    def draw(self, step: int, attempt: int, number: int) -> list[Ask]:
        first = _first_place(self._recipe, step, attempt)
        return [self._ask(place, extra=attempt > 0) for place in range(first, first + number)]

    def held_out(self) -> list[Ask]:
        return self._dev

    def _dev_asks(self) -> list[Ask]:
        """The questions of `dev`.

        Raises:
            SetupError: the list cannot be read, has a question that is trained on, or its sources cannot be built.
        """
        from agent.build.sources import build_sources
        from train.evaluation.datasets import read_dataset

        data = self._recipe.data
        assert data.dev is not None
        questions = read_dataset(data.dev, None).questions[: self._recipe.report.dev_questions]
        trained = {question.question for question in self._questions}
        if both := [question for question in questions if question.question in trained]:
            raise SetupError(
                f"{len(both)} of the {len(questions)} questions of {data.dev} are trained on, {both[0].id!r} for one: "
                "name others under `dev`"
            )
        sources = build_sources(source_settings(data.dev_search)) if data.dev_search else self._sources
        return [Ask(question, Task.of(question), self._protocols[0], sources) for question in questions]

    def _ask(self, place: int, *, extra: bool) -> Ask:
        epoch, at = divmod(place, len(self._questions))
        if extra or self._recipe.data.order == "shuffled":
            order = list(range(len(self._questions)))
            random.Random(f"rl order {self._recipe.seed} {epoch} {extra}").shuffle(order)
            at = order[at]
        rng = random.Random(f"rl protocols {self._recipe.seed} {place} {extra}")
        weights = [self._recipe.data.protocol_weights.get(name, 1.0) for name in self._recipe.protocols]
        question = self._questions[at]
        return Ask(question, Task.of(question), rng.choices(self._protocols, weights)[0], self._sources)


def world_task(question: GoldQuestion, world: World) -> Task:
    """The task of a question of a little world, with the texts of its gold passages."""
    return Task.of(question, texts=[world.document(key).text for key in question.supporting])


def _first_place(recipe: RlRecipe, step: int, attempt: int) -> int:
    """The place of an attempt's first question, among those of all steps or among the further ones of all steps."""
    prompts, resample = recipe.rollout.prompts, recipe.learning.resampling
    if attempt == 0:
        return step * prompts
    if resample == "full":  # however many attempts a step makes, no two of the run have the same questions
        return ((attempt - 1) * recipe.steps + step) * prompts
    return (step * max(1, resample) + attempt - 1) * prompts


def source_settings(search: Mapping[str, Any]) -> CairnSettings:
    """The settings of a question list's sources.

    Args:
        search: the table `search` of a recipe's [data].

    Raises:
        SetupError: one of them is none, or cannot be used.
    """
    try:
        return CairnSettings(**search)
    except ValidationError as error:
        raise SetupError(
            f"`search` in the recipe's [data] cannot be used: {wrong_fields(error)} (see docs/sources.md)"
        ) from error


def protocols_of(recipe: RlRecipe) -> list[TextProtocol]:
    """The recipe's protocols, in its order, each as the start of the run was trained with it.

    Raises:
        SetupError: there is no such protocol, or it needs texts that are missing.
    """
    prompt_file: Path | None = recipe.data.search.get("prompt_file")
    protocols = [build_protocol(CairnSettings(protocol=name, prompt_file=prompt_file)) for name in recipe.protocols]
    return [as_in_training(protocol, Path(recipe.start).expanduser()) for protocol in protocols]
