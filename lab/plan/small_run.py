"""A recipe at a small size: how a rehearsal runs it, in this process or in two that accelerate has launched.

    python -m lab.plan.small_run RECIPE.json FOLDER

Rollouts earn what the recipe's reward says, and up to 1 more by what they have sampled: a random policy earns the same
each time, and from equal rewards no gradient comes.
"""

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from agent.errors import SetupError
from agent.settings import environment_of_children
from agent.trace import Trace
from train.ppo.recipe import PpoRecipe
from train.rewards.base import Reward, Rewarded
from train.rewards.task import Task
from train.rl.recipe import RlRecipe

PROCESSES: Final = 2
"""That share the weights, where the recipe's do."""
_SAID: Final = 2000
"""Characters of what a failed launcher wrote."""


def spread(reward: Reward[Any]) -> Reward[Any]:
    """The same reward with more in its first part, from 0 to 1, by the tokens of the rollout."""
    own: Any = type(reward)

    class Spread(own):
        async def score(self, trace: Trace, task: Task, **also: Any) -> Rewarded | None:
            rewarded = await super().score(trace, task, **also)
            if rewarded is None:
                return None
            first = next(iter(rewarded.parts))
            return Rewarded({**rewarded.parts, first: rewarded.parts[first] + _share(trace)})

    return Spread(reward.settings, reward.tools)


def run_here(recipe: RlRecipe, out: Path) -> None:
    """Run a small recipe in this process, or in this one of several.

    Raises:
        SetupError: it cannot run; the sentence says why.
    """
    if isinstance(recipe, PpoRecipe):
        from train.ppo.run import PpoRun

        PpoRun(recipe, out, threads=1, around=spread).go(lambda *_: None)
        return
    from train.rl.run import RlRun

    RlRun(recipe, out, threads=1, around=spread).go(lambda *_: None)


def run_shared(recipe: RlRecipe, out: Path, *, accelerate: Path) -> None:
    """Run a small recipe in two processes on the CPU, as the plan's command launches it on GPUs.

    Args:
        recipe: small.
        out: folder of the run.
        accelerate: the configuration, of which all but the number of processes and bfloat16 is kept.

    Raises:
        SetupError: it cannot run; the sentence has what the processes wrote last.
    """
    file = out.with_suffix(".json")
    file.write_text(recipe.model_dump_json(exclude_unset=True), encoding="utf-8")
    command = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(accelerate)]
    command += ["--num_processes", str(PROCESSES), "--mixed_precision", "no", "--main_process_port", "0"]
    command += ["-m", __name__, str(file), str(out)]
    with environment_of_children({"CUDA_VISIBLE_DEVICES": ""}):
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        why = _failure(out)
        said = why.read_text(encoding="utf-8") if why.exists() else done.stderr.strip()[-_SAID:]
        raise SetupError(f"the rehearsal in {PROCESSES} processes failed: {said}")


def _share(trace: Trace) -> float:
    """From 0 to 1, by the tokens of a rollout."""
    said = repr([segment.ids for segment in trace.segments])
    return int.from_bytes(hashlib.sha256(said.encode()).digest()[:4], "big") / 2**32


def run_launched(file: Path, out: Path) -> None:
    """Run a small recipe in this process of several; what goes wrong is written where `run_shared` finds it."""
    from train.common.process_group import leave

    try:
        run_here(RlRecipe.model_validate_json(file.read_text(encoding="utf-8")), out)
    except Exception as error:
        said = str(error) if isinstance(error, SetupError) else repr(error)
        _failure(out).write_text(said, encoding="utf-8")
        raise
    leave()


def _failure(out: Path) -> Path:
    return out.with_suffix(".failed")


if __name__ == "__main__":
    run_launched(Path(sys.argv[1]), Path(sys.argv[2]))
