"""Recipes: everything that decides how a run ends, read once from a TOML file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agent.errors import SetupError
from train.common.habit import Habit
from train.common.recipe_files import as_model, read_table
from train.common.worlds import Mix, Weight, WorldData, check_protocol_weights


def _is_none(value: object) -> bool:
    """A field that came later is written only where it says something, so that older runs can still be resumed."""
    return value is None


def _is_empty(value: object) -> bool:
    return not value


def _is_zero(value: float) -> bool:
    return value == 0


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ModelShape(_Part):
    """Shape of a Qwen3 model. `head_dim` must be one that every engine takes (32 or 64)."""

    width: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: Literal[32, 64]
    inner: int
    vocabulary: int
    context: int


class AdapterSettings(_Part):
    """Low-rank matrices that are trained beside a pretrained model's own, which stay as they are (LoRA, peft)."""

    rank: int = Field(ge=1)
    alpha: float = Field(gt=0)
    """What they add is multiplied by alpha / rank."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    targets: tuple[str, ...] = ()
    """Names of the linear layers that get one; empty: all but the one in front of the vocabulary."""


class SftData(WorldData):
    """Where trajectories come from: world after world, `questions_per_world` from each, shuffled pool by pool."""

    people: int = Field(default=110, ge=6)
    questions_per_world: int = 300
    worlds_per_pool: int = Field(default=4, ge=1)
    passages: dict[str, int] = Field(default_factory=dict, exclude_if=_is_empty)
    """A search shows, by protocol, where it is another number than the protocol's; the checkpoint says it, too."""
    max_tokens: int
    """Longer trajectories are left out."""
    protocol_weights: dict[str, Weight] = Field(default_factory=dict)
    """How often a protocol is drawn, where not as often as every other one (1)."""
    fill_share: float = Field(default=0.0, ge=0, le=1)
    """Of the chains that one round with fills can answer, in a protocol that has them."""
    tokenizer_worlds: int = 40
    """Worlds whose trajectories the tokenizer is made from."""
    rows: str = Field(default="", exclude_if=_is_empty)
    """A file of `cairn data trajectories` or `cairn train distill` to learn from, again and again, instead of the
    oracle's trajectories."""
    built: str = Field(default="", exclude_if=_is_empty)
    """Folder of a `cairn data build` on a little world: its questions in their order, again and again, instead of those
    of made worlds. Those of dev worlds are still made."""
    noisy_share: float = Field(default=0.0, ge=0, le=1, exclude_if=_is_zero)
    """Of trajectories of a noisy expert, who copies well and chooses badly, where a question allows it: for a
    deliberately weak start of reinforcement learning."""

    habits: dict[str, dict[Habit, float]] = Field(default_factory=dict, exclude_if=_is_empty)
    """By protocol, the probability of each habit in a trajectory where the question allows it: for a start in which a
    behaviour is uncertain. A protocol without habits has the oracle's trajectories."""

    @model_validator(mode="after")
    def _a_build_stands_alone(self) -> "SftData":
        if self.built and (self.rows or self.difficulty):
            raise ValueError("`built` brings its own world: leave out rows and difficulty")
        if self.habits and self.noisy_share:
            raise ValueError("`habits` and `noisy_share` are two kinds of noise: name one of them")
        if any(not 0 <= share <= 1 for own in self.habits.values() for share in own.values()):
            raise ValueError("a habit's probability is from 0 to 1")
        return self


class SftOptimizer(_Part):
    tokens: int = Field(default=0, ge=0)
    """Of trajectories, padding not counted, until the run ends."""
    epochs: float | None = Field(default=None, gt=0, exclude_if=_is_none)
    """How often every row is seen, in the place of `tokens`, where the recipe learns from rows."""
    batch_tokens: int
    """Of one batch, with padding."""
    batches_per_step: int = Field(default=1, ge=1)
    """Of every step; several processes share them."""
    muon_lr: float
    """Of matrices inside of the layers; 0: AdamW trains these, too, as it should with an adapter."""
    adamw_lr: float
    final_lr: float
    decay: float = Field(default=1.0, gt=0, le=1)
    """Last share of all tokens, over which the rate falls to `final_lr` of its peak."""
    warmup_steps: int = Field(ge=0)
    weight_decay: float
    clip: float
    bf16: bool
    gradient_checkpointing: bool = Field(default=False, exclude_if=_is_empty)
    """Compute each layer again in the backward pass instead of keeping it: a third slower, and a fraction of the memory
    that a batch needs."""


class LossWeights(_Part):
    """Weight of a token in the loss, by what it is."""

    policy: float = 1.0
    answer: float = 1.0
    environment: float = 0.0
    decision: float | None = Field(default=None, exclude_if=_is_none)
    """Of the policy's tokens that decide something: a value that was found, that nothing was found, yes or no. They are
    few among regular sentences. None: as any other of the policy's."""
    fill: float | None = Field(default=None, exclude_if=_is_none)
    """Of what finishes a query in a branch: a dozen tokens behind a long context, and all that follows depends on them.
    None: as any other of the policy's."""


class SftStage(_Part):
    """A part of the curriculum: which questions, until which share of all tokens."""

    until: float = Field(gt=0, le=1)
    mix: Mix
    passages: int = 0
    """Most passages that a query is shown; 0: as many as the protocol says. Fewer make short contexts to begin with."""
    environment: float | None = Field(default=None, exclude_if=_is_none)
    """Weight of the environment's tokens in this stage, where it is another one than in all."""


class SftReport(_Part):
    every_steps: int = Field(ge=1)
    evaluate_every_steps: int = Field(ge=1)
    dev_questions: int = 120
    save_every_steps: int = Field(ge=1)


class SftRecipe(_Part):
    """Supervised fine-tuning (or training from nothing) on oracle trajectories."""

    kind: Literal["sft"]
    name: str
    protocols: tuple[str, ...] = Field(min_length=1)
    seed: int
    start: str = ""
    """A checkpoint in the hub's form to begin from; empty: from nothing. Where the recipe has a model of its own, the
    checkpoint is of the same shape and gives its weights, and the embeddings of the tokens that both have; another
    token begins as the mean of its pieces."""
    keep_tokenizer: bool = False
    """Whether the tokenizer of `start` is used, too; otherwise a new one is made from the recipe's trajectories."""
    model: ModelShape | None = Field(default=None, exclude_if=_is_none)
    """None: the model of `start` as it is, any causal language model that transformers loads, with its tokenizer."""
    adapter: AdapterSettings | None = Field(default=None, exclude_if=_is_none)
    """Of a model that is taken as it is; None: all of its weights are trained."""
    end: str = Field(default="", exclude_if=_is_empty)
    """The token that ends the policy's last turn; empty: what the tokenizer of `start` says, or that of our own."""
    data: SftData
    optimizer: SftOptimizer
    weights: LossWeights = LossWeights()
    curriculum: tuple[SftStage, ...] = Field(default=(SftStage(until=1.0, mix={}),), min_length=1)
    report: SftReport

    @model_validator(mode="after")
    def _begins_somewhere(self) -> "SftRecipe":
        if self.model is None and not self.start:
            raise ValueError("it needs a table [model], or `start` with a checkpoint whose model is taken as it is")
        if self.model is None and not self.data.rows:
            raise ValueError("a model that is taken as it is learns from rows: name them as `rows` in [data]")
        if self.model is not None and self.adapter is not None:
            raise ValueError("[adapter] is for a model that is taken as it is: leave out [model] or [adapter]")
        return self

    @model_validator(mode="after")
    def _ends_somewhere(self) -> "SftRecipe":
        if bool(self.optimizer.tokens) == (self.optimizer.epochs is not None):
            raise ValueError("[optimizer] needs `tokens` or `epochs`, one of the two")
        if self.optimizer.epochs is not None and not self.data.rows:
            raise ValueError("`epochs` are of rows: name them as `rows` in [data], or say `tokens` in [optimizer]")
        return self

    @model_validator(mode="after")
    def _a_build_has_its_own_order(self) -> "SftRecipe":
        if self.data.built and any(stage.mix for stage in self.curriculum):
            raise ValueError("the questions of `built` come in their own order: write mix = {} in every stage")
        return self

    @model_validator(mode="after")
    def _fits_together(self) -> "SftRecipe":
        ends = [stage.until for stage in self.curriculum]
        if ends != sorted(ends):
            raise ValueError("the stages of `curriculum` must be in the order of their `until`")
        check_protocol_weights(self.data.protocol_weights, self.protocols)
        for name in ("passages", "habits"):
            if unknown := set(getattr(self.data, name)) - set(self.protocols):
                raise ValueError(f"`{name}` names {', '.join(sorted(unknown))}, which `protocols` does not")
        return self

    def weights_at(self, progress: float) -> LossWeights:
        """The weights at a share of all tokens."""
        own = self.stage(progress).environment
        return self.weights if own is None else self.weights.model_copy(update={"environment": own})

    def stage(self, progress: float) -> SftStage:
        """The stage at a share of all tokens."""
        return next((stage for stage in self.curriculum if progress < stage.until), self.curriculum[-1])


def read_recipe(path: Path, *, start: str | None = None, rows: Path | None = None, adapter: str = "") -> SftRecipe:
    """Read a recipe.

    Args:
        path: of the TOML file.
        start: a checkpoint in the place of the recipe's own.
        rows: to learn from, in the place of the recipe's data.
        adapter: the rank of an adapter in the place of the recipe's, or `none`: all weights are trained; empty: as the
            recipe has it.

    Raises:
        SetupError: the file is missing, no TOML, or has a wrong or unknown key; or there is no such rank.
    """
    table = dict(read_table(path))
    if rows is not None:
        table["data"] = {**table.get("data", {}), "rows": str(rows)}
    if adapter == "none":
        table.pop("adapter", None)
    elif adapter:
        table["adapter"] = _with_rank(table.get("adapter", {}), adapter)
    return as_model(table, SftRecipe, path, start=start)


def _with_rank(said: Mapping[str, Any], adapter: str) -> dict[str, Any]:
    """An adapter's table with another rank; what it adds keeps its weight."""
    if not adapter.isdecimal() or not int(adapter):
        raise SetupError(f"--adapter {adapter!r} is neither a rank, such as 64, nor none")
    weight = said.get("alpha", 2) / said.get("rank", 1)
    return {**said, "rank": int(adapter), "alpha": int(adapter) * weight}
