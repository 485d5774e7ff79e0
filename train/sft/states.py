"""The state that a supervised run goes on from: one file, or a folder with the share of each process."""

import json
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import torch
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from agent.errors import SetupError
from agent.files.foreign import read_text
from train.common.interrupt import check_folder
from train.common.process_group import ProcessGroup
from train.common.saving import as_a_whole
from train.models.pretrained import Pretrained
from train.sft.optimizers import Optimizers
from train.sft.sharding import ShardedModel

STATE: Final = "state.pt"
SHARES: Final = "state"
"""Folder in the place of `state.pt`, of a run in shares."""
_RUN: Final = "run.json"


def is_begun(out: Path) -> bool:
    """Whether a folder holds a state, of either kind."""
    return (out / STATE).exists() or (out / SHARES).exists()


def state_of(out: Path, begun: Pretrained) -> Path:
    """The state that a run with this model goes on from.

    Raises:
        SetupError: there is none, or one of the other kind.
    """
    path = _path(out, begun)
    if is_begun(out) and not path.exists():
        how = "without" if isinstance(begun, ShardedModel) else "with"
        raise SetupError(f"the run in {out} was saved {how} --shard: go on {how} it")
    check_folder(out, begun=path.exists(), resume=True)
    return path


def _path(out: Path, begun: Pretrained) -> Path:
    return out / (SHARES if isinstance(begun, ShardedModel) else STATE)


def save_state(
    out: Path, begun: Pretrained, optimizers: Optimizers, run: Mapping[str, Any], process_group: ProcessGroup
) -> None:
    """Write a state beside the one that is there, which stays whole until then.

    Of a model in shares each process writes its own, and all must call it at the same time.

    Args:
        out: folder of the run.
        begun: the model.
        optimizers: with their moments.
        run: the recipe, and where the run is.
        process_group: of the run.

    Raises:
        SetupError: it cannot be written, because the disk is full or otherwise.
    """
    there = _path(out, begun)
    if not isinstance(begun, ShardedModel):
        with as_a_whole(there) as made:
            torch.save({**run, "model": begun.state(), "optimizers": optimizers.state()}, made)
        return
    first = process_group.is_main_process
    with as_a_whole(there) if first else nullcontext(there.with_name(f"{there.name}.new")) as made:
        if first:
            made.mkdir()
            (made / _RUN).write_text(json.dumps(run), encoding="utf-8")
        process_group.wait()
        save(_shares(begun, optimizers), checkpoint_id=made)
    process_group.wait()


def load_state(path: Path, begun: Pretrained, optimizers: Optimizers, *, recipe: str) -> Mapping[str, Any]:
    """Take back what `save_state` wrote, in any number of processes; gives what it says of the run.

    Args:
        path: of the state.
        begun: the model.
        optimizers: of it.
        recipe: that it must have been made by.

    Raises:
        SetupError: it is damaged, or of another recipe.
    """
    try:
        if isinstance(begun, ShardedModel):
            run: dict[str, Any] = json.loads(read_text(path / _RUN))
        else:
            run = torch.load(path, map_location=next(begun.trained.parameters()).device, weights_only=True)
    except Exception as error:  # torch raises many kinds for a damaged file
        raise _damaged(path, error) from error
    if run["recipe"] != recipe:
        raise SetupError(f"{path} was made by another recipe: use that one, or another --out")
    if not isinstance(begun, ShardedModel):
        begun.load(run["model"])
        optimizers.load(run["optimizers"])
        return run
    state = _shares(begun, optimizers)
    try:
        load(state, checkpoint_id=path)
    except Exception as error:
        raise _damaged(path, error) from error
    weights, moments = state["model"], state["optimizers"]
    set_state_dict(begun.trained, optimizers.all, model_state_dict=weights, optim_state_dict=moments)
    return run


def _shares(begun: Pretrained, optimizers: Optimizers) -> dict[str, Any]:
    """Weights and moments by name, in shares that torch puts together in any number of processes."""
    weights, moments = get_state_dict(begun.trained, optimizers.all)
    return {"model": weights, "optimizers": moments}


def _damaged(path: Path, error: Exception) -> SetupError:
    return SetupError(f"{path} is damaged ({error}): start again in another folder")
