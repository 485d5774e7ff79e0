"""The card of a checkpoint: what it is, how it was made, how it learned, and what it scored."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agent.errors import CheckpointError, SetupError
from agent.files.foreign import MIB, WHOLE_BYTES, no_link, read_text
from train.common.recipe import SftRecipe
from train.safety.manifest import read_manifest

_BARS = "▁▂▃▄▅▆▇█"
_RESULTS = "## Results"
OURS = "Licence: Apache-2.0"
_LICENCE = re.compile(r"^(?:license:\s*|.*\bLicence: (?!that of))(?P<name>[\w.-]*\w)", re.MULTILINE)


def licence_of(start: str | Path, *, cached: Path | None = None) -> str:
    """A sentence on the licence of what is trained from a checkpoint: that one's own, as its card says.

    Args:
        start: its folder in the hub's form or of an adapter, with the card in it or beside it; or its name.
        cached: where the files of a name are.
    """
    from agent.models.wheel import KNOWN

    if start in KNOWN:
        return OURS if KNOWN[str(start)].licence.lower() == "apache-2.0" else f"Licence: {KNOWN[str(start)].licence}"
    model = _model_of(Path(start))
    if model:
        return licence_of(model, cached=cached)
    for folder in (Path(start), Path(start).parent, *([] if cached is None else [cached])):
        card = folder / "README.md"
        said = _LICENCE.search(read_text(card, most=MIB)) if card.is_file() else None
        if said:
            return OURS if said["name"].lower() == "apache-2.0" else f"Licence: {said['name']}"
    return f"Licence: that of `{start}`"


def _model_of(folder: Path) -> str:
    """The model of an adapter's folder; nothing of another one."""
    try:
        return str(json.loads(read_text(folder / "adapter_config.json", most=MIB))["base_model_name_or_path"] or "")
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def write_card(
    run: Path,
    recipe: SftRecipe,
    results: Mapping[str, Mapping[str, Any]],
    out: Path,
    *,
    note: str = "",
    file: str = "train/recipes/tiny_sft.toml",
) -> Path:
    """Write README.md into `out`.

    Args:
        run: the folder of the training run; its log.jsonl gives the curves.
        recipe: what it was trained by. Where the run has a manifest, the card shows that one's: it knows `--rows`.
        results: name of an evaluation (for example "test-v1, cairn") → the object that `cairn eval --json` printed.
        out: the checkpoint's folder.
        note: where the run departed from its recipe, for example.
        file: the recipe's own file.

    Raises:
        CheckpointError: the run has no log, or one of the results is none; or there is no such folder to write to.
    """
    log = _log(run / "log.jsonl")
    recipe = _trained_by(run) or recipe
    text = "\n\n".join(
        [
            _what(recipe),
            _how(recipe, log[-1], file),
            *([note] if note else []),
            *_curves(log),
            *_answers(log),
            _scores(results),
        ]
    )
    return _written(text, out)


def with_results(run: Path, results: Mapping[str, Mapping[str, Any]], out: Path, *, note: str = "") -> Path:
    """Write README.md into `out`: the card that a run wrote with its model, and what it scored behind it.

    Args:
        run: the folder of a run that writes a card itself, as those of reinforcement learning do.
        results: see `write_card`.
        out: the checkpoint's folder.
        note: what else a reader must know.

    Raises:
        CheckpointError: the run has not come to its end, or see `write_card`.
    """
    path = run / "hub" / "README.md"
    try:
        own = read_text(path, most=MIB)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error}): has the run in {run} finished?") from error
    said = [own.partition(_RESULTS)[0].strip(), *([note] if note else []), _scores(results)]
    return _written("\n\n".join(said), out)


def _trained_by(run: Path) -> SftRecipe | None:
    try:
        return SftRecipe.model_validate(read_manifest(run).recipe)
    except (SetupError, ValidationError):  # none, or of another kind or version: the card shows the recipe's file
        return None


def _log(path: Path) -> list[dict[str, Any]]:
    """What a run logged of its steps. A last line that was cut off when the run was killed is left out."""
    try:
        lines = read_text(path, most=WHOLE_BYTES, follow=False).splitlines(keepends=True)
        log = [json.loads(line) for line in lines if line.endswith("\n")]
    except OSError as error:
        raise CheckpointError(f"{path.parent} has no log.jsonl: is it the folder of a training run?") from error
    except ValueError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if not log:
        raise CheckpointError(f"{path} has no step yet; write the card when the run is further")
    return log


def _written(text: str, out: Path) -> Path:
    card = out / "README.md"
    try:
        with open(card, "w", encoding="utf-8", opener=no_link) as file:
            file.write(text + "\n")
    except OSError as error:
        why = error.strerror or error
        raise CheckpointError(f"{card} cannot be written ({why}): name the folder of the checkpoint") from error
    return card


def _what(recipe: SftRecipe) -> str:
    spoken = f"Protocols: {', '.join(recipe.protocols)}. {licence_of(recipe.start) if recipe.start else OURS}."
    if recipe.model is None:
        with_adapter = f", with an adapter of rank {recipe.adapter.rank}" if recipe.adapter else ""
        return f"# {recipe.name}\n\nA search policy from a pretrained model, `{recipe.start}`{with_adapter}. {spoken}"
    shape = recipe.model
    return (
        f"# {recipe.name}\n\n"
        "A search policy for the little world. Of the worlds it knows only the closed set of well-known facts by "
        "heart; everything else it searches for. Questions about anything else are outside what it can "
        f"do.\n\nQwen3 shape: width {shape.width}, {shape.layers} layers, {shape.heads} heads of {shape.head_dim} "
        f"({shape.kv_heads} for keys and values), inner width {shape.inner}, context {shape.context} tokens. {spoken}"
    )


def _how(recipe: SftRecipe, last: Mapping[str, Any], file: str) -> str:
    begun = f"the weights of `{recipe.start}`" if recipe.start else "nothing"
    return (
        "## Recipe\n\n"
        f"`cairn train sft --recipe {file}`, seed {recipe.seed}, begun from {begun}; {_data(recipe)}; "
        f"{last['tokens']:,} tokens of them in {last['step']:,} steps, {last['seconds'] / 60:.0f} minutes."
    )


def _data(recipe: SftRecipe) -> str:
    """What it learned from."""
    data = recipe.data
    if data.rows:
        return f"the rows of `{data.rows}`"
    noisy = f", {data.noisy_share:.0%} of them by a noisy expert" if data.noisy_share else ""
    if data.built:
        return f"oracle trajectories of the questions of `{data.built}`{noisy}"
    return (
        f"oracle trajectories of worlds of generator {data.generator}, split `{data.split}`, from seed "
        f"{recipe.seed * 1_000_000} on{noisy}"
    )


def _curves(log: list[dict[str, Any]]) -> list[str]:
    """How it did on what is held out; nothing where nothing was."""
    measured = [entry for entry in log if "dev_tokens_right" in entry]
    if not measured:
        return []
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
    return ["\n".join([head, *rows])]


def _answers(log: list[dict[str, Any]]) -> list[str]:
    """By protocol and by type of question, where the run logged it."""
    last = next((entry["dev_answers_right"] for entry in reversed(log) if "dev_answers_right" in entry), None)
    if not last:
        return []
    rows = [f"| {name} | {share:.3f} |" for name, share in last.items()]
    head = (
        "Right answers on held-out trajectories, with the oracle's words before them (the answer alone is the "
        "policy's):\n\n| protocol, or type of question | share |\n|---|---|"
    )
    return ["\n".join([head, *rows])]


def _sparkline(values: list[float]) -> str:
    return "".join(_BARS[min(7, int(value * 8))] for value in values)


def _scores(results: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [_score(name, result) for name, result in results.items()]
    head = f"{_RESULTS}\n\n| evaluation | questions | EM | F1 | searches | policy tokens |\n|---|---|---|---|---|---|"
    return "\n".join([head, *rows])


def _score(name: str, result: Mapping[str, Any]) -> str:
    try:
        em, f1, searches, tokens = (float(result[key]) for key in ("em", "f1", "searches", "policy_tokens"))
        return f"| {name} | {result['n']} | {em:.3f} | {f1:.3f} | {searches:.2f} | {tokens:.0f} |"
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"the result {name!r} is not what `cairn eval --json` prints (n, em, f1, searches, …): {error!r}"
        ) from error
