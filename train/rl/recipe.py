"""The recipe of an RL run: everything that decides how it ends, read once from a TOML file. Nothing runs here."""

from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agent.errors import SetupError
from agent.loop.agent import Budgets
from train.common.recipe import AdapterSettings
from train.common.recipe_files import read_model
from train.common.worlds import Mix, Weight, WorldData, check_protocol_weights
from train.rewards.base import RewardSettings
from train.rewards.registry import settings_of
from train.rl.credit import CreditSettings
from train.rl.optimizer import RlOptimizer
from train.rl.teacher_settings import TeacherSettings
from train.safety.rules import Safety

Algorithm = Literal["grpo", "gdpo", "dapo"]
EngineName = Literal["embedded", "transformers", "vllm", "vllm-server"]
_PATIENCE: Final = 10


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def _is_none(value: object) -> bool:
    """A field that came later is written only where it says something, so that older runs can still be resumed."""
    return value is None


class RlStage(_Part):
    """A part of the curriculum: which types of questions of the little world, until which share of the steps."""

    until: float = Field(gt=0, le=1)
    mix: Mix = Field(min_length=1)
    """Type of question → how often."""


class RlData(WorldData):
    """Where questions come from: little worlds, one after the other, or a question list with sources of its own."""

    people: int = Field(default=60, ge=6)
    questions_per_world: int = Field(default=32, ge=1)
    protocol_weights: dict[str, Weight] = Field(default_factory=dict)
    """How often a protocol is drawn, where not as often as every other one (1)."""
    questions: Path | None = None
    """A question list (JSON lines, or a published set) instead of worlds."""
    dataset: str | None = None
    """The published form of `questions`; left out, it is recognised."""
    order: Literal["shuffled", "listed"] = "shuffled"
    """Of a question list: shuffled again in every epoch, or as it is (for a list from easy to hard)."""
    limit: int = Field(default=0, ge=0)
    """The first questions of the list only; 0: all."""
    search: dict[str, Any] = Field(default_factory=dict)
    """Settings of the agent (docs/settings.md) for the sources of a question list: `corpus`, `sources`, `world`, …"""
    dev: Path | None = Field(default=None, exclude_if=_is_none)
    """A list that is answered greedily every `evaluate_every_steps` steps, its first `dev_questions`; left out, none.
    Little worlds have dev worlds of their own."""
    dev_search: dict[str, Any] | None = Field(default=None, exclude_if=_is_none)
    """As `search`, for the sources of `dev`; left out, the same ones."""

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        listed = self.questions is not None
        if self.search and not listed:
            raise ValueError("`search` is for a question list; a little world has its own sources: name `questions`")
        if self.dev is not None and not listed:
            raise ValueError("`dev` is for a question list; little worlds have dev worlds: name `questions`")
        if self.dev_search and self.dev is None:
            raise ValueError("`dev_search` is for the questions of `dev`: name that, too")
        if self.difficulty and listed:
            raise ValueError("`difficulty` is for little worlds: leave it out, or `questions`")
        return self


class RolloutSettings(_Part):
    """How a batch of rollouts is made."""

    engine: EngineName = "embedded"
    """`embedded`: CTranslate2 in float32 on the CPU, made again from the weights before every batch. `transformers`:
    the trainer's own model. `vllm`: in this process, the weights are handed over. `vllm-server`: a vLLM server that
    takes weights."""
    prompts: int = Field(ge=1)
    """Questions of a batch, over all processes."""
    group: int = Field(ge=2)
    """Rollouts of each question."""
    temperature: float = Field(default=1.0, gt=0, le=2)
    top_p: float = Field(default=1.0, gt=0, le=1)
    rounds: int | None = Field(default=None, ge=0)
    """Of searches; left out, as many as the protocol has."""
    searches: int = Field(default=32, ge=0)
    passages: int = Field(default=96, ge=0)
    policy_tokens: int = Field(default=1024, ge=16)
    """That the policy may sample, its answer included."""
    answer_tokens: int = Field(default=128, ge=8)
    """Of those, held back for the answer."""
    context_tokens: int | None = Field(default=None, ge=64)
    """Of the whole context; left out, what the model takes."""
    seconds: float = Field(default=600.0, gt=0)
    """Of one rollout. One that reaches it is masked: that depends on the machine."""
    search_seconds: float = Field(default=10.0, gt=0)
    """Of one search."""
    concurrency: int = Field(default=64, ge=1)
    """Rollouts at the same time in one process."""
    server: str = ""
    """URL of the vLLM server, for `vllm-server`."""
    vllm: dict[str, Any] = Field(default_factory=dict)
    """Arguments of vLLM's engine, for `vllm`: `gpu_memory_utilization`, `tensor_parallel_size`, …"""

    @model_validator(mode="after")
    def _server_is_named(self) -> Self:
        if (self.engine == "vllm-server") != bool(self.server):
            raise ValueError("`server` (a URL) belongs to the engine 'vllm-server', and that needs it")
        return self

    @property
    def budgets(self) -> Budgets:
        """What one rollout may use."""
        return Budgets(
            rounds=self.rounds,
            searches=self.searches,
            passages=self.passages,
            policy_tokens=self.policy_tokens,
            context_tokens=self.context_tokens,
            seconds=self.seconds,
            search_seconds=self.search_seconds,
            answer_tokens=self.answer_tokens,
        )


class RewardStage(_Part):
    """A reward, until which share of the steps."""

    until: float = Field(default=1.0, gt=0, le=1)
    name: str
    """See docs/rewards.md."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Of the reward; `variant = "printed"` is the paper's."""
    weights: dict[str, float] = Field(default_factory=dict)
    """Part → its weight, where it is not 1: in the sum (grpo, dapo), or in the sum of normalised parts (gdpo)."""

    @model_validator(mode="after")
    def _is_a_reward(self) -> Self:
        try:
            self.made  # noqa: B018 - it refuses what cannot be
        except SetupError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def made(self) -> RewardSettings:
        """The settings, checked."""
        return settings_of(self.name, self.settings)


class JudgeEndpoint(_Part):
    """An OpenAI-compatible endpoint that judges answers, or reads evidence; its key comes from the environment."""

    base_url: str
    model: str
    graded: bool = False
    """Whether it grades how right an answer is, instead of right or wrong."""


class Embedder(_Part):
    """A sentence-transformers model whose vectors say how alike two texts are; without one, hashed words do.

    `reflect` uses it, and `kg` with `relevance = "similar"`.
    """

    model: str
    """A folder, the name of a packaged model, or a name on the hub."""
    device: str | None = None
    """As torch names it; left out, the best that there is."""


class Overlong(_Part):
    """What is done about rollouts that are too long, counted in tokens of the policy alone."""

    longest: int = Field(ge=1)
    """Tokens from which the penalty is whole."""
    buffer: int = Field(default=0, ge=0)
    """Tokens before that over which it grows from 0."""
    penalty: float = Field(default=1.0, ge=0)
    """Taken off the reward at `longest` (for gdpo: a part of its own)."""
    mask: bool = False
    """Leave out rollouts that their budget of policy tokens or of context ended, instead of punishing them."""

    @model_validator(mode="after")
    def _buffer_fits(self) -> Self:
        if self.buffer > self.longest:
            raise ValueError(f"a buffer of {self.buffer} tokens does not fit into {self.longest}")
        return self


class Learning(_Part):
    """What becomes of the rewards. What is left out is the algorithm's own."""

    name: Algorithm
    divide_by_std: bool = True
    """grpo and dapo: whether an advantage is divided by its group's deviation."""
    clip_low: float = Field(default=0.2, gt=0, lt=1)
    clip_high: float | None = Field(default=None, gt=0)
    """Left out: 0.28 for dapo, else as `clip_low`."""
    loss: Literal["token", "sequence"] | None = None
    """Mean over all policy tokens, or over rollouts of the mean over theirs; left out: token for dapo, else sequence.
    The tokens of a rollout's branches are its own."""
    resample: Annotated[int, Field(ge=0)] | Literal["full"] | None = None
    """Dynamic sampling: further questions replace groups whose rewards are all equal. `full`: until the batch is full,
    as in the paper (2503.14476). A number: at most that many further rounds, then the batch stays smaller. Left out:
    `full` for dapo, else 0."""
    resample_patience: int = Field(default=_PATIENCE, ge=1, exclude_if=lambda rounds: rounds == _PATIENCE)
    """With `full`: the run stops after more rounds than this in a row without a group whose rewards differ."""
    overlong: Overlong | None = None
    kl: tuple[tuple[float, float], ...] = ()
    """The weight of the KL term against the start, as (share of the steps, weight), linear between; empty: none."""
    old: Literal["engine", "trainer"] | None = None
    """Whose log-probabilities of the sampled tokens the ratio is taken to. Left out: the engine's where it computes in
    float32 at temperature 1, else the trainer's."""
    credit: CreditSettings | None = Field(default=None, exclude_if=_is_none)
    """Of turns; left out, all tokens of a rollout have the same advantage."""

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        if self.name == "gdpo" and not self.divide_by_std:
            raise ValueError("gdpo always divides by deviations: leave out `divide_by_std`, or choose grpo or dapo")
        credit = self.credit
        if self.name == "gdpo" and credit is not None and (credit.by_turn or credit.tree):
            raise ValueError(
                "credit for turns and trees is of one reward, and gdpo normalises each part of it on its own: choose "
                "grpo or dapo, or leave out `credit`"
            )
        return self

    @model_validator(mode="after")
    def _kl_goes_forward(self) -> Self:
        shares = [share for share, _ in self.kl]
        if shares != sorted(shares) or any(not 0 <= share <= 1 for share in shares):
            raise ValueError("`kl` is a list of (share of the steps from 0 to 1, weight), in their order")
        if any(weight < 0 for _, weight in self.kl):
            raise ValueError("a weight of the KL term is below 0")
        return self

    @property
    def high(self) -> float:
        """The upper clip."""
        own = 0.28 if self.name == "dapo" else self.clip_low
        return own if self.clip_high is None else self.clip_high

    @property
    def level(self) -> Literal["token", "sequence"]:
        return self.loss or ("token" if self.name == "dapo" else "sequence")

    @property
    def resampling(self) -> int | Literal["full"]:
        """Further rounds of dynamic sampling at most; 0: none."""
        own: int | Literal["full"] = "full" if self.name == "dapo" else 0
        return own if self.resample is None else self.resample

    def kl_weight(self, progress: float) -> float:
        """The weight of the KL term at a share of the steps."""
        if not self.kl:
            return 0.0
        before = [point for point in self.kl if point[0] <= progress] or [self.kl[0]]
        after = [point for point in self.kl if point[0] > progress] or [before[-1]]
        (start, first), (end, last) = before[-1], after[0]
        share = (progress - start) / (end - start) if end > start else 0.0
        return first + (last - first) * max(0.0, share)


class RlReport(_Part):
    save_every_steps: int = Field(default=20, ge=1)
    keep: int = Field(default=2, ge=1)
    """States to resume from that are kept; the newest ones."""
    evaluate_every_steps: int = Field(default=0, ge=0)
    """0: never during the run."""
    dev_questions: int = Field(default=64, ge=1)
    """Of dev worlds, answered greedily."""
    traces: int = Field(default=4, ge=0)
    """Rollouts of every batch that are kept in traces.jsonl."""


class RlRecipe(_Part):
    """Reinforcement learning from a checkpoint in the hub's form."""

    kind: Literal["rl"]
    name: str
    start: str
    """What `cairn train sft` begins from, too: a folder in the hub's form or of an adapter, a GGUF file, or a name.
    `--start` puts another in its place."""
    protocols: tuple[str, ...] = Field(min_length=1)
    """Built-in protocols, profiles, or protocol files."""
    seed: int
    steps: int = Field(ge=1)
    """Batches of rollouts."""
    data: RlData = RlData()
    curriculum: tuple[RlStage, ...] = ()
    """Of the little worlds; without it, their own mix."""
    rollout: RolloutSettings
    reward: tuple[RewardStage, ...] = Field(min_length=1)
    judge: JudgeEndpoint | None = None
    reader: JudgeEndpoint | None = None
    local_reader: Path | None = None
    """Folder of a reader that `cairn train reader` made, in the place of `reader`."""
    embedder: Embedder | None = Field(default=None, exclude_if=_is_none)
    teacher: TeacherSettings | None = Field(default=None, exclude_if=_is_none)
    """A model that is imitated on the policy's own rollouts; None: rewards alone teach."""
    learning: Learning
    adapter: AdapterSettings | None = Field(default=None, exclude_if=_is_none)
    """Low-rank matrices that are trained beside the start's weights (train/common/recipe.py); None: all weights are."""
    optimizer: RlOptimizer
    report: RlReport = RlReport()
    safety: Safety = Safety()

    @model_validator(mode="after")
    def _nothing_is_dropped(self) -> Self:
        if self.adapter is not None and self.adapter.dropout:
            raise ValueError("an adapter has no dropout here: the trainer would not be the policy that sampled")
        if self.teacher is not None:
            sampling = (self.rollout.temperature, self.rollout.top_p)
            self.teacher.check(sampling=sampling, all=not self.learning.resampling)
        return self

    @model_validator(mode="after")
    def _stages_go_forward(self) -> Self:
        for what, stages in (("curriculum", self.curriculum), ("reward", self.reward)):
            ends = [stage.until for stage in stages]
            if ends != sorted(ends):
                raise ValueError(f"the stages of `{what}` must be in the order of their `until`")
        check_protocol_weights(self.data.protocol_weights, self.protocols)
        if (warm := self.optimizer.warmup_steps) > (updates := self.steps * self.updates_per_step):
            raise ValueError(f"a warm-up of {warm} updates does not end in a run of {updates}: lower `warmup_steps`")
        if self.learning.old == "engine" and self.rollout.temperature != 1:
            raise ValueError('`old = "engine"` needs temperature 1: engines give log-probabilities before temperature')
        credit = self.learning.credit
        if credit is not None and credit.keep_likelihood and self.updates_per_step == 1:
            raise ValueError(
                "`keep_likelihood` compares with the policy that sampled, which a single update from a batch still is: "
                "set `minibatches` or `epochs` above 1, or leave it out"
            )
        tree = credit.tree if credit is not None else None
        if tree is not None and self.rollout.group != tree.rollouts:
            raise ValueError(
                f"{tree.trees} trees with {tree.rounds} x {tree.expansions} expansions have {tree.rollouts} rollouts, "
                f"and `group` is {self.rollout.group}: set `rollout.group` to {tree.rollouts}"
            )
        if self.curriculum and self.data.questions is not None:
            raise ValueError("a curriculum is of the little worlds; a question list has its own order")
        return self

    @property
    def updates_per_step(self) -> int:
        return self.optimizer.minibatches * self.optimizer.epochs

    def stage(self, progress: float) -> RlStage | None:
        """The curriculum's stage at a share of the steps; None without a curriculum."""
        last = self.curriculum[-1] if self.curriculum else None
        return next((stage for stage in self.curriculum if progress < stage.until), last)

    def reward_stage(self, progress: float) -> int:
        """The place of the reward that holds at a share of the steps."""
        return next((at for at, s in enumerate(self.reward) if progress < s.until), len(self.reward) - 1)


def read_rl_recipe(path: Path, *, start: str | None = None) -> RlRecipe:
    """Read a recipe.

    Args:
        path: of the TOML file.
        start: a checkpoint in the place of the recipe's own.

    Raises:
        SetupError: the file is missing, no TOML, or has a wrong or unknown key; the sentence names each.
    """
    return read_model(path, RlRecipe, start=start)
