"""The settings of an environment: its questions, protocol, sources, limits and reward."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agent.errors import SetupError, wrong_fields
from agent.settings import BudgetSettings
from train.rl.recipe import Embedder, JudgeEndpoint, RewardStage, RlData


class EnvironmentSettings(BaseModel):
    """What `load_environment` of each trainer takes. The tables have the keys that they have in a recipe."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    protocol: str = "cairn"
    """A built-in one, a profile, or a protocol file."""
    prompt_file: Path | None = None
    """The texts of other authors that a profile needs."""
    tasks: int = Field(default=64, ge=1)
    """Questions from little worlds. A question list has its own number, or `limit` in `data`."""
    seed: int = Field(default=0, ge=0)
    """Of the little worlds: environments with different ones share no world, if they have fewer than a million."""
    data: RlData = RlData()
    """Little worlds, or a question list (`questions`) with sources of its own (`search`)."""
    budgets: BudgetSettings = BudgetSettings(policy_tokens=1024, seconds=600.0)
    """What one rollout may use. One that reaches `seconds` is masked: that depends on the machine."""
    reward: RewardStage = RewardStage(name="outcome")
    judge: JudgeEndpoint | None = None
    reader: JudgeEndpoint | None = None
    local_reader: Path | None = None
    embedder: Embedder | None = None
    endpoint: Literal["chat", "completions"] = "chat"
    """How the trainer's model is called: by messages, with the protocol's rules in the prompt; or with token ids, for a
    model that was trained on the protocol, at a server that gives ids, as vLLM's."""
    tokenizer: str = ""
    """Of the model, for `completions`: its folder, or its name on the hub."""
    temperature: float = Field(default=1.0, ge=0, le=2)
    """Where the trainer names none."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Where the trainer names none."""

    @model_validator(mode="after")
    def _the_trainer_chooses(self) -> Self:
        """What a recipe says about the course of a run is the trainer's to decide here."""
        if said := sorted(self.data.model_fields_set & {"order", "protocol_weights"}):
            raise ValueError(f"`{said[0]}` in `data` is for Cairn's trainer; leave it out: yours draws the questions")
        if "until" in self.reward.model_fields_set:
            raise ValueError("`until` in `reward` is for Cairn's trainer; leave it out: there is one reward")
        return self

    @model_validator(mode="after")
    def _completions_have_a_tokenizer(self) -> Self:
        if (self.endpoint == "completions") != bool(self.tokenizer):
            raise ValueError('`tokenizer` belongs to `endpoint = "completions"`, and that needs it')
        return self


def read_settings(said: Mapping[str, Any]) -> EnvironmentSettings:
    """The settings of a call.

    Raises:
        SetupError: an unknown key or a wrong value; the sentence names each.
    """
    try:
        return EnvironmentSettings.model_validate(dict(said))
    except ValidationError as error:
        raise SetupError(
            f"the settings of the environment cannot be used: {wrong_fields(error)} (see docs/environments.md)"
        ) from error
