"""The recipe of the whole miniature, and a study: the recipe with its folder, its seeds and what the user changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agent.errors import SetupError, wrong_fields
from agent.world.difficulty import Difficulty
from lab.reproduce.design import DIFFICULTIES, MIXES, ORACLE, SHARES, SHIPPED, START, Training, WorldKind
from lab.reproduce.protocols import changed_protocol, protocol_name
from lab.reproduce.real_run import RealStudy
from train.common.recipe import SftRecipe, read_recipe
from train.common.recipe_files import read_model, read_table, with_current_keys
from train.ppo.recipe import PpoRecipe
from train.rl.recipe import RlRecipe

SHIPPED_RECIPE: Final = Path(__file__).parent.parent / "recipes" / "reproduce.toml"
EXPORTED: Final = "ct2"
EVALUATED: Final = "evaluated"
LISTED: Final = "listed.jsonl"
"""The questions of a build that are trained on, in their order."""
CHECKPOINTS: Final = Path(__file__).parent.parent.parent / "agent" / "checkpoints"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Worlds(_Part):
    """The worlds of the evaluation, one a seed, with names that no training sees; and those of the question lists."""

    people: int = Field(ge=6)
    questions: int = Field(ge=1)
    list_people: int = Field(ge=6)
    """Of the worlds that the lists are built from."""
    listed: int = Field(ge=1)
    """Questions of each list that is trained on."""
    embedder: str = "words"
    """Of the builds of the lists: a sentence-transformers model, or `words`."""
    seed: int
    difficulty: Difficulty = Difficulty()
    """How hard they are, where their kind says nothing else."""

    def questions_of(self, kind: WorldKind) -> int:
        """Questions of a world of a kind."""
        return max(1, round(self.questions * SHARES.get(kind, 1.0)))

    def difficulty_of(self, kind: WorldKind) -> Difficulty:
        return self.difficulty.model_copy(update=DIFFICULTIES.get(kind, {}))


class StudyRecipe(_Part):
    """A file of `kind = "reproduce"`."""

    kind: Literal["reproduce"]
    name: str
    sft: str
    """File of the shared start's recipe, beside this one."""
    rl: str
    """File of what all trainings have in common, beside this one."""
    steps: int = Field(ge=1)
    points: int = Field(default=1, ge=1)
    """Evaluated steps of a training, as far apart as the first is from the start."""
    seeds: int = Field(ge=1)
    worlds: Worlds

    @model_validator(mode="after")
    def _points_are_steps(self) -> Self:
        if self.steps % self.points:
            raise ValueError(f"{self.steps} steps have no {self.points} points that are equally far apart")
        return self


@dataclass(frozen=True)
class Study:
    """A recipe, the folder of its runs, and what the user changed. It can be handed to another process."""

    recipe: StudyRecipe
    sft: SftRecipe
    base: Mapping[str, Any]
    """Of all trainings, as plain values."""
    out: Path
    hub: Path | None = None
    """A start in the hub's form, in the place of one that is made."""
    real: RealStudy | None = None
    """Real questions, where there are data for them."""
    shipped: Path = field(default=CHECKPOINTS / "tiny-v2")

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(1, self.recipe.seeds + 1))

    @property
    def start(self) -> Path:
        """Of all trainings, in the hub's form."""
        return self.hub or self.out / "start" / "hub"

    def training_folder(self, name: str, seed: int) -> Path:
        return self.out / "trained" / name / str(seed)

    def exported(self, policy: str, seed: int, *, point: int = 0) -> Path:
        """Folder of a policy in the form that is evaluated; of a training, at a point of its curve, or at its end."""
        if policy in (SHIPPED, ORACLE):
            return self.shipped / EXPORTED
        if policy == START:
            return self.out / "start" / EXPORTED
        at = f"-{point}" if 0 < point < self.recipe.points else ""
        return self.training_folder(policy, seed) / f"{EXPORTED}{at}"

    def answers_folder(self, name: str, seed: int) -> Path:
        return self.out / EVALUATED / name / str(seed)

    def index(self, name: str) -> Path:
        """Folder of the index of a real set."""
        return self.out / "indices" / name

    def real_folder(self, arm: str, name: str) -> Path:
        """Of an arm's answers to a real set."""
        return self.out / "real" / arm / name

    def lists(self, seed: int) -> Path:
        """Folder of the question lists of a seed."""
        return self.out / "lists" / str(seed)

    def steps(self, training: Training) -> int:
        return max(1, round(self.recipe.steps * training.length))

    def protocol(self, training: Training) -> str:
        """Its name, or its file."""
        folder = self.out / "protocols"
        return changed_protocol(training.protocol, training.protocol_changes, label=training.name, folder=folder)

    def rl_recipe(self, training: Training, seed: int) -> RlRecipe:
        """The recipe of one training.

        Raises:
            SetupError: what is put together is no recipe.
        """
        steps = self.steps(training)
        said = merged(self.base, training.changes)
        said |= {"name": training.name, "start": str(self.start), "protocols": [self.protocol(training)]}
        said |= {"seed": seed, "steps": steps}
        optimizer = said.get("optimizer", {})  # its warm-up ends within a study of few steps, too
        said["optimizer"] = {**optimizer, "warmup_steps": min(optimizer.get("warmup_steps", 0), steps)}
        points = {"save_every_steps": steps // self.recipe.points, "keep": self.recipe.points}
        said["report"] = {**said.get("report", {}), **points}
        if training.questions:
            folder = self.lists(seed) / training.questions
            search = {"world": str(folder.parent / "world")}
            said["data"] = {"questions": folder / LISTED, "order": "listed", "search": search}
        else:
            said["curriculum"] = [{"until": 1.0, "mix": MIXES[training.world]}]
            said["data"] = _as_hard(said.get("data", {}), training.world)
        return _checked(said)


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Tables are merged, key by key; everything else is put in the place of what was there."""
    made = dict(base)
    for name, change in changes.items():
        there = made.get(name)
        if isinstance(change, Mapping) and isinstance(there, Mapping):
            made[name] = merged(there, change)
        else:
            made[name] = change
    return made


def _checked(said: dict[str, Any]) -> RlRecipe:
    """As RL, or as PPO, where as many rollouts a step have a question each."""
    is_ppo = said["kind"] == "ppo"
    if is_ppo:
        rollout = said["rollout"]
        said["rollout"] = {**rollout, "prompts": rollout["prompts"] * rollout["group"], "group": 1}
    said = with_current_keys(said)
    try:
        return (PpoRecipe if is_ppo else RlRecipe).model_validate(said)
    except ValidationError as error:
        raise SetupError(f"the training {said['name']} cannot be put together: {wrong_fields(error)}") from error


def _as_hard(data: Mapping[str, Any], kind: WorldKind) -> dict[str, Any]:
    """The worlds of a training, as hard as the evaluation's of their kind."""
    own = {name: [value, value] for name, value in DIFFICULTIES.get(kind, {}).items()}
    return {**data, "difficulty": {**data.get("difficulty", {}), **own}} if own else dict(data)


def read_study(path: Path, out: Path, *, hub: Path | None = None, real: RealStudy | None = None) -> Study:
    """Read the recipe and those that it names.

    Args:
        path: of the TOML file.
        out: folder of everything.
        hub: a start that is there already.
        real: real questions.

    Raises:
        SetupError: a file or folder is missing, no TOML, or has a wrong or unknown key.
    """
    recipe = read_model(path, StudyRecipe)
    base = read_table(path.parent / recipe.rl)
    if hub is not None and not (hub / "tokenizer.json").is_file():
        raise SetupError(f"{hub} holds no checkpoint in the hub's form; name the folder `hub` of a trained one")
    sft = read_recipe(path.parent / recipe.sft)
    sft = sft.model_copy(update={"protocols": tuple(protocol_name(name) for name in sft.protocols)})
    if sft.start and not Path(sft.start).is_dir():  # as the shipped recipes write it: seen from the source's folder
        sft = sft.model_copy(update={"start": str(CHECKPOINTS.parents[1] / sft.start)})
    return Study(recipe, sft, base, out.resolve(), hub, real)
