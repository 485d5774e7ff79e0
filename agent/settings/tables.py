"""The tables of `cairn.toml`: `[budgets]` and `[vllm]`."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class BudgetSettings(BaseModel):
    """What one rollout may use. A budget that is left out keeps the loop's own default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rounds: int | None = Field(default=None, ge=0)
    searches: int | None = Field(default=None, ge=0)
    passages: int | None = Field(default=None, ge=0)
    policy_tokens: int | None = Field(default=None, ge=1)
    context_tokens: int | None = Field(default=None, ge=1)
    seconds: float | None = Field(default=None, gt=0)
    search_seconds: float | None = Field(default=None, gt=0)
    credits: float | None = Field(default=None, ge=0)


class VllmSettings(BaseModel):
    """What vLLM gets for a model of this process. What is left out keeps vLLM's own default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_model_len: int | None = Field(default=None, ge=1)
    """Tokens that a context may have."""
    gpu_memory_utilization: float | None = Field(default=None, gt=0, le=1)
    """Share of a GPU's memory that weights and cache may take."""
    kv_cache_memory_bytes: int | None = Field(default=None, ge=1)
    """Of the cache, instead of that share; on a CPU, too."""
    max_num_seqs: int | None = Field(default=None, ge=1)
    """Turns that run at the same time."""
    tensor_parallel_size: int | None = Field(default=None, ge=1)
    """GPUs that one copy of the model is spread over."""
    data_parallel_size: int | None = Field(default=None, ge=1)
    """Copies of the model."""
    quantization: str | None = None
    """As vLLM calls it; left out, the checkpoint's own."""
    enforce_eager: bool | None = None
    """Start sooner, run slower."""
    enable_prefix_caching: bool | None = None
    """Keep what was read for the next round; on by default."""
    more: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Any other argument of vLLM's engine, as it is called there."""

    @property
    def arguments(self) -> dict[str, Any]:
        """All that was said, as vLLM calls it."""
        return self.model_dump(exclude={"more"}, exclude_none=True) | self.more
