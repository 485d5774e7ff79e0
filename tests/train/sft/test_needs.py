"""What a run foretells of its memory and its time, beside what it takes."""

import json
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("peft")

from tests.train.apart import begun  # noqa: E402 - only where torch is
from tests.train.peak import write_peak  # noqa: E402
from tests.train.starts import recipe, rows_file, start, written  # noqa: E402
from train.sft.needs import Activations, MemoryNeed, Speed, activations, memory, memory_of, speed_of  # noqa: E402
from train.sft.run import SftRun  # noqa: E402

pytestmark = pytest.mark.train

LARGER = {"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 8, "num_attention_heads": 8}
"""A model large enough for its own part of the memory to be seen beside the libraries'."""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not show a process's peak")
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("rank", "bf16", "again"),
    [
        (8, True, False),  # every two of the settings in all four ways
        (0, False, False),
        (0, True, True),
        (8, False, True),
    ],
)
def test_the_memory_that_is_foretold_is_about_what_a_run_takes(
    rank: int, bf16: bool, again: bool, tmp_path: Path
) -> None:
    begin = start("llama", tmp_path / "start", **LARGER, num_key_value_heads=4)
    settings = {"tokens": 5000, "batch_tokens": 4000, "bf16": bf16, "gradient_checkpointing": again}
    file = written(recipe(begin, rows_file(tmp_path), adapter=rank, optimizer=settings), tmp_path)
    process = begun(write_peak, file, tmp_path / "run", tmp_path / "said.json")
    process.join()
    assert process.exitcode == 0, "standard error has what went wrong"
    said = json.loads((tmp_path / "said.json").read_text(encoding="utf-8"))
    program = said["program"] - 150e6  # without what it will grow by
    took = said["peak"] - program - said["weights"]
    assert 0.5 < (said["more"] + 150e6) / took < 2, said


def test_weights_gradients_and_optimizer_are_counted_to_the_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(1)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    begin, rows = start("llama", tmp_path / "start"), rows_file(tmp_path)
    every = memory_of(SftRun(recipe(begin, rows), tmp_path / "all"))
    assert every.parameters == every.trained
    assert (every.weights, every.gradients, every.optimizer) == tuple(every.parameters * part for part in (4, 4, 8))
    adapter = memory_of(SftRun(recipe(begin, rows, adapter=8, optimizer={"bf16": True}), tmp_path / "adapter"))
    assert adapter.parameters - adapter.trained == every.parameters
    assert adapter.weights == 2 * every.parameters + 4 * adapter.trained
    assert (adapter.gradients, adapter.optimizer) == (4 * adapter.trained, 8 * adapter.trained)
    muon = memory_of(SftRun(recipe(begin, rows, optimizer={"muon_lr": 1e-3}), tmp_path / "muon"))
    assert muon.gradients == every.gradients
    assert every.optimizer / 2 < muon.optimizer < every.optimizer


def test_the_largest_batch_counts_and_computing_again_makes_it_smaller(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    begin, rows = start("llama", tmp_path / "start", num_hidden_layers=6), rows_file(tmp_path)
    found: dict[tuple[int, bool], MemoryNeed] = {}
    for size in (800, 3000):
        for again in (False, True):
            settings = {"batch_tokens": size, "gradient_checkpointing": again}
            run = SftRun(recipe(begin, rows, optimizer=settings), tmp_path / f"{size}{again}")
            found[size, again] = memory_of(run)
            assert run.model.is_activation_checkpointing == again
    assert found[3000, False].rows * found[3000, False].length > 2 * found[800, False].rows * found[800, False].length
    assert found[3000, False].activations > 2 * found[800, False].activations
    assert found[3000, True].activations < found[3000, False].activations / 2


def test_what_is_kept_is_found_by_rows_of_three_lengths() -> None:
    class Squares(torch.nn.Module):
        """Keeps a state of 8 floats a token, one of `square` a pair of tokens, and 100 floats in any case."""

        def forward(self, ids: Any) -> Any:
            rows, length = ids.shape
            wide = torch.ones(rows, length, 8, requires_grad=True)
            square = torch.ones(rows, length, length, requires_grad=True)
            fixed = torch.ones(100, requires_grad=True)
            return (wide * wide).sum() + (square * square).sum() + (fixed * fixed).sum()

    model = Squares()
    found = activations(model, model, vocabulary=10, longest=400, device=torch.device("cpu"))
    assert (found.fixed, found.linear, found.square) == (400, 32, 4)
    assert found.of(2, 10) == 400 + 2 * (320 + 400)
    assert found.shared(4) == Activations(100, 8, 1)


def test_weights_are_no_activations_and_short_contexts_are_measured_within() -> None:
    model = torch.nn.Embedding(10, 4)

    def forward(ids: Any) -> Any:
        assert ids.shape[1] <= 9
        return model(ids) @ model.weight.T

    found = activations(forward, model, vocabulary=10, longest=9, device=torch.device("cpu"))
    assert (found.fixed, found.square) == (0, 0)
    assert found.linear == 8 + 16, "an id, and what the embedding gave"


def test_the_sentences_say_what_to_do_where_memory_is_short() -> None:
    model = torch.nn.Linear(1000, 1000)
    kept = Activations(0, 1e6, 0)
    said: dict[str, Any] = {"vocabulary": 100, "optimizer": 8e6, "gradients": 4e6, "bf16": False, "recomputed": None}
    enough = memory(model, kept, [(2, 10, 5), (1, 30, 5)], device=torch.device("cpu"), **said)
    assert (enough.rows, enough.length, enough.activations) == (1, 30, (30e6 + 5 * 100 * 12) * 1.5)
    assert enough.sentences()[0] == "trains 1.0 M of 1.0 M parameters (100.0%)"
    assert "activations of the largest batch (1 rows of 30 tokens) 45 MB" in enough.sentences()[1]
    assert len(enough.sentences()) == 2
    much = memory(model, kept, [(1000, 10**6, 5)], device=torch.device("cpu"), **said)
    assert "make batch_tokens smaller" in much.sentences()[2]


@pytest.mark.parametrize(
    ("tokens", "rate", "said"), [(100, 10, "10 s"), (60_000, 100, "10 min"), (6_000_000, 200, "8 h 20 min")]
)
def test_time_is_shown_in_the_unit_that_fits(tokens: int, rate: float, said: str) -> None:
    assert f"about {said} for {tokens:,} tokens at {rate} a second" in Speed(rate, tokens).sentence()


def test_looking_ahead_changes_nothing_that_is_learned(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    begin, rows = start("llama", tmp_path / "start"), rows_file(tmp_path)
    ended: list[dict[str, Any]] = []
    for look in (False, True):
        run = SftRun(recipe(begin, rows, adapter=4, optimizer={"tokens": 4000}), tmp_path / str(look))
        if look:
            memory_of(run)
            speed = speed_of(run)
            assert speed.tokens_left == 4000
            assert speed.tokens_per_second > 0
        assert run.run(lambda _: None)
        ended.append(run.begun.state())
    assert all(torch.equal(ended[0][name], ended[1][name]) for name in ended[0])
