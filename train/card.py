"""The card of a checkpoint: what it is, how it was made, how it learned, and what it scored."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.errors import CheckpointError
from train.recipe import SftRecipe

_BARS = "▁▂▃▄▅▆▇█"


def write_card(
    run: Path, recipe: SftRecipe, results: Mapping[str, Mapping[str, Any]], out: Path, *, note: str = ""
) -> Path:
    """Write README.md into `out`.

    Args:
        run: the folder of the training run; its log.jsonl gives the curves.
        recipe: what it was trained by.
        results: name of an evaluation (for example "test-v1, cairn") → the object that `cairn eval --json` printed.
        out: the checkpoint's folder.
        note: where the run departed from its recipe, for example.

    Raises:
        CheckpointError: the run has no log.
    """
    path = run / "log.jsonl"
    if not path.exists():
        raise CheckpointError(f"{run} has no log.jsonl: is it the folder of a training run?")
    log = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    text = "\n\n".join(
        [_what(recipe), _how(recipe, log[-1]), *([note] if note else []), _curves(log), _scores(results)]
    )
    card = out / "README.md"
    card.write_text(text + "\n", encoding="utf-8")
    return card


def _what(recipe: SftRecipe) -> str:
    shape = recipe.model
    return (
        f"# {recipe.name}\n\n"
        "A search policy for the little world, trained from nothing. It knows no fact about any world, real or little: "
        "it knows how to think, search, merge, cite and answer. Questions about anything else are outside what it can "
        f"do.\n\nQwen3 shape: width {shape.width}, {shape.layers} layers, {shape.heads} heads of {shape.head_dim} "
        f"({shape.kv_heads} for keys and values), inner width {shape.inner}, context {shape.context} tokens. "
        f"Protocols: {', '.join(recipe.protocols)}. Licence: Apache-2.0."
    )


def _how(recipe: SftRecipe, last: Mapping[str, Any]) -> str:
    return (
        "## Recipe\n\n"
        f"`cairn train sft --recipe train/recipes/tiny_sft.toml`, seed {recipe.seed}; worlds of the "
        f"`{recipe.data.split}` split from seed {recipe.seed * 1_000_000} on; {last['tokens']:,} tokens of oracle "
        f"trajectories in {last['step']:,} steps, {last['seconds'] / 60:.0f} minutes on two CPU cores."
    )


def _curves(log: list[dict[str, Any]]) -> str:
    measured = [entry for entry in log if "dev_tokens_right" in entry]
    rows = [
        f"| {entry['tokens'] / 1e6:.1f} M | {entry['policy_loss']:.4f} | {entry['dev_tokens_right']:.4f} "
        f"| {entry['dev_trajectories_right']:.3f} |"
        for entry in measured
    ]
    line = _sparkline([entry["dev_trajectories_right"] for entry in measured])
    head = (
        f"## Curves\n\nHeld-out trajectories whose every token is right, over the run: `{line}`\n\n"
        "| tokens | loss of policy tokens (last batch) | dev tokens right | dev trajectories right |\n|---|---|---|---|"
    )
    return "\n".join([head, *rows])


def _sparkline(values: list[float]) -> str:
    return "".join(_BARS[min(7, int(value * 8))] for value in values)


def _scores(results: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [
        f"| {name} | {r['n']} | {r['em']:.3f} | {r['f1']:.3f} | {r['searches']:.2f} | {r['policy_tokens']:.0f} |"
        for name, r in results.items()
    ]
    head = "## Results\n\n| evaluation | questions | EM | F1 | searches | policy tokens |\n|---|---|---|---|---|---|"
    return "\n".join([head, *rows])
