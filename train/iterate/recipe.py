"""The recipe of an expert iteration: who begins, which questions, what is kept, what trains. Nothing runs here."""

from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agent.build.agent import build_protocol
from agent.errors import SetupError
from agent.settings import CairnSettings, load_settings
from train.common.recipe_files import read_model
from train.distill.keep import KeepRules
from train.evaluation.chosen import QuestionChoice
from train.rewards.base import RewardTools
from train.rewards.registry import reward_of

_PUT_IN: Final = ("model", "checkpoint", "temperature", "base_url")
"""Settings of the agent that a run decides itself."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class QuestionSettings(_Part):
    """Questions, with settings of the agent that are for them alone."""

    questions: Path | None = None
    """A question list (JSON lines, or a published set); left out, the questions of the agent's world."""
    dataset: str | None = None
    """The published form of `questions`; left out, it is recognised."""
    limit: int | None = Field(default=None, ge=1)
    """At most this many of them, drawn by chance; left out, all."""
    agent: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Settings of the agent (docs/settings.md) in the place of the recipe's own: another `world`, another `corpus`."""


class SampleSettings(QuestionSettings):
    """What each round samples. Of more questions than `limit` every round draws others."""

    tries: int = Field(default=4, ge=1)
    """Rollouts of each question."""
    temperature: float = Field(default=1.0, gt=0, le=2)
    concurrency: int = Field(default=16, ge=1)
    """Questions at the same time."""


class KeepSettings(_Part):
    """Which rollouts are kept, as the flags of `cairn train distill` say it."""

    right: bool = True
    """The answer is right (exact match)."""
    supported: bool = True
    """Each claim is found in what it cites."""
    reward: str = ""
    """A reward that is computed, too; the best rollouts of a question are those with the most."""
    reward_settings: dict[str, Any] = Field(default_factory=dict[str, Any])
    least: dict[str, float] = Field(default_factory=dict[str, float])
    """Part of that reward, or `total` → what it must reach."""
    each: int = Field(default=1, ge=1)
    """Kept of one question: the best, each different."""

    @model_validator(mode="after")
    def _least_is_of_a_reward(self) -> Self:
        if (self.least or self.reward_settings) and not self.reward:
            raise ValueError("`least` and `reward_settings` are about a reward: name it as `reward`")
        return self


class IterateRecipe(_Part):
    """Expert iteration from a checkpoint."""

    kind: Literal["iterate"]
    name: str
    start: str
    """What `cairn train sft` begins from, too: a folder in the hub's form or of an adapter, a GGUF file, or a name.
    `--start` puts another in its place."""
    seed: int
    rounds: int = Field(ge=1)
    sft: Path
    """Recipe of the supervised training of each round; its `start` and `rows` are put in."""
    sft_from: Literal["previous", "start"] = "previous"
    """Whether that training begins from the policy that made the round's rollouts, or each time from `start`."""
    rl: Path | None = None
    """Recipe of a reinforcement learning that is run between two rounds, from the first one's policy; its `start` is
    put in, and its seed counts up. Left out: none."""
    agent: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Settings of the agent (docs/settings.md) that makes the rollouts: `protocol`, `policy`, `corpus`, `world`, …"""
    sample: SampleSettings
    keep: KeepSettings = KeepSettings()
    dev: QuestionSettings
    """Questions that choose among the rounds; they are answered greedily."""

    @model_validator(mode="after")
    def _the_run_decides_who_writes(self) -> Self:
        for table in (self.agent, self.sample.agent, self.dev.agent):
            if said := [name for name in _PUT_IN if name in table]:
                raise ValueError(f"{said[0]!r} cannot be set for the agent here: the run decides it")
            if table.get("policy", "transformers") not in ("transformers", "vllm"):
                raise ValueError(
                    "the agent's `policy` is 'transformers' or 'vllm': it writes with each round's weights"
                )
        return self

    def settings(self, hub: Path, part: QuestionSettings, *, temperature: float) -> CairnSettings:
        """The agent's settings for some questions, with the weights of a folder.

        Raises:
            SetupError: one of them is none, or cannot be used.
        """
        said = {"policy": "transformers", **self.agent, **part.agent}
        return load_settings(**said, model=str(hub), temperature=temperature)

    def choice(self, part: QuestionSettings, *, number: int) -> QuestionChoice:
        """Which questions of a list a round takes."""
        return QuestionChoice() if part.limit is None else QuestionChoice(limit=part.limit, sample=self.seed + number)

    def rules(self) -> KeepRules:
        """What is kept.

        Raises:
            SetupError: there is no such reward, it has no such part, or the protocol's file cannot be used.
        """
        keep, settings = self.keep, self.settings(Path(self.start), self.sample, temperature=self.sample.temperature)
        protocol = build_protocol(settings) if settings.protocol.endswith(".toml") else None
        tools = RewardTools(protocol=protocol)
        reward = reward_of(keep.reward, keep.reward_settings, tools=tools) if keep.reward else None
        if reward and (unknown := sorted(set(keep.least) - {*reward.parts, "total"})):
            has = ", ".join((*reward.parts, "total"))
            raise SetupError(f"the reward {keep.reward!r} has no part {unknown[0]!r}; it has {has}")
        return KeepRules(
            right=keep.right,
            supported=keep.supported,
            protocol=protocol,
            reward=reward,
            least=keep.least,
            each=keep.each,
        )


def read_iterate_recipe(path: Path, *, start: str | None = None) -> IterateRecipe:
    """Read a recipe.

    Args:
        path: of the TOML file.
        start: a checkpoint in the place of the recipe's own.

    Raises:
        SetupError: the file is missing, no TOML, or has a wrong or unknown key; the sentence names each.
    """
    return read_model(path, IterateRecipe, start=start)
