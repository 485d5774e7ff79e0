"""The scale of a run, read from `NAME.scale.toml` beside its recipe: machines, and what is assumed of the rollouts.

Only the plan reads it. How many GPUs train, and whether they offload, is in the accelerate config that it names.
"""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agent.errors import SetupError
from train.common.recipe_files import read_model


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Server(_Part):
    """vLLM: a server on GPUs of its own, or beside the trainer where the recipe's engine is `vllm`."""

    gpus: int = Field(default=1, ge=1)
    """Over which each matrix is split (tensor parallel)."""
    gpu_memory_utilization: float = Field(default=0.9, gt=0, lt=1)
    max_model_len: int = Field(ge=64)
    max_num_seqs: int = Field(default=256, ge=1)
    """Rollouts that are sampled at the same time at most."""
    port: int = 8000


class Rollouts(_Part):
    """Means of one rollout that are assumed, in tokens of the model's own tokenizer."""

    prompt_tokens: int = Field(ge=1)
    policy_tokens: int = Field(ge=1)
    environment_tokens: int = Field(ge=0)
    searches: float = Field(ge=0)
    """Rounds of searches, one after the other."""
    search_seconds: float = Field(default=0.3, ge=0)
    """Of one round."""
    reward_seconds: float = Field(default=0.0, ge=0)
    """Of a judge or a reader."""
    resampled: float = Field(default=0.0, ge=0)
    """Further rollouts of dynamic sampling, as a share."""


class PaperMachine(_Part):
    """What the paper says of its machine, to compare the estimate with."""

    gpus: int
    hours: float | None = None


class Efficiency(_Part):
    """Shares of what the data sheets say that are reached, and other figures that no formula gives."""

    train: float = Field(default=0.35, gt=0, le=1)
    """Of the arithmetic, in training."""
    train_offloaded: float = Field(default=0.12, gt=0, le=1)
    """The same where weights and optimizer wait in the host's memory."""
    prefill: float = Field(default=0.4, gt=0, le=1)
    """Of the arithmetic, where a context is read."""
    decode: float = Field(default=0.5, gt=0, le=1)
    """Of the memory's bandwidth, where tokens are sampled."""
    tail: float = Field(default=1.6, ge=1)
    """How much longer a batch takes than if all its rollouts were of the mean length: the longest are waited for."""
    handover: float = Field(default=5e9, gt=0)
    """Bytes a second, of weights on their way to vLLM."""
    spare: float = Field(default=0.08, ge=0, lt=1)
    """Share of a GPU's memory that is lost to fragments."""
    context_gib: float = Field(default=1.5, ge=0)
    """CUDA's own memory, and NCCL's buffers, on each GPU."""


class Scale(_Part):
    """Machines and assumptions of one run at full scale."""

    gpu: str
    """A kind of `lab.plan.machines`."""
    accelerate: str = ""
    """The accelerate config, beside this file; empty: one process trains."""
    server: Server
    rollouts: Rollouts
    efficiency: Efficiency = Efficiency()
    paper: PaperMachine | None = None


class Trainer(_Part):
    """What the accelerate config says."""

    gpus: int = 1
    sharded: bool = False
    offload: bool = False


def scale_of(recipe: Path) -> Path:
    """Where the scale of a recipe is looked for: `NAME.scale.toml` beside `NAME.toml`."""
    return recipe.with_suffix(".scale.toml")


def read_scale(path: Path) -> tuple[Scale, Trainer]:
    """Read a scale, and the accelerate config that it names.

    Raises:
        SetupError: one of them is missing or has a wrong key.
    """
    if not path.is_file():
        raise SetupError(f"there is no scale {path}; name another one with --scale FILE")
    scale = read_model(path, Scale, what="scale")
    return scale, _trainer(path.parent / scale.accelerate) if scale.accelerate else Trainer()


def _trainer(path: Path) -> Trainer:
    """Through accelerate's own reader, so that what it would refuse is refused here."""
    from accelerate.commands.config.config_args import load_config_from_file

    try:
        config: Any = load_config_from_file(str(path))
    except (OSError, ValueError, TypeError) as error:
        raise SetupError(f"the accelerate config {path} cannot be used: {error}") from error
    kind = getattr(config.distributed_type, "value", str(config.distributed_type))
    fsdp: dict[str, Any] = config.fsdp_config or {}
    if kind != "FSDP" or fsdp.get("fsdp_version") != 2 or not fsdp.get("fsdp_reshard_after_forward"):
        raise SetupError(f"the plan knows FSDP2 that shards everything (fsdp_reshard_after_forward); {path} is other")
    return Trainer(gpus=int(config.num_processes), sharded=True, offload=bool(fsdp.get("fsdp_offload_params")))
