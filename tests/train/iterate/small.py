"""A small expert iteration for the tests: the shipped checkpoint, less sure of itself, on two small worlds."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from pydantic import BaseModel

from agent.world.difficulty import Difficulty
from agent.world.names import Split
from tests.train import starts
from tests.train.rl.small import hot_checkpoint
from train.iterate.recipe import IterateRecipe
from train.world.shards import make_world
from train.world.writing import new_card, write_world

EASY = Difficulty(noise=0, namesakes=0, paraphrase=0, staleness=0, contradiction=0)
QUESTIONS = 2
_WORLDS: Final[tuple[tuple[Split, int], ...]] = (("train", 8), ("dev", 9))


def worlds(folder: Path) -> None:
    """A world to sample from and one to choose by, with a few questions each."""
    for split, seed in _WORLDS:
        made = make_world(seed, split=split, people=30, questions=QUESTIONS, mix={"chain1": 1.0}, difficulty=EASY)
        write_world([made], new_card(split, seed, split=split, people=30, difficulty=EASY), folder / split)


def iterate_recipe(folder: Path, **changes: Mapping[str, Any] | object) -> IterateRecipe:
    """Two rounds with an adapter; worlds, start and recipe are made in the folder. Tables are merged, key by key."""
    worlds(folder)
    start = hot_checkpoint(folder / "hot", heat=0.6)
    optimizer = {"tokens": 1500, "batch_tokens": 800, "adamw_lr": 1e-3}
    sft = starts.written(
        starts.recipe(
            start,
            folder / "none",
            adapter=4,
            data={"max_tokens": 2000},
            optimizer=optimizer,
            report={"save_every_steps": 1},
        ),
        folder,
    )
    said: dict[str, Any] = {
        "kind": "iterate",
        "name": "small",
        "start": str(start),
        "seed": 1,
        "rounds": 2,
        "sft": str(sft),
        "agent": {"protocol": "multisearch", "world": str(folder / "train"), "device": "cpu"},
        "sample": {"tries": 2, "concurrency": 1},
        "dev": {"agent": {"world": str(folder / "dev")}},
    }
    for name, change in changes.items():
        said[name] = {**said.get(name, {}), **change} if isinstance(change, Mapping) else change
    return IterateRecipe.model_validate(said)


def as_toml(recipe: BaseModel) -> str:
    """A recipe as a file: values of TOML look like those of JSON, but for tables inside of tables."""
    said: dict[str, Any] = recipe.model_dump(mode="json", exclude_defaults=True)
    tables = {name: cast(dict[str, Any], value) for name, value in said.items() if isinstance(value, dict)}
    lines = [f"{name} = {_value(value)}" for name, value in said.items() if name not in tables]
    for name, table in tables.items():
        lines += [f"[{name}]", *(f"{key} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        entries = cast(dict[str, Any], value).items()
        return "{ " + ", ".join(f"{key} = {_value(one)}" for key, one in entries) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, cast(list[Any], value))) + "]"
    return json.dumps(value)
