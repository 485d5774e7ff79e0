"""Two processes of a supervised run that hold shares of the weights: they learn what one process with all of them does."""

import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest

torch = pytest.importorskip("torch")
safetensors: Any = pytest.importorskip("safetensors.torch")

from agent import cli  # noqa: E402 - only where torch is
from agent.errors import SetupError  # noqa: E402
from tests.train import starts  # noqa: E402
from train.common.process_group import ProcessGroup, run_in_processes  # noqa: E402
from train.common.recipe import SftRecipe  # noqa: E402
from train.sft.padding import collate  # noqa: E402
from train.sft.run import SftProgress, SftRun  # noqa: E402
from train.sft.sharding import check_sharded  # noqa: E402

pytestmark = pytest.mark.train


def recipe(folder: Path, kind: str = "llama", **optimizer: Any) -> SftRecipe:
    """Steps of three batches, which two processes cannot halve."""
    begin = folder / kind
    if not begin.exists():
        starts.start(kind, begin)
    settings = {"batches_per_step": 3, "adamw_lr": 1e-3, "tokens": 20_000} | optimizer
    return starts.recipe(begin, starts.rows_file(folder), optimizer=settings)


def gradients(process_group: ProcessGroup, made: SftRecipe, out: Path, *, sharded: bool) -> dict[str, Any]:
    """Of the first step, added up over all processes."""
    run: Any = SftRun(made, out, process_group, sharded=sharded)
    batches: list[Any] = next(run._steps())
    for _, examples in run.share(list(enumerate(batches))):
        run.backward(collate(examples, run.device), 100.0)
    grads = {name: weight.grad for name, weight in run.model.named_parameters()}
    return {name: grad.full_tensor() if sharded else grad for name, grad in grads.items()}


def held(process_group: ProcessGroup, made: SftRecipe, out: Path) -> tuple[int, int]:
    """Weights that this process holds, and those of the model."""
    run: Any = SftRun(made, out, process_group, sharded=True)
    weights = list(run.model.parameters())
    return sum(one.to_local().numel() for one in weights), sum(one.numel() for one in weights)


class Trained(NamedTuple):
    """What a process, or the first of two, has of three runs: of one step, of several, and one that was stopped."""

    gradients: list[dict[str, Any]]
    """Of two kinds of models; one gives its logits only as a whole."""
    held: tuple[int, int]
    done: list[bool]

    @classmethod
    def of(cls, process_group: ProcessGroup, made: SftRecipe, single: SftRecipe, other: SftRecipe, out: Path) -> Self:
        sharded = process_group.size > 1
        grads = [gradients(process_group, of, out / Path(of.start).name, sharded=sharded) for of in (made, other)]
        holds = held(process_group, made, out / "held") if sharded else (0, 0)

        def stop(progress: SftProgress) -> None:
            if progress.step == 2:
                signal.raise_signal(signal.SIGINT)

        runs = {"single": (single, None), "whole": (made, None), "stopped": (made, stop)}
        done = [
            SftRun(of, out / name, process_group, sharded=sharded).run(seen or (lambda _: None))
            for name, (of, seen) in runs.items()
        ]
        return cls(grads, holds, done)


def weights(out: Path) -> Mapping[str, Any]:
    return safetensors.load_file(out / "hub" / "model.safetensors")


def apart(one: Mapping[str, Any], two: Mapping[str, Any], start: Mapping[str, Any]) -> float:
    """How far two models lie apart, as a share of what the first one learned."""
    learned = sum(float((one[name] - begun).square().sum()) for name, begun in start.items())
    return (sum(float((one[name] - two[name]).square().sum()) for name in start) / learned) ** 0.5


@pytest.mark.slow
def test_two_processes_with_shares_of_the_weights_learn_what_one_learns_also_after_a_stop(tmp_path: Path) -> None:
    recipes = made, _, _ = recipe(tmp_path), recipe(tmp_path, tokens=100), recipe(tmp_path, "granite")
    alone = Trained.of(ProcessGroup(), *recipes, tmp_path / "alone")
    shared = run_in_processes(2, Trained.of, *recipes, tmp_path / "shared")
    assert shared.held[0] < 0.6 * shared.held[1]
    for one, two in zip(alone.gradients, shared.gradients, strict=True):
        for name, grad in one.items():
            torch.testing.assert_close(two[name], grad, rtol=1e-3, atol=1e-6)
    assert alone.done == shared.done == [True, True, False]
    before = safetensors.load_file(tmp_path / "llama" / "model.safetensors")
    for name in ("single", "whole"):
        assert apart(weights(tmp_path / "alone" / name), weights(tmp_path / "shared" / name), before) < 0.01, name
    stopped = tmp_path / "shared" / "stopped"
    assert {"__0_0.distcp", "__1_0.distcp", "run.json"} < {path.name for path in (stopped / "state").iterdir()}
    shutil.rmtree(stopped / "hub")
    command = ["train", "sft", "--recipe", str(starts.written(made, tmp_path)), "--out", str(stopped), "--resume"]
    assert cli.run([*command, "--processes", "2", "--shard"]) == 0
    unbroken = weights(tmp_path / "shared" / "whole")
    assert all(torch.equal(one, unbroken[name]) for name, one in weights(stopped).items())


def test_what_cannot_be_trained_in_shares_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="add --processes 2 or more"):
        check_sharded(recipe(tmp_path), 1)
    with pytest.raises(SetupError, match="write muon_lr = 0"):
        check_sharded(recipe(tmp_path, muon_lr=0.01), 2)
    with pytest.raises(SetupError, match="an adapter is small beside its model"):
        check_sharded(starts.recipe(tmp_path / "llama", starts.rows_file(tmp_path), adapter=4), 2)


def test_a_state_in_shares_is_not_gone_on_from_without_them(tmp_path: Path) -> None:
    (tmp_path / "run" / "state").mkdir(parents=True)
    with pytest.raises(SetupError, match="was saved with --shard: go on with it"):
        SftRun(recipe(tmp_path), tmp_path / "run").resume()
