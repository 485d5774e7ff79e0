"""The mean of the weights of checkpoints of one training, often better than each of them (Wortsman et al. 2022)."""

import importlib
import json
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from agent.errors import CheckpointError
from agent.files.foreign import WHOLE_BYTES, read_text
from train.checkpoints.export import whole
from train.common.saving import as_a_whole

_WEIGHTS: Final = "model.safetensors"


def mean_of(hubs: Sequence[Path], out: Path) -> None:
    """Write a checkpoint whose weights are the mean of those of others; all else is the last one's.

    Args:
        hubs: folders in the hub's form or of adapters, two or more, of one shape and one tokenizer. The mean of
            adapters is that of the models that they make.
        out: the new folder, in the hub's form; what was there is replaced. Weights keep their type, and are summed in
            float32.

    Raises:
        CheckpointError: there are too few, one of them is none, or they do not fit together.
        SetupError: it could not be saved.
    """
    if len(hubs) < 2:
        raise CheckpointError("a mean needs two checkpoints or more; name another folder in the hub's form")
    with ExitStack() as stack:
        _mean([stack.enter_context(whole(hub)) for hub in hubs], hubs, out)


def _mean(found: Sequence[Path], hubs: Sequence[Path], out: Path) -> None:
    """The mean of what was found in folders in the hub's form; `hubs` are their names."""
    _check(found, hubs)
    safetensors: Any = importlib.import_module("safetensors.torch")
    parts: list[dict[str, Any]] = [safetensors.load_file(hub / _WEIGHTS) for hub in found]
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
        shutil.copytree(found[-1], made)
        safetensors.save_file(weights, made / _WEIGHTS, metadata={"format": "pt"})


def _check(found: Sequence[Path], hubs: Sequence[Path]) -> None:
    """Refuse what has no mean.

    Raises:
        CheckpointError: the sentence says the fix.
    """
    for folder, hub in zip(found, hubs, strict=True):
        for file in (_WEIGHTS, "tokenizer.json"):
            if not (folder / file).is_file():
                raise CheckpointError(
                    f"{hub} holds no {file}; name a folder in the hub's form, with its weights in one file"
                )
    texts = [read_text(folder / "tokenizer.json", most=WHOLE_BYTES) for folder in found]
    vocabularies = [json.loads(text)["model"]["vocab"] for text in texts]
    for hub, vocabulary in zip(hubs, vocabularies, strict=True):
        if vocabulary != vocabularies[0]:
            raise CheckpointError(f"{hub} has another tokenizer than {hubs[0]}; average checkpoints of one training")
