# pyright: basic
"""One of several processes that hold shares of a model: they learn a step, and the first one writes the whole model.

Run by test_processes through torchrun. Accelerate has no FSDP on CPUs, so the model is shared out by hand,
and accelerate knows that: what is tested is how our run consolidates the weights.
"""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import DistributedType
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers import Qwen3ForCausalLM

from tests.train.rl.small import recipe
from train.common.process_group import leave
from train.rl.adapter import RlTrainer
from train.rl.finish import save_hub


def one_step(model: Any) -> None:
    """The same in every process, so that the mean of their gradients is that of one."""
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.1)
    ids = torch.arange(1, 33).view(2, 16)
    model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
    optimizer.step()


def main(start: Path, out: Path) -> None:
    """Learn a step with a model in two halves, and save it as a run does."""
    accelerator: Any = Accelerator(cpu=True)
    model: Any = Qwen3ForCausalLM.from_pretrained(start, dtype=torch.float32)
    mesh = init_device_mesh("cpu", (accelerator.num_processes,))
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    one_step(model)
    shares = sum(one.to_local().numel() for one in model.parameters())
    assert shares < sum(one.numel() for one in model.parameters())
    state: Any = AcceleratorState
    sharded = {"distributed_type": DistributedType.FSDP, "fsdp_plugin": SimpleNamespace(fsdp_version=2)}
    state._shared_state.update(sharded)
    trainer: Any = SimpleNamespace(accelerator=accelerator, model_wrapped=model)
    weights = RlTrainer.gathered(trainer)
    if accelerator.process_index == 0:
        save_hub(model, recipe(start=str(start)), out, weights=weights)
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
    leave()
