"""How much memory a supervised run takes, beside what was foretold: as a program, because a process has one peak.

python -m tests.train.peak RECIPE OUT prints both as an object.
"""

import json
import sys
from pathlib import Path

import torch

from train.common.recipe import read_recipe
from train.sft.needs import memory_of, speed_of
from train.sft.run import SftRun


def highest() -> int:
    """Bytes that this process held at most, since it began or since `forget`."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def main(recipe: str, out: str) -> None:
    torch.set_num_threads(1)
    run = SftRun(read_recipe(Path(recipe)), Path(out))
    foretold = memory_of(run)
    speed_of(run)
    run.run(lambda _: None)
    said = {"weights": foretold.weights, "more": foretold.more, "program": foretold.program, "peak": highest()}
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
