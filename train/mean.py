"""The mean of the weights of checkpoints of one training, often better than each of them (Wortsman et al. 2022)."""

import importlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from agent.errors import CheckpointError
from agent.foreign_files import WHOLE_BYTES, read_text
from train.saving import as_a_whole

_WEIGHTS: Final = "model.safetensors"


def mean_of(hubs: Sequence[Path], out: Path) -> None:
    """Write a checkpoint whose weights are the mean of those of others; all else is the last one's.

    Args:
        hubs: folders in the hub's form, two or more, of one shape and one tokenizer.
        out: the new folder, in the hub's form; what was there is replaced. Weights keep their type, and are summed in
            float32.

    Raises:
        CheckpointError: there are too few, one of them is none, or they do not fit together.
        SetupError: it could not be saved.
    """
    _check(hubs)
    safetensors: Any = importlib.import_module("safetensors.torch")
    parts: list[dict[str, Any]] = [safetensors.load_file(hub / _WEIGHTS) for hub in hubs]
    shapes = [{name: tuple(tensor.shape) for name, tensor in part.items()} for part in parts]
    for hub, shape in zip(hubs, shapes, strict=True):
        if shape != shapes[0]:
            raise CheckpointError(f"{hub} is of another shape than {hubs[0]}; average checkpoints of one training")
    torch: Any = importlib.import_module("torch")
    weights = {
        name: torch.stack([part[name].float() for part in parts]).mean(0).to(tensor.dtype)
        for name, tensor in parts[-1].items()
    }
    with as_a_whole(out) as made:
        shutil.copytree(hubs[-1], made)
        safetensors.save_file(weights, made / _WEIGHTS, metadata={"format": "pt"})


def _check(hubs: Sequence[Path]) -> None:
    """Refuse what has no mean.

    Raises:
        CheckpointError: the sentence says the mend.
    """
    if len(hubs) < 2:
        raise CheckpointError("a mean needs two checkpoints or more; name another folder in the hub's form")
    for hub in hubs:
        for file in (_WEIGHTS, "tokenizer.json"):
            if not (hub / file).is_file():
                raise CheckpointError(
                    f"{hub} holds no {file}; name a folder in the hub's form, with its weights in one file"
                )
    vocabularies = [json.loads(read_text(hub / "tokenizer.json", most=WHOLE_BYTES))["model"]["vocab"] for hub in hubs]
    for hub, vocabulary in zip(hubs, vocabularies, strict=True):
        if vocabulary != vocabularies[0]:
            raise CheckpointError(f"{hub} has another tokenizer than {hubs[0]}; average checkpoints of one training")
