"""The supervised part as each of its processes runs it. Torch is needed."""

from collections.abc import Callable
from pathlib import Path

from transformers.utils import logging

from train.common.process_group import Crew
from train.common.recipe import SftRecipe
from train.sft.run import Progress, SftRun


def _silent(progress: Progress) -> None:
    """Nobody watches."""


class Hearing:
    """Is told of each step in the process that made it; what arrives in another process is silent."""

    def __init__(self, hear: Callable[[Progress], None] = _silent) -> None:
        self._hear = hear

    def __call__(self, progress: Progress) -> None:
        self._hear(progress)

    def __reduce__(self) -> tuple[type["Hearing"], tuple[()]]:
        return Hearing, ()


def learn(crew: Crew, recipe: SftRecipe, out: Path, hearing: Hearing) -> dict[str, float] | None:
    """Train to the end, from where an earlier sitting stopped.

    Returns:
        Figures of the run; None where it was interrupted (its state is saved then).
    """
    logging.disable_progress_bar()  # the terminal belongs to the command
    last: dict[str, float] = {}

    def hear(progress: Progress) -> None:
        told = {
            "policy_loss": progress.policy_loss,
            "dev_tokens_right": progress.dev_tokens_right,
            "dev_trajectories_right": progress.dev_trajectories_right,
        }
        last.update({name: round(value, 5) for name, value in told.items() if value is not None})
        hearing(progress)

    run = SftRun(recipe, out, crew)
    if (out / "state.pt").exists():
        run.resume()
    if not run.done and not run.run(hear):
        return None
    if crew.leads:
        run.save_hub()
    place = run.place
    seconds = max(place.seconds, 1e-9)
    counted = {"tokens": float(place.tokens), "steps": float(place.step), "train_seconds": round(place.seconds, 1)}
    return counted | {"tokens_per_second": round(place.tokens / seconds, 1)} | last
