"""From a model to a folder in the hub's form, which transformers, vLLM and the trainers read: without torch."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agent.models.base import Base
from agent.models.safetensors_file import Floats, Stored, write_safetensors
from agent.models.shape import config_of
from agent.models.weights import ModelWeights

Report = Callable[[int, int], None]
"""Gets the tensors that are done, and how many there are."""


def write_hub(
    base: Base, weights: ModelWeights, out: Path, *, stored: Stored, report: Report = lambda _, __: None
) -> None:
    """Write a model into a folder that is there and empty.

    Args:
        base: the model, for its tokenizer.
        weights: its own, or with an adapter in them.
        out: the folder.
        stored: what the weights are kept as; bfloat16 takes half of the disk, and rounds.
        report: how far it is.

    Raises:
        CheckpointError: the model cannot be read.
        OSError: the folder cannot be written.
    """
    shape, tokenizer = weights.shape, base.tokenizer
    shapes = shape.tensors()

    def tensors() -> Iterator[tuple[str, Floats]]:
        for done, name in enumerate(shapes):
            report(done, len(shapes))
            yield name, weights.read(name)
        report(len(shapes), len(shapes))

    write_safetensors(out / "model.safetensors", tensors(), shapes, stored=stored)
    ids = base.tokenizer.ids()
    _write(out / "config.json", config_of(shape) | ids | {"dtype": stored})
    _write(out / "generation_config.json", ids)
    _write(out / "tokenizer_config.json", tokenizer.config() | {"model_max_length": shape.context})
    (out / "tokenizer.json").write_text(tokenizer.json, encoding="utf-8")
    if tokenizer.chat_template is not None:
        (out / "chat_template.jinja").write_text(tokenizer.chat_template, encoding="utf-8")


def _write(path: Path, fields: dict[str, Any]) -> None:
    path.write_text(json.dumps(fields, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
