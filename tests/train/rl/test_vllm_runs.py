"""Whole runs of `cairn train rl` whose rollouts are vLLM's, in this process and of vLLM's own server, on a CPU.

Servers take half a minute to start, so they start beside the other tests, and one that has started is a teacher, too.
"""

import asyncio
import importlib.util
import tempfile
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(600)]
if importlib.util.find_spec("vllm") is None:
    pytest.skip("vLLM is not installed", allow_module_level=True)

torch: Any = pytest.importorskip("torch")
pytest.importorskip("trl")
transformers: Any = pytest.importorskip("transformers")

from agent.errors import SetupError  # noqa: E402
from agent.sources.base import SearchRequest, SearchResult, Source  # noqa: E402
from tests.agent.policies.vllm_case import ServerProcess, free_port  # noqa: E402
from tests.train.rl.small import hot_checkpoint, recipe  # noqa: E402
from tests.train.rl.vllm_runs import (  # noqa: E402
    CLOSE,
    FAR,
    IN_PROCESS,
    RECIPE,
    STEPS,
    adapter_recipe,
    at,
    check_adapter,
    check_figures,
    furthest,
    lines_of,
    serving,
    traces_of,
)
from train.commands import rl  # noqa: E402
from train.rl.batch import WeightedRow  # noqa: E402
from train.rl.recipe import RlRecipe, read_rl_recipe  # noqa: E402
from train.rl.run import RlRun  # noqa: E402
from train.rl.states import newest_state  # noqa: E402
from train.rl.tasks import Ask, tasks_of  # noqa: E402
from train.rl.teacher import open_teacher  # noqa: E402
from train.safety.manifest import read_manifest  # noqa: E402

KILLED_IN = 2
"""The step, from 0, in whose rollouts the server is killed."""


def tiny_recipe(path: Path, start: Path, *, engine: str) -> Path:
    said = RECIPE.format(
        start=start, engine=engine, steps=STEPS, protocol="multisearch", tokens=96, lr=3e-4, saved=1, more=""
    )
    path.write_text(said, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hot_checkpoint(tmp_path_factory.mktemp("tiny") / "hub")


@pytest.fixture(scope="module")
def tiny_server(tiny: Path) -> Generator[ServerProcess]:
    with serving(tiny, free_port()) as server:
        yield server


def check_last_step(out: Path, start: Path) -> None:
    """The last step's rollouts are of the weights that the step before left, and no longer of the start's."""
    sampled = traces_of(out, STEPS)
    assert furthest(out / "states" / f"checkpoint-{STEPS - 1}", sampled) < CLOSE
    assert furthest(start, sampled) > FAR


@pytest.mark.usefixtures("tiny_server")  # it starts meanwhile
def test_a_run_in_one_process_with_vllm_samples_with_the_weights_of_each_step(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "1")  # its model has a process of its own, as users have it
    path = tiny_recipe(tmp_path / "recipe.toml", tiny, engine=IN_PROCESS)
    rl(path, tmp_path / "run", threads=1)
    check_figures(tmp_path / "run", steps=STEPS)
    check_last_step(tmp_path / "run", tiny)


def test_an_adapter_is_trained_with_vllm_in_one_process(tiny: Path, tmp_path: Path) -> None:
    path = adapter_recipe(tmp_path / "recipe.toml", tiny, protocol="multisearch", lr=1e-2)
    rl(path, tmp_path / "run", threads=1)
    check_adapter(tiny, tmp_path / "run")


def test_vllms_server_scores_a_rows_tokens_as_the_same_model_does_here(tiny: Path, tiny_server: ServerProcess) -> None:
    async def scored(**teacher: str) -> Any:
        opened = await open_teacher(recipe(teacher=teacher))
        try:
            return await opened.logprobs(rows)
        finally:
            await opened.aclose()

    ids = (5, 9, 300, 7, 44, 45, 46)
    rows = [WeightedRow(ids[:size], (0.0, *(1.0,) * (size - 1)), (0.0,) * size, (0.0,) * size, 0) for size in (4, 7)]
    model, url = str(tiny), tiny_server.ready()
    there = asyncio.run(scored(model=model, base_url=url))
    with pytest.raises(SetupError, match="does not know the model 'other'"):
        asyncio.run(scored(model="other", base_url=url))
    for one, other in zip(there, asyncio.run(scored(model=model)), strict=True):
        assert one == pytest.approx(other, abs=1e-3)


def unwatched(step: int, figures: Mapping[str, float]) -> None:
    """Nothing is shown."""


class KillingTasks:
    """The questions of a recipe; the first search of a step kills something, in the middle of its rollouts."""

    def __init__(self, recipe: RlRecipe, kill: Callable[[], None]) -> None:
        self._tasks = tasks_of(recipe)
        self._kill = kill

    def draw(self, step: int, attempt: int, number: int) -> list[Ask]:
        asks = self._tasks.draw(step, attempt, number)
        if step != KILLED_IN:
            return asks
        return [
            replace(ask, sources={name: KillingSource(source, self._kill) for name, source in ask.sources.items()})
            for ask in asks
        ]

    def held_out(self) -> list[Ask]:
        return []


class KillingSource:
    def __init__(self, source: Source, kill: Callable[[], None]) -> None:
        self._source = source
        self._kill = kill

    async def search(self, request: SearchRequest) -> SearchResult:
        self._kill()
        return await self._source.search(request)


@dataclass(frozen=True)
class Killed:
    recipe: Path
    out: Path
    why: str
    """What the run ended with."""
    again: ServerProcess


@pytest.fixture(scope="module")
def killed(tiny: Path, tiny_server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Generator[Killed]:
    """A run whose server was killed, and another server at its address that is not ready yet."""
    folder = tmp_path_factory.mktemp("killed")
    path, out = tiny_recipe(folder / "recipe.toml", tiny, engine=at(tiny_server)), folder / "run"
    tiny_server.ready()
    recipe = read_rl_recipe(path)
    with pytest.raises(SetupError) as ended:
        RlRun(recipe, out, threads=1, tasks=KillingTasks(recipe, tiny_server.kill)).go(unwatched)
    with serving(tiny, int(tiny_server.url.rpartition(":")[2])) as again:
        yield Killed(path, out, str(ended.value), again)


def test_a_killed_server_ends_the_run_before_the_broken_step_is_learned_from(killed: Killed) -> None:
    assert killed.why.startswith("the vLLM server at http://127.0.0.1:")
    assert "is gone" in killed.why
    assert killed.why.endswith("go on with --resume")
    assert newest_state(killed.out) == killed.out / "states" / f"checkpoint-{KILLED_IN}"
    assert [line["step"] for line in lines_of(killed.out)] == list(range(1, KILLED_IN + 1))
    assert read_manifest(killed.out).state == "stopped"


def test_with_another_server_the_run_goes_on_to_its_end(
    tiny: Path, killed: Killed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed.again.ready()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rl(killed.recipe, killed.out, resume=True, threads=1)
    check_figures(killed.out, steps=STEPS)
    check_last_step(killed.out, tiny)
    assert [one.state for one in read_manifest(killed.out).sessions] == ["stopped", "done"]
    assert not list(tmp_path.glob("cairn-rl-weights-*"))
