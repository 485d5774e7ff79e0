"""The processes of one run, and how they exchange plain objects."""

from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils import gather_object


def place() -> tuple[int, int]:
    """The number of this process, and how many there are."""
    state = PartialState(cpu=not torch.cuda.is_available())
    return int(state.process_index), int(state.num_processes)


def all_gather(mine: list[Any]) -> list[Any]:
    """The lists of all processes, one behind the other, in the order of the processes."""
    return list(gather_object(mine))
