"""Time of one step, by what it goes into, each with its formula. Shares of the data sheets' figures are assumptions."""

from dataclasses import dataclass
from math import ceil

from lab.plan.machines import Gpu
from lab.plan.scale import Scale, Trainer
from lab.plan.shapes import Shape


@dataclass(frozen=True)
class StepWork:
    """What a recipe makes of one step."""

    rollouts: int
    prompts: int
    micro_batches: int
    """Of one epoch, in one process."""
    epochs: int
    reads: int
    """Forward passes over every row beside the trained one: the reference's, the old log-probabilities', a critic's."""
    critic: bool
    checkpointing: bool


@dataclass(frozen=True)
class Span:
    """A part of a step."""

    what: str
    seconds: float
    formula: str


def step_spans(shape: Shape, scale: Scale, gpu: Gpu, trainer: Trainer, work: StepWork, *, at_once: int) -> list[Span]:
    """Every part of one step.

    Args:
        shape: of the model.
        scale: machines and assumptions.
        gpu: their kind.
        trainer: GPUs that train.
        work: of the step.
        at_once: rollouts that vLLM can hold at the same time.
    """
    handed = 2 * shape.parameters / scale.efficiency.handover
    return [
        Span("weights to vLLM", handed, "2 P / bytes a second"),
        *_rollout_spans(shape, scale, gpu, work, at_once),
        *_learning_spans(shape, scale, gpu, trainer, work),
    ]


def _rollout_spans(shape: Shape, scale: Scale, gpu: Gpu, work: StepWork, at_once: int) -> list[Span]:
    means, server, reached = scale.rollouts, scale.server, scale.efficiency
    number = ceil(work.rollouts * (1 + means.resampled))
    held = max(1, min(at_once, server.max_num_seqs, number))
    context = means.prompt_tokens + means.environment_tokens + means.policy_tokens / 2
    moved = 2 * shape.parameters + held * context * shape.cache_bytes
    token = max(
        moved / (server.gpus * gpu.bandwidth * reached.decode),
        2 * shape.parameters * held / (server.gpus * gpu.flops * reached.prefill),
    )
    sampling = number * means.policy_tokens / held * token * reached.tail
    read = number * means.environment_tokens + work.prompts * (1 + means.resampled) * means.prompt_tokens
    reading = 2 * shape.parameters * read / (server.gpus * gpu.flops * reached.prefill)
    waves = ceil(number / held)
    return [
        Span(
            "sampling",
            sampling,
            f"tokens / {held} at once x (2 P + their keys and values) / bandwidth x {reached.tail:g} for the longest",
        ),
        Span("reading", reading, "2 P x tokens of the environment and of each prompt once (prefix cache) / arithmetic"),
        Span(
            "searches that nothing hides",
            means.searches * means.search_seconds * waves,
            f"rounds x seconds x {waves} waves; other rollouts go on meanwhile",
        ),
        Span("reward", means.reward_seconds, "of the last rollouts; the others' is hidden"),
    ]


def _learning_spans(shape: Shape, scale: Scale, gpu: Gpu, trainer: Trainer, work: StepWork) -> list[Span]:
    means, reached = scale.rollouts, scale.efficiency
    length = means.prompt_tokens + means.environment_tokens + means.policy_tokens
    tokens = work.rollouts * length
    share = reached.train_offloaded if trainer.offload else reached.train
    speed = trainer.gpus * gpu.flops * share
    forward = forward_flops(shape, length)
    times = (4 if work.checkpointing else 3) * work.epochs * (2 if work.critic else 1)
    gathers = work.micro_batches * (work.epochs * (3 if work.checkpointing else 2) + work.reads)
    moved = 2 * shape.parameters * (gathers + work.micro_batches * work.epochs) if trainer.sharded else 0
    again = ", 1 again" if work.checkpointing else ""
    return [
        Span(
            "learning",
            times * forward * tokens / speed,
            f"(1 forward, 2 backward{again}) x (2 P + 2 L h T) x tokens / ({share:g} of the arithmetic)",
        ),
        Span(
            "reading for it",
            work.reads * forward * tokens / speed,
            f"{work.reads} forward passes: reference, old log-probabilities{', critic' if work.critic else ''}",
        ),
        Span(
            "gathering weights",
            moved * (trainer.gpus - 1) / trainer.gpus / gpu.link,
            f"2 P x ({gathers} times gathered, gradients scattered once a micro-batch) / link, none of it hidden",
        ),
    ]


def forward_flops(shape: Shape, length: int) -> float:
    """Of one token in a row of this length: 2 for each weight (2001.08361, table 1), and causal attention's scores.

    The scores are 4 L (heads x head_dim) x length for a whole square (PaLM, 2204.02311, appendix B), half of it here.
    """
    return 2 * (shape.parameters - _unused(shape)) + 2 * shape.layers * shape.heads * shape.head_dim * length


def _unused(shape: Shape) -> int:
    """The input's embeddings are looked up and not multiplied, unless they are the output's, too."""
    return 0 if shape.tied else shape.vocabulary * shape.width
