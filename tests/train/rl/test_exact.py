"""The trainer computes what the rollouts sampled, learns from policy tokens alone, and from nothing else."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

import transformers  # noqa: E402 - only where TRL is

from lab.shipped import HUB  # noqa: E402
from tests.train.rl.small import hot_checkpoint, recipe  # noqa: E402
from train.rl import run as run_module  # noqa: E402
from train.rl.adapter import RlTrainer  # noqa: E402
from train.rl.batch import WeightedRow  # noqa: E402
from train.rl.recipe import RlRecipe  # noqa: E402
from train.rl.run import RlRun  # noqa: E402

pytestmark = [pytest.mark.train, pytest.mark.slow]


class Watched(RlTrainer):
    """Keeps the rows of a step, the gradient by token, and the gradient of the weights before the optimiser clips."""

    rows: Sequence[Sequence[WeightedRow]]
    whole: float
    weights: Mapping[str, Any]
    gradients: Mapping[str, Any]

    def __init__(self, recipe: RlRecipe, out: Path, provider: Any) -> None:
        super().__init__(recipe, out, provider)
        Watched.newest = self  # type: ignore[attr-defined]
        self.of_environment: list[float] = []
        self.of_policy: list[float] = []

    def _inputs(self, rows: Sequence[WeightedRow], batch: Any) -> Any:
        self.rows, self.whole = batch.micro_batches, batch.whole
        model = cast(Any, self).model
        self.weights = {name: tensor.detach().clone() for name, tensor in model.named_parameters()}
        return super()._inputs(rows, batch)

    def _get_per_token_logps_and_entropies(self, *said: Any, **also: Any) -> Any:
        result = super()._get_per_token_logps_and_entropies(*said, **also)
        if result[0].requires_grad:
            result[0].retain_grad()
        return result

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
        loss = super().training_step(model, inputs, num_items_in_batch)
        micro_batch = self._buffered_inputs[(self._step - 1) % self._micro_batches]
        newest = cast(Any, self)._newest
        gradient, real = newest.grad.abs(), micro_batch["completion_mask"] == 1
        self.of_environment += gradient[real & (micro_batch["tool_mask"] == 0)].tolist()
        self.of_policy += gradient[micro_batch["tool_mask"] > 0].tolist()
        self.gradients = {name: tensor.grad.clone() for name, tensor in model.named_parameters()}
        return loss


Done = tuple[Watched, Mapping[str, float]]


def _one_step(small: RlRecipe, out: Path) -> Done:
    """A whole run of one step, with its figures."""
    by_step: list[Mapping[str, float]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "RlTrainer", Watched)
        assert RlRun(small, out, threads=1).go(lambda _, figures: by_step.append(figures))
    return Watched.newest, by_step[-1]  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def hot(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(hot_checkpoint(tmp_path_factory.mktemp("hot") / "hub"))


@pytest.fixture(scope="module")
def with_tokens(hot: str, tmp_path_factory: pytest.TempPathFactory) -> Done:
    small = recipe(1, start=hot, protocols=("cairn",), learning={"loss": "token"}, optimizer={"micro_batches": 3})
    return _one_step(small, tmp_path_factory.mktemp("run") / "tokens")


@pytest.fixture(scope="module")
def with_rollouts(hot: str, tmp_path_factory: pytest.TempPathFactory) -> Done:
    small = recipe(1, start=hot, rollout={"engine": "transformers"}, optimizer={"micro_batches": 1})
    return _one_step(small, tmp_path_factory.mktemp("run") / "rollouts")


@pytest.fixture(scope="module")
def with_credit(hot: str, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Turns of a rollout have advantages of their own here."""
    small = recipe(1, start=hot, rollout={"group": 6, "rounds": 2}, learning={"credit": {"first_hit": 0.5}})
    return _one_step(small, tmp_path_factory.mktemp("run") / "credit")


@pytest.fixture(scope="module")
def with_teacher(hot: str, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Each token of a rollout has an advantage of its own here."""
    engine = {"engine": "transformers"}
    small = recipe(1, start=hot, teacher={"model": str(HUB)}, rollout=engine, optimizer={"micro_batches": 1})
    return _one_step(small, tmp_path_factory.mktemp("run") / "teacher")


BOTH = pytest.mark.parametrize("done", ["with_tokens", "with_rollouts"])


@BOTH
def test_the_ratio_before_the_first_update_is_one(done: str, request: pytest.FixtureRequest) -> None:
    """Of both engines that compute in float32, at the temperature of the trainer."""
    _, figures = request.getfixturevalue(done)
    assert figures["trainer/ratio_lowest"] > 0.98
    assert figures["trainer/ratio_highest"] < 1.02
    assert figures["trainer/logprob_difference_mean"] < 1e-4


@pytest.mark.parametrize("done", ["with_tokens", "with_rollouts", "with_teacher"])
def test_no_token_of_the_environment_has_a_gradient(done: str, request: pytest.FixtureRequest) -> None:
    trainer, _ = request.getfixturevalue(done)
    assert len(trainer.of_environment) > 300
    assert set(trainer.of_environment) == {0.0}
    assert max(trainer.of_policy) > 0


@pytest.mark.parametrize(
    "done", ["with_tokens", "with_rollouts", pytest.param("with_credit", marks=pytest.mark.slow), "with_teacher"]
)
def test_pieces_and_padding_change_no_gradient(done: str, request: pytest.FixtureRequest) -> None:
    """The gradient is that of the formula, computed row by row without padding."""
    trainer, _ = request.getfixturevalue(done)
    model: Any = trainer.model
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.copy_(trainer.weights[name])
    model.zero_grad()
    for row in (row for piece in trainer.rows for row in piece):
        ids = torch.tensor([row.ids])
        logprobs = model(input_ids=ids).logits[0, :-1].log_softmax(-1).gather(-1, ids[0, 1:, None])[:, 0]
        weights = torch.tensor(row.weights[1:]) * torch.tensor(row.advantages[1:])
        (-(logprobs * weights).sum() / trainer.whole).backward()
    for name, tensor in model.named_parameters():
        most = tensor.grad.abs().max().item()
        assert most > 0
        assert torch.allclose(tensor.grad, trainer.gradients[name], atol=0.01 * most), name


def test_a_teacher_gives_each_policy_token_its_own_advantage(with_teacher: Done) -> None:
    """The difference of the two models' log-probabilities, computed here from the rows alone."""
    trainer, figures = with_teacher
    model: Any = cast(Any, trainer).model
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.copy_(trainer.weights[name])
    auto: Any = transformers.AutoModelForCausalLM
    teacher = auto.from_pretrained(HUB, dtype=torch.float32).eval()
    apart: list[float] = []
    for row in (row for piece in trainer.rows for row in piece):
        ids = torch.tensor([row.ids])
        with torch.no_grad():
            p, q = (one(input_ids=ids).logits[0, :-1].log_softmax(-1) for one in (model, teacher))
        difference = (q - p).gather(-1, ids[0, 1:, None])[:, 0] * (torch.tensor(row.weights[1:]) > 0)
        assert torch.allclose(torch.tensor(row.advantages[1:]), difference.clamp(-10, 10), atol=2e-3)
        apart += (-difference[torch.tensor(row.weights[1:]) > 0]).tolist()
    assert figures["trainer/teacher_tokens"] == len(apart)
    assert figures["trainer/teacher_kl"] == pytest.approx(sum(apart) / len(apart), abs=1e-3)


def test_turns_of_one_row_have_advantages_of_their_own(with_credit: Done) -> None:
    trainer, figures = with_credit
    values = [{one for one in row.advantages if one} for piece in trainer.rows for row in piece]
    assert max(map(len, values)) > 1
    assert 0 < figures["trainer/first_hit_share"] <= 1
    assert figures["trainer/first_hit_wrong_share"] > 0


@BOTH
def test_logprobs_do_not_depend_on_the_loss_mask(done: str, request: pytest.FixtureRequest) -> None:
    trainer, _ = request.getfixturevalue(done)
    micro_batch = next(one for one in trainer._buffered_inputs if one["tool_mask"].sum() > 0)
    with torch.no_grad():
        before = trainer._logprobs(trainer.model, micro_batch)
        mask = 1 - micro_batch["tool_mask"].clamp(max=1)
        after = trainer._logprobs(trainer.model, {**micro_batch, "tool_mask": mask})
    assert torch.equal(before, after)
