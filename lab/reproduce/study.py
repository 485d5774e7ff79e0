"""The recipe of the whole miniature, and a study: the recipe with its folder, its seeds and what the user changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.errors import SetupError, wrong_fields
from agent.world.difficulty import Difficulty
from lab.reproduce.design import MIXES, SHIPPED, START, QuestionList, Training
from train.common.recipe import SftRecipe, read_recipe
from train.common.recipe_files import read_model, read_table, with_current_keys
from train.ppo.recipe import PpoRecipe
from train.rl.recipe import RlRecipe

SHIPPED_RECIPE: Final = Path(__file__).parent.parent / "recipes" / "reproduce.toml"
EXPORTED: Final = "ct2"
EVALUATED: Final = "evaluated"
QUESTIONS: Final = "questions.jsonl"
CHECKPOINTS: Final = Path(__file__).parent.parent.parent / "agent" / "checkpoints"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Worlds(_Part):
    """The worlds of the evaluation, one a seed, with names that no training sees; and those of the question lists."""

    people: int = Field(ge=6)
    questions: int = Field(ge=1)
    listed: int = Field(ge=1)
    """Questions of each list that is trained on."""
    seed: int
    difficulty: Difficulty = Difficulty()
    """How hard they are."""


class StudyRecipe(_Part):
    """A file of `kind = "reproduce"`."""

    kind: Literal["reproduce"]
    name: str
    sft: str
    """File of the shared start's recipe, beside this one."""
    rl: str
    """File of what all trainings have in common, beside this one."""
    steps: int = Field(ge=1)
    seeds: int = Field(ge=1)
    worlds: Worlds


@dataclass(frozen=True)
class Study:
    """A recipe, the folder of its runs, and what the user changed. It can be handed to another process."""

    recipe: StudyRecipe
    sft: SftRecipe
    base: Mapping[str, Any]
    """Of all trainings, as plain values."""
    out: Path
    seeds: tuple[int, ...]
    steps: int
    hub: Path | None = None
    """A start in the hub's form, in the place of one that is made."""
    questions: Path | None = None
    """Folder of the question lists to train on, `pipeline` and `single`, in the place of those made here. Each is what
    `cairn data build` leaves of a little world: questions.jsonl and world/."""
    shipped: Path = field(default=CHECKPOINTS / "tiny-v2")

    @property
    def start(self) -> Path:
        """Of all trainings, in the hub's form."""
        return self.hub or self.out / "start" / "hub"

    def training_folder(self, name: str, seed: int) -> Path:
        return self.out / "trained" / name / str(seed)

    def exported(self, policy: str, seed: int) -> Path:
        """Folder of a policy in the form that is evaluated."""
        if policy == SHIPPED:
            return self.shipped / EXPORTED
        return (self.out / "start" if policy == START else self.training_folder(policy, seed)) / EXPORTED

    def answers_folder(self, name: str, seed: int) -> Path:
        return self.out / EVALUATED / name / str(seed)

    def lists(self, seed: int) -> Path:
        """Folder of the question lists of a seed."""
        return self.questions or self.out / "lists" / str(seed)

    def rl_recipe(self, training: Training, seed: int) -> RlRecipe:
        """The recipe of one training.

        Raises:
            SetupError: what is put together is no recipe.
        """
        steps = max(1, round(self.steps * training.length))
        said = merged(self.base, training.changes)
        said |= {"name": training.name, "start": str(self.start), "protocols": [training.protocol]}
        said |= {"seed": seed, "steps": steps}
        if training.questions:
            folder = self.lists(seed) / training.questions
            search = {"world": str(folder / "world")}
            said["data"] = {"questions": folder / QUESTIONS, "order": "listed", "search": search}
        else:
            mix = training.mix or MIXES[training.world]
            said["curriculum"] = [{"until": 1.0, "mix": mix}]
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


def read_study(
    path: Path,
    out: Path,
    *,
    seeds: Sequence[int] = (),
    steps: int = 0,
    hub: Path | None = None,
    questions: Path | None = None,
) -> Study:
    """Read the recipe and those that it names.

    Args:
        path: of the TOML file.
        out: folder of everything.
        seeds: instead of the recipe's 1 to `seeds`.
        steps: instead of the recipe's.
        hub: a start that is there already.
        questions: folder of question lists that are there already.

    Raises:
        SetupError: a file or folder is missing, no TOML, or has a wrong or unknown key.
    """
    recipe = read_model(path, StudyRecipe)
    base = read_table(path.parent / recipe.rl)
    if hub is not None and not (hub / "tokenizer.json").is_file():
        raise SetupError(f"{hub} holds no checkpoint in the hub's form; name the folder `hub` of a trained one")
    lacks = [f"{name}/{file}" for name in get_args(QuestionList) for file in (QUESTIONS, "world/world.json")]
    if questions is not None and (lacks := [name for name in lacks if not (questions / name).is_file()]):
        raise SetupError(
            f"{questions} lacks {lacks[0]}: it must hold two builds of `cairn data build --world`, in `pipeline`, and "
            "(with --bundles same) in `single`"
        )
    chosen = tuple(seeds) or tuple(range(1, recipe.seeds + 1))
    sft = read_recipe(path.parent / recipe.sft)
    if sft.start and not Path(sft.start).is_dir():  # as the shipped recipes write it: seen from the source's folder
        sft = sft.model_copy(update={"start": str(CHECKPOINTS.parents[1] / sft.start)})
    return Study(recipe, sft, base, out.resolve(), chosen, steps or recipe.steps, hub, questions)
