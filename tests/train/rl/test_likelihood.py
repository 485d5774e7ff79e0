"""LLDS's term in the loss of a real trainer: beside TRL's, by the same average, and only once the weights have moved."""

from pathlib import Path
from typing import Any, cast

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from tests.fixtures.make_engine import make_hub  # noqa: E402 - only where TRL is
from tests.train.rl.small import brief, recipe  # noqa: E402
from train.rl import run as run_module  # noqa: E402
from train.rl.adapter import RlTrainer  # noqa: E402
from train.rl.run import RlRun  # noqa: E402

pytestmark = pytest.mark.train

WEIGHT = 0.5


class Compared(RlTrainer):
    """Computes each loss with the term and without it, and keeps how much of it the term is by hand."""

    found: list[tuple[int, float, float]]
    """Micro-batch of the batch; difference of the losses; what it must be."""

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        mine, plain = cast(Any, self), cast(Any, super(RlTrainer, self))
        place = mine._step % (mine._micro_batches * mine.num_iterations)
        with torch.no_grad():
            whole = super()._compute_loss(model, inputs).item()
            without = plain._compute_loss(model, inputs).item()
            Compared.found.append((place, whole - without, self._by_hand(inputs)))
        return super()._compute_loss(model, inputs)

    def _by_hand(self, inputs: Any) -> float:
        """Row by row and token by token."""
        mine, total = cast(Any, self), 0.0
        new = mine._newest
        for row in range(len(new)):
            tokens = [
                (inputs["tool_mask"][row, at].item(), (inputs["old_per_token_logps"][row, at] - new[row, at]).item())
                for at in range(new.shape[1])
                if inputs["tool_mask"][row, at] > 0 and inputs["advantages"][row, at] >= 0
            ]
            if sum(lost for _, lost in tokens) > 0:
                total += sum(weight * max(0.0, lost) for weight, lost in tokens)
        updates = mine.args.steps_per_generation / mine.current_gradient_accumulation_steps
        return WEIGHT * total / inputs["num_items_in_batch"].item() * updates


def test_the_term_is_added_to_each_update_but_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = make_hub(tmp_path / "start")
    learning = {"credit": {"keep_likelihood": WEIGHT}}
    small = brief(start, 2, learning=learning, optimizer={"minibatches": 2, "micro_batches": 1, "lr": 1e-2})
    Compared.found = []
    monkeypatch.setattr(run_module, "RlTrainer", Compared)
    lines: list[Any] = []
    assert RlRun(small, tmp_path / "run", threads=1).go(lambda _, figures: lines.append(figures))
    assert [place for place, _, _ in Compared.found] == [0, 1] * 2
    assert all(difference == 0 for place, difference, _ in Compared.found if place == 0)
    later = [(difference, by_hand) for place, difference, by_hand in Compared.found if place == 1]
    assert max(by_hand for _, by_hand in later) > 0
    for difference, by_hand in later:
        assert difference == pytest.approx(by_hand, rel=1e-3, abs=1e-6)
    for line in lines:
        assert 0 <= line["trainer/likelihood_fallen_share"] <= 1
        assert line["trainer/likelihood_fall"] >= 0
    assert any(line["trainer/likelihood_fall"] > 0 for line in lines)


def test_a_single_update_from_a_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="set `minibatches` or `epochs` above 1"):
        recipe(learning={"credit": {"keep_likelihood": 0.1}})
