"""The plan of a recipe: what it needs at full scale, from its own figures and its scale. Nothing runs here."""

import shlex
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from agent.errors import SetupError
from agent.outbound.urls import split_url
from lab.plan.machines import Gpu, gpu_named
from lab.plan.memory import (
    GpuMemory,
    RowLoad,
    host_bytes,
    rollouts_that_fit,
    server_memory,
    trainer_memory,
)
from lab.plan.scale import Scale, Trainer
from lab.plan.shapes import Shape, shape_of
from lab.plan.times import Span, StepWork, step_spans
from train.common.recipe_files import kind_of
from train.ppo.recipe import PpoRecipe, read_ppo_recipe
from train.rl.recipe import RlRecipe, read_rl_recipe

_TRANSFER = '--weight-transfer-config \'{"backend": "nccl"}\' --logprobs-mode processed_logprobs --max-logprobs -1'

_HERE = ("127.0.0.1", "localhost", "::1")
_WHAT = {"corpus": "corpus", "kg": "graph"}


@dataclass(frozen=True)
class Plan:
    """Everything that is printed."""

    recipe: RlRecipe
    scale: Scale
    trainer: Trainer
    shape: Shape
    load: RowLoad
    longest: GpuMemory
    """Of a GPU that trains, where every row of a micro-batch is as long as a row can be."""
    usual: GpuMemory
    """The same with rows of the assumed mean length."""
    server: GpuMemory
    at_once: int
    """Rollouts whose keys and values fit."""
    host: float
    """Bytes."""
    spans: tuple[Span, ...]
    notes: tuple[str, ...]
    """What must be seen to before it can run."""

    @property
    def step_seconds(self) -> float:
        return sum(span.seconds for span in self.spans)

    @property
    def hours(self) -> float:
        """Of the whole run."""
        return self.recipe.steps * self.step_seconds / 3600

    @property
    def gpus(self) -> int:
        beside = self.recipe.rollout.engine == "vllm"
        return self.trainer.gpus + (0 if beside else self.scale.server.gpus)


def read_any(path: Path, *, start: str | None = None) -> RlRecipe:
    """An RL recipe, or one of PPO.

    Raises:
        SetupError: it cannot be used, or is of another kind.
    """
    kind = kind_of(path)
    if kind == "ppo":
        return read_ppo_recipe(path, start=start)
    if kind == "rl":
        return read_rl_recipe(path, start=start)
    raise SetupError(f'the plan knows recipes with kind = "rl" or "ppo"; that of {path} is {kind!r}')


def plan_of(recipe: RlRecipe, scale: Scale, trainer: Trainer) -> Plan:
    """Work out what a recipe needs.

    Args:
        recipe: of `cairn train rl` or `cairn train ppo`.
        scale: machines and assumptions.
        trainer: from the accelerate config.

    Raises:
        SetupError: the model's shape or the GPU is not known, or the recipe is for a CPU.
    """
    if recipe.rollout.engine not in {"vllm", "vllm-server"}:
        raise SetupError(f"a plan is for recipes whose rollouts vLLM makes, not the engine {recipe.rollout.engine!r}")
    shape, gpu = shape_of(recipe.start), gpu_named(scale.gpu)
    load = _load(recipe, scale, trainer)
    beside = scale.server.gpu_memory_utilization * gpu.memory if recipe.rollout.engine == "vllm" else 0.0
    context = scale.rollouts.prompt_tokens + scale.rollouts.environment_tokens + scale.rollouts.policy_tokens
    at_once = rollouts_that_fit(shape, scale, gpu, tokens=context)
    longest, usual = (
        trainer_memory(
            shape,
            micro_batch,
            gpu,
            trainer,
            scale.efficiency,
            reference=_reference_bytes(recipe),
            critic=isinstance(recipe, PpoRecipe),
            checkpointing=recipe.optimizer.gradient_checkpointing,
            beside=beside,
        )
        for micro_batch in (load, _usual(recipe, scale, load))
    )
    made = Plan(
        recipe=recipe,
        scale=scale,
        trainer=trainer,
        shape=shape,
        load=load,
        longest=longest,
        usual=usual,
        server=server_memory(shape, scale, gpu),
        at_once=at_once,
        host=host_bytes(shape, trainer, reference=_reference_bytes(recipe)),
        spans=tuple(step_spans(shape, scale, gpu, trainer, _work(recipe), at_once=at_once)),
        notes=(),
    )
    return Plan(**{**made.__dict__, "notes": tuple(_notes(made, gpu))})


def commands_of(plan: Plan, recipe: Path, scale: Path, *, start: str | None = None) -> list[str]:
    """What is typed to run it: the server first, then the trainer.

    Args:
        plan: of it.
        recipe: its file.
        scale: its file.
        start: a model in the place of the recipe's.
    """
    server, model = plan.scale.server, shlex.quote(plan.recipe.start)
    verb = "ppo" if isinstance(plan.recipe, PpoRecipe) else "rl"
    train = f"train {verb} --recipe {shlex.quote(str(recipe))} --out {shlex.quote(f'runs/{plan.recipe.name}')}"
    train += f" --start {model}" if start else ""
    if plan.recipe.rollout.engine == "vllm":
        return [f"cairn {train}"]
    first = plan.trainer.gpus
    there = ",".join(str(first + at) for at in range(server.gpus))
    host = split_url(plan.recipe.rollout.server).hostname
    alone = f" --host {host}" if host in _HERE else ""  # else vLLM listens on every interface, with those endpoints
    return [
        f"CUDA_VISIBLE_DEVICES={there} VLLM_SERVER_DEV_MODE=1 vllm serve {model}{alone} --port {server.port}"
        f" --tensor-parallel-size {server.gpus} --gpu-memory-utilization {server.gpu_memory_utilization:g}"
        f" --max-model-len {server.max_model_len} --max-num-seqs {server.max_num_seqs} --enable-prefix-caching"
        f" {_TRANSFER}",
        f"CUDA_VISIBLE_DEVICES={','.join(map(str, range(first)))} accelerate launch"
        f" --config_file {shlex.quote(str(scale.parent / plan.scale.accelerate))} -m agent.cli {train}",
    ]


def _load(recipe: RlRecipe, scale: Scale, trainer: Trainer) -> RowLoad:
    """A micro-batch of the longest rows that there can be."""
    rollout, optimizer = recipe.rollout, recipe.optimizer
    rows = ceil(rollout.prompts * rollout.group / (trainer.gpus * optimizer.minibatches * optimizer.micro_batches))
    longest = rollout.context_tokens or scale.server.max_model_len
    compared = rollout.policy_tokens if isinstance(recipe, PpoRecipe) else longest - scale.rollouts.prompt_tokens
    return RowLoad(rows, longest, compared)


def _usual(recipe: RlRecipe, scale: Scale, load: RowLoad) -> RowLoad:
    means = scale.rollouts
    behind = means.policy_tokens + (0 if isinstance(recipe, PpoRecipe) else means.environment_tokens)
    return RowLoad(load.rows, means.prompt_tokens + means.policy_tokens + means.environment_tokens, behind)


def _work(recipe: RlRecipe) -> StepWork:
    """How often the rows are read: TRL reads old log-probabilities again where one batch makes several updates."""
    critic = isinstance(recipe, PpoRecipe)
    reads = int(_has_kl(recipe)) + (2 if critic else int(recipe.updates_per_step > 1))
    return StepWork(
        rollouts=recipe.rollout.prompts * recipe.rollout.group,
        prompts=recipe.rollout.prompts,
        micro_batches=recipe.optimizer.micro_batches * recipe.optimizer.minibatches,
        epochs=recipe.optimizer.epochs,
        reads=reads,
        critic=critic,
        checkpointing=recipe.optimizer.gradient_checkpointing,
    )


def _reference_bytes(recipe: RlRecipe) -> int:
    """TRL holds the reference as it holds the policy; our PPO in what it computes in."""
    if not _has_kl(recipe):
        return 0
    return 2 if isinstance(recipe, PpoRecipe) and recipe.optimizer.bf16 else 4


def _has_kl(recipe: RlRecipe) -> bool:
    return any(weight > 0 for _, weight in recipe.learning.kl)


def _notes(plan: Plan, gpu: Gpu) -> list[str]:
    """What does not fit, does not divide, or is not there."""
    recipe, server, notes = plan.recipe, plan.scale.server, list[str]()
    if not plan.longest.fits:
        worst = "with rows of the mean length, too" if not plan.usual.fits else "with rows of the mean length it does"
        notes.append(
            f"the longest rows do not fit into a GPU that trains ({worst}): more `micro_batches`, more GPUs, offload"
        )
    if plan.server.bytes > gpu.memory or not plan.at_once:
        notes.append("the model does not fit into vLLM's GPUs: give the server more of them")
    if recipe.rollout.prompts % plan.trainer.gpus:
        notes.append(f"{recipe.rollout.prompts} questions do not divide over {plan.trainer.gpus} processes")
    if server.gpus > plan.shape.kv_heads:
        notes.append(f"{plan.shape.kv_heads} heads of keys are copied: tensor parallel over {server.gpus} helps less")
    if plan.shape.heads % server.gpus:
        notes.append(f"{plan.shape.heads} heads do not divide over {server.gpus} GPUs: vLLM refuses that")
    longest = recipe.rollout.context_tokens
    if longest is not None and longest > server.max_model_len:
        notes.append(f"max_model_len {server.max_model_len} of the server is less than context_tokens {longest}")
    return [*notes, *_missing(recipe), *_apart(plan)]


def _missing(recipe: RlRecipe) -> list[str]:
    """Questions and indexes that are not there, and a missing probe."""
    notes: list[str] = []
    questions = recipe.data.questions
    if questions is not None and not questions.exists():
        notes.append(f"the questions {questions} are not there yet (see the head of the recipe)")
    if questions is not None and not recipe.safety.probes:
        notes.append("nothing probes the sources before a step: name a query with its answer in [[safety.probes]]")
    for kind, where in ((kind, recipe.data.search.get(kind)) for kind in ("corpus", "kg")):
        if where is not None and not Path(where).exists():
            notes.append(f"the {_WHAT[kind]} {where} is not there yet (see the head of the recipe)")
    return notes


def _apart(plan: Plan) -> list[str]:
    """Where recipe and scale do not say the same of vLLM."""
    rollout, server, notes = plan.recipe.rollout, plan.scale.server, list[str]()
    if rollout.server and split_url(rollout.server).port != server.port:
        notes.append(f"the recipe asks vLLM at {rollout.server}, and the scale starts it at port {server.port}")
    if rollout.engine == "vllm":
        for name, ours in (
            ("gpu_memory_utilization", server.gpu_memory_utilization),
            ("max_model_len", server.max_model_len),
        ):
            if name in rollout.vllm and rollout.vllm[name] != ours:
                notes.append(f"{name} is {rollout.vllm[name]} in the recipe, and {ours} in the scale")
    return notes
