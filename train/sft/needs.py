"""What a run will need before its first step: memory from two kinds of short rows, time from one batch of its own.

What the forward pass keeps for the backward pass is counted, not guessed, so it holds for any architecture and any way
to attend. It grows with a row's length and with its square; three lengths give both.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import psutil
import torch

from train.sft.padding import collate
from train.sft.run import SftRun
from train.sft.sharding import ShardedModel
from train.sft.trajectories import Example

_STEP: Final = 128
"""Tokens by which the measured rows differ: a block of `train.models.attention`."""
_HOLES: Final = 1.5
"""What activations take on a CPU, for each byte that is kept: tensors of other shapes leave holes between them."""
_KERNELS: Final = 150e6
"""Bytes by which the program itself grows on a CPU, for kernels of each shape and what is saved."""


@dataclass(frozen=True)
class Activations:
    """Bytes that a forward pass keeps: `fixed`, and for each row `linear` a token and `square` a token squared."""

    fixed: float
    linear: float
    square: float

    def of(self, rows: int, length: int) -> float:
        return self.fixed + rows * (self.linear * length + self.square * length**2)

    def shared(self, layers: int) -> "Activations":
        """The part of each layer."""
        return Activations(*(part / layers for part in (self.fixed, self.linear, self.square)))


@dataclass(frozen=True)
class MemoryNeed:
    """Bytes that a process of the run needs, and what they are for."""

    parameters: int
    trained: int
    weights: float
    gradients: float
    optimizer: float
    activations: float
    """Of the largest batch."""
    rows: int
    length: int
    """Of that batch."""
    program: float
    """Libraries and all else that is there already, the weights left out; 0 on a GPU."""
    free: float
    """Of the machine or the GPU, before anything of this but the weights and the program is taken."""

    @property
    def more(self) -> float:
        """What the run will take beside what it has already."""
        return self.gradients + self.optimizer + self.activations

    @property
    def whole(self) -> float:
        return self.program + self.weights + self.more

    def sentences(self) -> list[str]:
        share = self.trained / self.parameters
        said = [
            f"trains {_count(self.trained)} of {_count(self.parameters)} parameters ({share:.1%})",
            f"needs about {_size(self.whole)} of memory: weights {_size(self.weights)}, "
            f"gradients {_size(self.gradients)}, optimizer {_size(self.optimizer)}, "
            f"activations of the largest batch ({self.rows} rows of {self.length:,} tokens) "
            f"{_size(self.activations)}, the program {_size(self.program)}",
        ]
        if self.more > self.free:
            said.append(
                f"only {_size(self.free)} more are free: make batch_tokens smaller or set gradient_checkpointing = "
                "true under [optimizer], or train an adapter (--adapter 16)"
            )
        return said


@dataclass(frozen=True)
class Speed:
    """How fast one batch went through the model, forth and back."""

    tokens_per_second: float
    """Of all processes together."""
    tokens_left: int

    @property
    def seconds(self) -> float:
        return self.tokens_left / self.tokens_per_second

    def sentence(self) -> str:
        return (
            f"will take about {_duration(self.seconds)} for {self.tokens_left:,} tokens at "
            f"{self.tokens_per_second:,.0f} a second, measured on one batch; what it measures and saves on the way "
            "comes on top"
        )


def memory_of(run: SftRun) -> MemoryNeed:
    """What this process of a run will need, before anything large is computed."""
    begun, settings = run.begun, run.recipe.optimizer
    text: Any = run.model.config.get_text_config()

    def forward(ids: torch.Tensor) -> torch.Tensor:
        with run.precision():
            return begun.hidden(ids)

    def kept() -> Activations:
        longest = text.max_position_embeddings
        return activations(forward, begun.trained, vocabulary=begun.vocabulary, longest=longest, device=run.device)

    begun.trained.train()
    found, layer = kept(), None
    if settings.gradient_checkpointing:
        begun.recompute(False)
        layer = kept().shared(text.num_hidden_layers)
        begun.recompute(True)
    trained = 4.0 * sum(weight.numel() for weight in run.optimizers.weights)
    return memory(
        begun.trained,
        found,
        [_extent(batch) for batch in run.batches()],
        vocabulary=begun.vocabulary,
        optimizer=run.optimizers.bytes(),
        gradients=trained * (1 if run.process_group.size == 1 else 3),  # they are exchanged in one piece
        bf16=run.bf16,
        recomputed=layer,
        device=run.device,
    )


def sentences_of(run: SftRun) -> list[str]:
    """What this process of a run will need; of a model in shares, without the activations."""
    begun = run.begun
    return begun.sentences(run.process_group.size) if isinstance(begun, ShardedModel) else memory_of(run).sentences()


def speed_of(run: SftRun) -> Speed:
    """How long a run will take, from the first batches that are still to be seen; no weight changes.

    All processes must ask at the same time.
    """
    batches = run.batches()
    mine = run.share(list(enumerate((batches[run.place.batch :] or batches)[: run.process_group.size])))
    run.begun.trained.train()
    began = time.perf_counter()
    for _, batch in mine:
        run.backward(collate(batch, run.device), 1.0)
    run.process_group.wait()
    seconds = time.perf_counter() - began
    for weight in run.optimizers.weights:
        weight.grad = None
    seen = torch.tensor([float(sum(len(example.ids) for _, batch in mine for example in batch))])
    run.process_group.all_reduce([seen])
    return Speed(float(seen) / seconds, run.recipe.optimizer.tokens - run.place.tokens)


def activations(
    forward: Callable[[torch.Tensor], torch.Tensor],
    model: torch.nn.Module,
    *,
    vocabulary: int,
    longest: int,
    device: torch.device,
) -> Activations:
    """What a forward pass keeps for the backward pass, from single rows of three lengths.

    Args:
        forward: from ids [rows, length] to what the loss is made from.
        model: whose weights are not counted.
        vocabulary: ids are below it.
        longest: row that the model takes.
        device: of the model.
    """
    own = {part.untyped_storage().data_ptr() for part in (*model.parameters(), *model.buffers())}
    step = min(_STEP, max(1, longest // 3))
    drawn = torch.Generator().manual_seed(0)
    lengths = (step, 2 * step, 3 * step)
    kept = [
        _kept(forward, torch.randint(vocabulary, (1, length), generator=drawn).to(device), own) for length in lengths
    ]
    square = max(0.0, (kept[2] - 2 * kept[1] + kept[0]) / (2 * step**2))
    linear = max(0.0, (kept[1] - kept[0]) / step - 3 * step * square)
    return Activations(max(0.0, kept[0] - linear * step - square * step**2), linear, square)


def memory(
    model: torch.nn.Module,
    found: Activations,
    batches: Sequence[tuple[int, int, int]],
    *,
    vocabulary: int,
    optimizer: float,
    gradients: float,
    bf16: bool,
    recomputed: Activations | None,
    device: torch.device,
) -> MemoryNeed:
    """What a process of a run needs.

    Args:
        model: all of it.
        found: from `activations`.
        batches: rows, length and tokens with a loss of every batch.
        vocabulary: size of the logits.
        optimizer: bytes that it will keep.
        gradients: bytes of them, and of their copies.
        bf16: whether logits are made in bfloat16.
        recomputed: with gradient checkpointing what is kept of one layer while it is computed again, else None.
        device: of the model.
    """
    layer = recomputed or Activations(0, 0, 0)

    def need(batch: tuple[int, int, int]) -> float:
        rows, length, compared = batch
        logits = compared * vocabulary * (16 if bf16 else 12)  # they, their float32 form, and the gradients of both
        return found.of(rows, length) + max(layer.of(rows, length), logits)

    largest = max(batches, key=need)
    on_cpu = device.type == "cpu"
    parameters = list(model.parameters())
    weights = sum(weight.numel() * weight.element_size() for weight in parameters)
    program, free = _taken(weights, device)
    return MemoryNeed(
        parameters=sum(weight.numel() for weight in parameters),
        trained=sum(weight.numel() for weight in parameters if weight.requires_grad),
        weights=weights,
        gradients=gradients,
        optimizer=optimizer,
        activations=need(largest) * (_HOLES if on_cpu else 1),
        rows=largest[0],
        length=largest[1],
        program=program + (_KERNELS if on_cpu else 0),
        free=free,
    )


def _kept(forward: Callable[[torch.Tensor], torch.Tensor], ids: torch.Tensor, own: set[int]) -> int:
    """Bytes that autograd keeps for the backward pass of ids; what several layers share is counted once."""
    sizes: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = forward(ids)  # held: memory that is let go of would be given to the next tensor
    del out
    return sum(sizes.values())


def _extent(batch: list[Example]) -> tuple[int, int, int]:
    """Rows, their length with padding, and tokens that are compared with the vocabulary."""
    compared = sum(
        weight != 0 or policy for row in batch for weight, policy in zip(row.weights, row.policy, strict=True)
    )
    return len(batch), max(len(row.ids) for row in batch), compared


def _taken(weights: float, device: torch.device) -> tuple[float, float]:
    """Bytes that the process has beside the weights, and those that are still free."""
    if device.type == "cuda":
        return 0.0, float(torch.cuda.mem_get_info(device)[0])
    used: Any = psutil.Process().memory_info()
    return max(0.0, used.rss - weights), float(cast(Any, psutil.virtual_memory()).available)


def _size(count: float) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _count(count: int) -> str:
    return f"{count / 1e6:,.1f} M" if count >= 1e6 else f"{count:,}"


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
