"""Little worlds to train on, as recipes describe them: how large they are, and how hard each of them happens to be."""

import random
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from agent.errors import SetupError
from agent.world import World
from agent.world.difficulty import Difficulty
from agent.world.names import Split
from agent.world.records import QuestionType
from train.world.shards import make_world

RENAMED: Final = {"knobs": "difficulty", "poor_share": "noisy_share"}
"""Keys that recipes had before."""


def _can_be_drawn(ranges: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Both ends of every range are values of that setting, the lower one first."""
    if unknown := sorted(set(ranges) - set(Difficulty.model_fields) | {"hops"} & set(ranges)):
        names = ", ".join(name for name in Difficulty.model_fields if name != "hops")
        raise ValueError(f"{unknown[0]!r} is not a difficulty; choose from: {names}")
    for end in (0, 1):
        Difficulty.model_validate({name: ends[end] for name, ends in ranges.items()})
    if wrong := [name for name, (low, high) in ranges.items() if low > high]:
        raise ValueError(f"the range of {wrong[0]!r} ends below its beginning; give the lower end first")
    return ranges


Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""How often something is drawn, beside the weights of what else there is."""
Ranges = Annotated[dict[str, tuple[float, float]], AfterValidator(_can_be_drawn)]
"""By the setting's name, its lowest and its highest value."""


def _one_is_positive(mix: dict[QuestionType, Weight]) -> dict[QuestionType, Weight]:
    if mix and not any(mix.values()):
        raise ValueError("no type of question has a weight above 0: give one to a type that is wanted")
    return mix


Mix = Annotated[dict[QuestionType, Weight], AfterValidator(_one_is_positive)]
"""Type of question → how often."""


def check_protocol_weights(weights: Mapping[str, float], protocols: Sequence[str]) -> None:
    """Refuse weights of protocols that a recipe does not have, and those that leave none to draw.

    Raises:
        ValueError: the message names what is wrong.
    """
    if unknown := set(weights) - set(protocols):
        raise ValueError(f"`protocol_weights` names {', '.join(sorted(unknown))}, which `protocols` does not")
    if not any(weights.get(name, 1.0) for name in protocols):
        raise ValueError("`protocol_weights` leaves no protocol to draw: give one a weight above 0")


class WorldData(BaseModel):
    """What the `[data]` of every recipe says about its little worlds."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    generator: Literal[2] = 2
    """The version of the worlds' generator; there is one."""
    split: Split = "train"
    """Of the worlds' names; the evaluation's are never seen in training."""
    people: int = Field(ge=6)
    """Of a world; everything else follows."""
    difficulty: Ranges = Field(default_factory=dict, exclude_if=lambda ranges: not ranges)
    """The range that each world draws a setting of its own from; the others are as by default."""

    @model_validator(mode="before")
    @classmethod
    def _no_retired_key(cls, said: Any) -> Any:
        refuse_renamed(said, RENAMED)
        if isinstance(said, Mapping) and said.get("generator", 2) == 1:
            raise ValueError(
                "generator 1 was retired: leave `generator` out, and for worlds as easy as its own set low "
                "ranges in `difficulty`, for example { noise = [0, 0], paraphrase = [0, 0] }"
            )
        return said

    def world(
        self, seed: int, *, questions: int, mix: Mapping[QuestionType, float] | None = None, split: Split | None = None
    ) -> World:
        """The world of a seed; without a mix of questions, with the generator's own.

        Raises:
            SetupError: it is too small for its questions.
        """
        try:
            return make_world(
                seed,
                split=split or self.split,
                people=self.people,
                questions=questions,
                mix=mix or None,
                difficulty=drawn_from(self.difficulty, seed),
            )
        except ValueError as error:
            raise SetupError(f"{error}: in [data] raise `people` or lower `questions_per_world`") from error


def drawn_from(ranges: Mapping[str, tuple[float, float]], seed: int) -> Difficulty:
    """The difficulty of one world, always the same of a seed; settings without a range are as by default."""
    rng = random.Random(f"knobs {seed}")  # the seeds of worlds that were trained on
    return Difficulty.model_validate({name: round(rng.uniform(low, high), 3) for name, (low, high) in ranges.items()})


def refuse_renamed(said: Any, renamed: Mapping[str, str]) -> None:
    """Refuse a table of a recipe that has a previous name of a key.

    Raises:
        ValueError: it has one; the message gives the new name.
    """
    if isinstance(said, Mapping):
        for old, new in renamed.items():
            if old in said:
                raise ValueError(f"`{old}` is called `{new}` now: rename it")
