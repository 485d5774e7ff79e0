"""Settings, recipes, protocols and objects of the pages are what reads them takes."""

import importlib
import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.policies.model_folder import About
from agent.protocols import load_protocol
from agent.settings import load_settings
from server.http.schema import Retrieved
from tests.docs.blocks import ROOT, Block, blocks
from tests.docs.test_shell import parsed
from train.rl.recipe import read_rl_recipe

RECIPE = ROOT / "train" / "recipes" / "tiny_grpo.toml"
Table = dict[str, Any]


def as_settings(block: Block, data: Table, folder: Path) -> None:
    path = folder / "cairn.toml"
    path.write_text(block.text, encoding="utf-8")
    assert load_settings(path).model_fields_set >= data.keys()


def as_protocol(block: Block, data: Table, folder: Path) -> None:
    path = folder / "mine.toml"
    path.write_text(block.text, encoding="utf-8")
    assert load_protocol(path).name == data["name"]


def as_part_of_a_recipe(block: Block, data: Table, folder: Path) -> None:
    """Its tables, in the place of those of a recipe that there is."""
    kept: list[str] = []
    skipping = False
    for line in RECIPE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            skipping = line.strip("[] ").split(".")[0] in data
        kept += [] if skipping else [line]
    path = folder / "recipe.toml"
    path.write_text("\n".join(kept) + "\n" + block.text, encoding="utf-8")
    assert read_rl_recipe(path).model_fields_set >= data.keys()


def as_entry_point(block: Block, data: Table, folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "examples" / "cairn-source-example"), *sys.path])
        for group, entries in data["project"]["entry-points"].items():
            assert group in {"cairn.sources", "cairn.commands"}
            for entry in entries.values():
                module, name = entry.split(":")
                assert callable(getattr(importlib.import_module(module), name))


def reader_of(data: Table) -> Callable[[Block, Table, Path], None]:
    if "project" in data:
        return as_entry_point
    if "tags" in data:
        return as_protocol
    if data.keys() <= {
        "safety",
        "data",
        "rollout",
        "learning",
        "optimizer",
        "report",
        "curriculum",
        "reward",
        "teacher",
    }:
        return as_part_of_a_recipe
    return as_settings


@pytest.mark.parametrize("block", blocks("toml"), ids=lambda block: block.name)
def test_the_toml_of_the_pages_is_loaded_by_what_reads_it(block: Block, tmp_path: Path):
    data = tomllib.loads(block.text)
    reader_of(data)(block, data, tmp_path)


@pytest.mark.parametrize("block", blocks("json"), ids=lambda block: block.name)
def test_the_json_of_the_pages_is_what_reads_it_takes(block: Block):
    data: Table = json.loads(block.text)
    for server in data.get("mcpServers", {}).values():
        assert server["command"] == "cairn"
        parsed(server["args"])
    if "result" in data:
        Retrieved.model_validate(data)
    if "context_tokens" in data:
        About.model_validate(data)


@pytest.mark.parametrize("block", blocks("yaml"), ids=lambda block: block.name)
def test_the_yaml_of_the_pages_can_be_read(block: Block):
    assert yaml.safe_load(block.text)


def test_the_number_of_loaded_blocks_is_printed(capsys: pytest.CaptureFixture[str]):
    with capsys.disabled():
        sys.stdout.write(f"\ntoml: {len(blocks('toml'))} blocks, json: {len(blocks('json'))}; all of them are loaded\n")
    assert blocks("toml")
    assert blocks("json")
