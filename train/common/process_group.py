"""Processes that train one model together: each takes its share of a step's batches, and their gradients are added.

A step is the same whatever their number, up to rounding. Not a launcher of several machines.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.multiprocessing  # noqa: F401 - lets processes exchange tensors
from torch import distributed

from agent.errors import SetupError
from agent.parallel.processes import spawning

_T = TypeVar("_T")
_PATIENCE = timedelta(hours=1)
"""How long the others wait while the first one measures."""


@dataclass(frozen=True)
class ProcessGroup:
    """The place of one process among all of a run."""

    rank: int = 0
    size: int = 1

    @property
    def is_main_process(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == 0

    def share(self, work: Sequence[_T]) -> list[_T]:
        """What this process does of a step."""
        return list(work[self.rank :: self.size])

    def all_reduce(self, tensors: Sequence[torch.Tensor]) -> None:
        """Replace every tensor by the sum over all processes.

        Raises:
            SetupError: another process is gone.
        """
        if self.size == 1:
            return
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        try:
            distributed.all_reduce(flat)
        except RuntimeError as error:
            gone = "another process of this run has ended; the last saved state is intact: continue with --resume"
            raise SetupError(gone) from error
        for tensor, added in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(added.view_as(tensor))

    def broadcast(self, tensors: Sequence[torch.Tensor]) -> None:
        """Replace every tensor by its value in the process that has it in its `share`.

        Raises:
            SetupError: another process is gone.
        """
        for place, tensor in enumerate(tensors):
            if place % self.size != self.rank:
                tensor.zero_()
        self.all_reduce(tensors)

    def wait(self) -> None:
        """Until every process has come here."""
        self.any(False)

    def any(self, mine: bool) -> bool:
        """Whether it holds in any of the processes, which all learn it."""
        said = torch.tensor([float(mine)])
        self.all_reduce([said])
        return bool(said.item())


def run_in_processes(size: int, work: Callable[..., Any], *arguments: object) -> Any:
    """Call `work(process_group, *arguments)` in `size` processes; give the result of the first, which is this one.

    Args:
        size: number of processes.
        work: a function of a module, so that other processes find it.
        arguments: whatever pickle can carry.
    """
    if size == 1:
        return work(ProcessGroup(), *arguments)
    with tempfile.TemporaryDirectory() as folder:
        meeting = (Path(folder) / "meeting").as_uri()
        threads = max(1, torch.get_num_threads() // size)
        others = spawning()
        started = [
            others.Process(target=_join, args=(rank, size, meeting, threads, work, arguments), daemon=True)
            for rank in range(1, size)
        ]
        before = torch.get_num_threads()
        for process in started:
            process.start()
        try:
            return _join(0, size, meeting, threads, work, arguments)
        finally:
            for process in started:
                process.join(timeout=10)
                process.terminate()
            torch.set_num_threads(before)


def leave() -> None:
    """End this process now, if a launcher (torchrun, accelerate) runs it beside others; otherwise do nothing.

    To be called where all is written and the group has ended. A thread of gloo's may still hold a tensor, and lets go
    of it while the interpreter is taken down: that aborts the process, and the launcher takes the whole run for failed.
    """
    if distributed.is_torchelastic_launched():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _join(rank: int, size: int, meeting: str, threads: int, work: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    torch.set_num_threads(threads)
    distributed.init_process_group(init_method=meeting, rank=rank, world_size=size, timeout=_PATIENCE)
    try:
        return work(ProcessGroup(rank, size), *arguments)
    finally:
        with suppress(RuntimeError):  # another one may be gone already
            distributed.destroy_process_group()
