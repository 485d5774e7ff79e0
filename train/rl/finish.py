"""What a run leaves: the model in the hub's form, as a whole or not at all, with a card."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from torch import Tensor

from agent.files.foreign import WHOLE_BYTES, read_text
from agent.policies.model_folder import ABOUT, dates_shown, trained_with
from train.checkpoints.card import licence_of
from train.checkpoints.export import describe
from train.common.saving import as_a_whole
from train.models.adapters import save_adapter
from train.models.pretrained import ADAPTER, base_folder, keep_files, save_model
from train.rl.recipe import RlRecipe
from train.safety.monitors import LINES

_BARS: Final = "▁▂▃▄▅▆▇█"
_CURVES: Final = ("reward/total", "trainer/dev_em", "search/mean", "length/mean", "trainer/entropy", "trainer/kl")


def save_hub(model: Any, recipe: RlRecipe, out: Path, *, weights: Mapping[str, Tensor] | None = None) -> Path:
    """Write `hub/` with model, tokenizer and card; a previous one is replaced at the end.

    An adapter is merged into the model there, and is kept beside it in `adapter/`.

    Args:
        model: that was trained, with its adapter where it has one.
        recipe: of the run.
        out: its folder.
        weights: all of the model's, where this process holds a share of them alone.

    Raises:
        SetupError: it cannot be written, because the disk is full or otherwise.
    """
    there = out / "hub"
    with as_a_whole(there) as made:
        save_model(model, made, state=weights if recipe.adapter is None else None)
        start = base_folder(recipe.start)
        keep_files(start, made)
        said = card(recipe, figures_in(out), licence=licence_of(recipe.start, cached=start))
        (made / "README.md").write_text(said, encoding="utf-8")
        begun = Path(recipe.start).expanduser()
        passages, dates = trained_with(begun) or trained_with(start), dates_shown(begun) and dates_shown(start)
        describe(made, name=recipe.name, protocols=recipe.protocols, passages=passages, dates=dates)
    if recipe.adapter is not None:
        with as_a_whole(out / ADAPTER) as made:
            made.mkdir()
            save_adapter(model, made)
            shutil.copyfile(there / ABOUT, made / ABOUT)
    return there


def figures_in(out: Path) -> list[dict[str, Any]]:
    """The steps of a run, as its monitors wrote them."""
    path = out / LINES
    return [json.loads(line) for line in read_text(path, most=WHOLE_BYTES).splitlines()] if path.exists() else []


def card(recipe: RlRecipe, steps: Sequence[Mapping[str, Any]], *, licence: str) -> str:
    """README.md of the model: what it is, under which licence, how it was made, how it learned."""
    learning, rollout = recipe.learning, recipe.rollout
    rewards = ", then ".join(f"`{stage.name}` until {stage.until:g}" for stage in recipe.reward)
    rows = [row for name in _CURVES if (row := _curve(name, steps))]
    return "\n".join(
        [
            f"# {recipe.name}",
            "",
            f"A search policy, trained with reinforcement learning from `{recipe.start}`. "
            f"Protocols: {', '.join(recipe.protocols)}. {licence}.",
            "",
            "## Recipe",
            "",
            f"{learning.name}, {recipe.steps} steps of {rollout.prompts} questions with {rollout.group} rollouts each, "
            f"engine {rollout.engine}, temperature {rollout.temperature:g}; reward {rewards}; learning rate "
            f"{recipe.optimizer.lr:g}; seed {recipe.seed}. The whole recipe, versions and hashes are in the run's "
            "manifest.json.",
            "",
            "## Curves",
            "",
            "| figure | course | first | last |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _curve(name: str, steps: Sequence[Mapping[str, Any]]) -> str:
    values = [float(step[name]) for step in steps if isinstance(step.get(name), float)]
    if not values:
        return ""
    low, high = min(values), max(values)
    picked = [values[at * len(values) // min(40, len(values))] for at in range(min(40, len(values)))]
    bars = "".join(_BARS[int((value - low) / (high - low) * 7) if high > low else 0] for value in picked)
    return f"| {name} | `{bars}` | {values[0]:.4g} | {values[-1]:.4g} |"
