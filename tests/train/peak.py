"""How much memory a supervised run takes, beside what was foretold: for a process of its own, because it has one peak."""

import json
from pathlib import Path

import torch

from train.common.recipe import read_recipe
from train.sft.needs import memory_of, speed_of
from train.sft.run import SftRun


def highest() -> int:
    """Bytes that this process held at most, since it began or since `forget`."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def write_peak(recipe: Path, out: Path, said: Path) -> None:
    """Train in `out`, and write both into the file `said` as an object."""
    torch.set_num_threads(1)
    run = SftRun(read_recipe(recipe), out)
    foretold = memory_of(run)
    speed_of(run)
    run.run(lambda _: None)
    figures = {"weights": foretold.weights, "more": foretold.more, "program": foretold.program, "peak": highest()}
    said.write_text(json.dumps(figures), encoding="utf-8")
