"""Memory of a GPU, line by line, each with its formula and where the formula is from. Nothing is measured here.

Letters: P weights of the model, N GPUs that train, T tokens of a micro-batch on one GPU, L layers, h width, V
vocabulary.
"""

from dataclasses import dataclass
from typing import Final

from lab.plan.machines import Gpu
from lab.plan.scale import Efficiency, Scale, Trainer
from lab.plan.shapes import Shape

GIB: Final = 2**30
_ADAM: Final = "AdamW in float32; ZeRO, 1910.02054, section 3.1"
_LOGIT_BYTES: Final = 14
"""Of one entry of our PPO's logits, in the backward pass: log-softmax, two gradients in float32, one in bfloat16."""
_TILE: Final = 4096 * 32768 * 2
"""Of logits that TRL computes at once: it never holds all of them (trl.kernels.chunked_logprob, 1.16)."""


@dataclass(frozen=True)
class Line:
    """One thing that lies in a GPU's memory."""

    what: str
    bytes: float
    formula: str


@dataclass(frozen=True)
class RowLoad:
    """What one GPU of the trainer computes at once."""

    rows: int
    """Of one micro-batch."""
    row_tokens: int
    """Of each, with prompt and environment."""
    logit_tokens: int
    """Of each row, for which logits are made."""


@dataclass(frozen=True)
class GpuMemory:
    """Of one GPU."""

    lines: tuple[Line, ...]
    holds: float
    """Bytes that it has."""

    @property
    def bytes(self) -> float:
        return sum(line.bytes for line in self.lines)

    @property
    def fits(self) -> bool:
        return self.bytes <= self.holds


def trainer_memory(
    shape: Shape,
    load: RowLoad,
    gpu: Gpu,
    trainer: Trainer,
    efficiency: Efficiency,
    *,
    reference: int,
    critic: bool,
    checkpointing: bool,
    beside: float = 0.0,
) -> GpuMemory:
    """Memory of one GPU that trains.

    Args:
        shape: of the model.
        load: what it computes at once.
        gpu: its kind.
        trainer: how many there are, and how they share.
        efficiency: assumptions.
        reference: bytes of each weight of the start's copy for the KL term; 0 without one.
        critic: whether a critic of the same size is trained (PPO).
        checkpointing: whether activations are made again in the backward pass.
        beside: bytes that vLLM takes on the same GPU.
    """
    share = trainer.gpus if trainer.sharded else 1
    by = " / N" if trainer.sharded else ""
    lines = _states("policy", shape, share, by, offload=trainer.offload)
    if critic:
        lines += _states("critic", shape, share, by, offload=trainer.offload)
    if reference:
        kept = 0.0 if trainer.offload else reference * shape.parameters / share
        lines.append(Line("reference", kept, "on the host" if trainer.offload else f"{reference} P{by}, never updated"))
    if trainer.sharded:
        whole = 2 * (2 * shape.layer_parameters) + 4 * shape.embedding_parameters
        formula = (
            "2 x 2 bytes of a layer (this one and the next), 2 + 2 of the embeddings; FSDP, 2304.11277, section 4.2"
        )
        lines.append(Line("weights that are gathered", whole, formula))
    lines += [*_activations(shape, load, checkpointing=checkpointing), _logits(shape, load, critic=critic)]
    if beside:
        lines.append(Line("vLLM on the same GPU", beside, "gpu_memory_utilization x memory"))
    lines.append(Line("CUDA and NCCL", efficiency.context_gib * GIB, "assumed"))
    lines.append(Line("fragments", efficiency.spare * gpu.memory, f"{efficiency.spare:g} of the memory, assumed"))
    return GpuMemory(tuple(lines), gpu.memory)


def host_bytes(shape: Shape, trainer: Trainer, *, reference: int) -> float:
    """Of the machine that trains: the start and its reference, as each process reads them, and what is offloaded."""
    offloaded = (16 + reference) * shape.parameters if trainer.offload else 0
    return trainer.gpus * (4 + reference) * shape.parameters + offloaded


def server_memory(shape: Shape, scale: Scale, gpu: Gpu) -> GpuMemory:
    """Memory of one GPU that vLLM has; what is left of its share is for keys and values."""
    server = scale.server
    weights = 2 * shape.parameters / server.gpus
    work = 2 * GIB
    cache = max(0.0, server.gpu_memory_utilization * gpu.memory - weights - work)
    lines = (
        Line("weights", weights, "2 P / GPUs: bfloat16, tensor parallel"),
        Line("work", work, "assumed: activations and CUDA graphs"),
        Line("keys and values", cache, "what is left of gpu_memory_utilization; 2 x 2 bytes x L x kv heads x head_dim"),
    )
    return GpuMemory(lines, gpu.memory)


def rollouts_that_fit(shape: Shape, scale: Scale, gpu: Gpu, *, tokens: float) -> int:
    """Rollouts of `tokens` tokens whose keys and values fit into vLLM's GPUs."""
    cache = server_memory(shape, scale, gpu).lines[-1].bytes * scale.server.gpus
    return int(cache / (shape.cache_bytes * tokens))


def _states(whose: str, shape: Shape, share: int, by: str, *, offload: bool) -> list[Line]:
    """Weights, gradients and moments of a model that is trained."""
    every = 0.0 if offload else shape.parameters / share
    where = "on the host" if offload else ""
    return [
        Line(f"{whose}: weights", 4 * every, where or f"4 P{by}: float32, computed with in bfloat16"),
        Line(f"{whose}: gradients", 4 * every, where or f"4 P{by}"),
        Line(f"{whose}: moments", 8 * every, where or f"8 P{by}: {_ADAM}"),
    ]


def _activations(shape: Shape, load: RowLoad, *, checkpointing: bool) -> list[Line]:
    tokens = load.rows * load.row_tokens
    layer = float(tokens * layer_bytes(shape))
    if not checkpointing:
        return [Line("activations", shape.layers * layer, "L x T x bytes of a layer")]
    inputs = 4.0 * tokens * shape.width * shape.layers
    return [
        Line("activations: inputs of layers", inputs, "4 L T h: full recomputation; 2205.05198, section 5"),
        Line("activations: one layer", layer, "T x bytes of a layer, made again in the backward pass"),
    ]


def _logits(shape: Shape, load: RowLoad, *, critic: bool) -> Line:
    if critic:
        every = float(_LOGIT_BYTES * shape.vocabulary * load.rows * load.logit_tokens)
        return Line("logits", every, f"{_LOGIT_BYTES} bytes x V x policy tokens of a micro-batch")
    head = 4.0 * shape.vocabulary * shape.width + _TILE
    return Line("logits and the gradient of the head", head, "4 V h in float32, and a tile of 4,096 x 32,768 logits")


def layer_bytes(shape: Shape) -> int:
    """Activations of one layer for one token, in bytes, under autocast to bfloat16.

    Attention keeps no scores (flash attention). Two norms whose inputs and outcomes are in float32 (2 x (4 + 4) bytes
    of h), copied in two bytes for each of the five matrices behind them (10); queries, keys, values and attention's
    output (2 each); gate, its activation, up, and their product (2 each of the inner width); norms of heads as the
    others. A test holds it against what torch saves. 2205.05198, section 4.1, counts 34 h for GPT's block.
    """
    own, shared = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    norms = 6 * (own + shared) + 4 * (shape.heads + shape.kv_heads) if shape.head_norms else 0
    return 26 * shape.width + 2 * (own + 2 * shared) + 2 * own + norms + 4 * shape.heads + 8 * shape.inner
