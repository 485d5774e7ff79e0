"""On-policy distillation: a teacher scores the policy's own tokens, and the policy comes closer to it."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from tokenizers import Tokenizer  # noqa: E402 - only where TRL is

from agent.errors import SetupError  # noqa: E402
from agent.sources.questions import GoldQuestion  # noqa: E402
from agent.trace import Answered, Step, Stopped, Trace  # noqa: E402
from agent.trace.samples import Sample  # noqa: E402
from lab.shipped import HUB  # noqa: E402
from tests.train import starts  # noqa: E402
from tests.train.rl.small import hot_checkpoint, recipe  # noqa: E402
from tests.train.rl.teacher_server import teacher_server  # noqa: E402
from train.models.causal import load_model  # noqa: E402
from train.rewards.base import Rewarded  # noqa: E402
from train.rewards.task import Task  # noqa: E402
from train.rl.batch import RolloutReward, WeightedRow  # noqa: E402
from train.rl.local_teacher import LocalTeacher  # noqa: E402
from train.rl.rollouts import RolloutResult  # noqa: E402
from train.rl.run import RlRun  # noqa: E402
from train.rl.tasks import Ask, protocols_of  # noqa: E402
from train.rl.teacher import Scored, TaughtRows, open_teacher, taught_rows  # noqa: E402
from train.rl.teacher_settings import TeacherSettings  # noqa: E402

pytestmark = pytest.mark.train

QUESTION = GoldQuestion(id="1", question="who?", answers=("Lina Orr",))


class Fixed:
    """A teacher to which every token has the same log-probability."""

    def __init__(self, logprob: float) -> None:
        self.logprob = logprob
        self.seen: list[WeightedRow] = []

    async def logprobs(self, rows: Sequence[WeightedRow]) -> list[tuple[float, ...]]:
        self.seen += rows
        return [tuple(self.logprob if weight else 0.0 for weight in row.weights) for row in rows]

    async def aclose(self) -> None:
        """Nothing is held."""


def scored(answer: str, advantage: float, ids: Sequence[int] = (5, 6, 7, 8), own: float = -0.5) -> Scored:
    """A rollout whose last two tokens are the policy's."""
    steps: list[Step] = [Answered(text=answer), Stopped(reason="answered")]
    trace = Trace(id="t", question="who?", protocol="multisearch", policy="p", steps=steps)
    mask = tuple(at >= len(ids) - 2 for at in range(len(ids)))
    sample = Sample("main", tuple(ids), mask, tuple(own if on else 0.0 for on in mask))
    ask = Ask(QUESTION, Task.of(QUESTION), protocols_of(recipe())[0], {})
    result = RolloutResult(ask, 0, trace, (sample,), Rewarded({"answer": 1.0}))
    return result, RolloutReward(0, {"answer": 1.0}), (advantage,)


def taught(teacher: Any, *all_scored: Scored, **said: Any) -> TaughtRows:
    settings = TeacherSettings(model="x", **said)
    return asyncio.run(taught_rows(teacher, settings, all_scored, level="token", all_rows=False))


def test_a_policy_tokens_advantage_is_the_teachers_logprob_minus_its_own() -> None:
    made = taught(Fixed(-0.2), scored("Lina Orr", 0.7))
    assert made.rows[0].advantages == pytest.approx((0, 0, 0.3, 0.3))
    assert (made.whole, made.apart, made.tokens) == (2, pytest.approx(-0.6), 2)
    both = taught(Fixed(-0.2), scored("Lina Orr", 0.7), weight=2.0, reward=0.5)
    assert both.rows[0].advantages == pytest.approx((0, 0, 0.95, 0.95))
    cut = taught(Fixed(-9999.0), scored("Lina Orr", 0.7), most=4.0)
    assert cut.rows[0].advantages == (0, 0, -4, -4)


def test_only_wrong_rollouts_imitate_and_right_ones_keep_their_rewards_advantage() -> None:
    teacher = Fixed(-0.2)
    made = taught(teacher, scored("Lina Orr", 0.7), scored("Someone", -0.7), scored("Lina Orr", 0.0), only_wrong=True)
    assert [row.advantages for row in made.rows] == [pytest.approx((0, 0, 0.3, 0.3)), (0, 0, 0.7, 0.7)]
    assert len(teacher.seen) == 1
    assert made.whole == 6, "a right rollout without an advantage counts in the average"


def test_a_masked_rollout_has_no_row_and_is_not_shown_to_the_teacher() -> None:
    result, _, advantages = scored("Lina Orr", 0.7)
    teacher = Fixed(-0.2)
    made = taught(teacher, (result, RolloutReward(0, None), advantages))
    assert (made.rows, made.whole, teacher.seen) == ([], 0, [])


@pytest.mark.slow
def test_over_all_next_tokens_the_gradient_is_that_of_the_reverse_divergence(tmp_path: Path) -> None:
    """Each next token once, by its probability: the mean over samples is exact, and can be compared with autograd's."""
    model: Any = load_model(
        starts.start("llama", tmp_path / "policy", seed=1, initializer_range=0.3), dtype=torch.float32
    )
    teacher = starts.start("llama", tmp_path / "teacher", seed=2, initializer_range=0.3)
    tokenizer = Tokenizer.from_file(str(teacher / "tokenizer.json"))
    prompt = (11, 12, 13)
    q = (
        load_model(teacher, dtype=torch.float32)(input_ids=torch.tensor([prompt]))
        .logits[0, -1]
        .log_softmax(-1)
        .detach()
    )
    p = model(input_ids=torch.tensor([prompt])).logits[0, -1].log_softmax(-1)
    divergence = (p.exp() * (p - q)).sum()
    divergence.backward()
    by_hand = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    model.zero_grad()

    logs = p.detach().tolist()
    every = [scored("x", 0.0, ids=(*prompt, token), own=logs[token]) for token in range(len(logs))]
    one_token = [(last_alone(one), reward, value) for one, reward, value in every]
    made = taught(LocalTeacher.load(str(teacher), tokenizer), *one_token, most=1000.0)
    by_id = {row.ids[-1]: row.advantages[-1] for row in made.rows}
    assert sum(-math.exp(logs[id]) * advantage for id, advantage in by_id.items()) == pytest.approx(
        divergence.item(), rel=1e-4
    )
    again = model(input_ids=torch.tensor([prompt])).logits[0, -1].log_softmax(-1)
    loss: Any = -sum(math.exp(logs[id]) * advantage * again[id] for id, advantage in by_id.items())
    loss.backward()
    for name, weight in model.named_parameters():
        assert torch.allclose(weight.grad, by_hand[name], atol=1e-6 + 1e-3 * by_hand[name].abs().max().item()), name


def last_alone(result: RolloutResult) -> RolloutResult:
    """The rollout with its last token alone as the policy's."""
    (sample,) = result.samples
    mask = tuple(at == len(sample.ids) - 1 for at in range(len(sample.ids)))
    logprobs = tuple(value if on else 0.0 for value, on in zip(sample.logprobs, mask, strict=True))
    return replace(result, samples=(replace(sample, mask=mask, logprobs=logprobs),))


def test_a_served_teacher_says_what_the_same_model_says_here(tmp_path: Path) -> None:
    rows = [WeightedRow((5, 9, 300, 7), (0.0, 1.0, 0.0, 1.0), (0.0,) * 4, (0.0,) * 4, 0)]
    rows.append(WeightedRow((5, 9, 4), (0.0, 0.0, 1.0), (0.0,) * 3, (0.0,) * 3, 0))
    with teacher_server(HUB) as served:
        small = recipe(teacher={"model": "teacher", "base_url": served.url})
        there = asyncio.run(_logprobs(small, rows))
    here = asyncio.run(_logprobs(recipe(teacher={"model": str(HUB)}), rows))
    for one, other in zip(there, here, strict=True):
        assert one == pytest.approx(other, abs=1e-4)
    assert [bool(value) for value in here[0]] == [False, True, False, True]


async def _logprobs(small: Any, rows: Sequence[WeightedRow]) -> list[tuple[float, ...]]:
    teacher = await open_teacher(small)
    try:
        return await teacher.logprobs(rows)
    finally:
        await teacher.aclose()


def test_a_teacher_of_another_vocabulary_is_refused(tmp_path: Path) -> None:
    other = starts.start("llama", tmp_path / "other")
    with pytest.raises(SetupError, match="another vocabulary"):
        asyncio.run(open_teacher(recipe(teacher={"model": str(other)})))
    with teacher_server(other) as served, pytest.raises(SetupError, match="another vocabulary"):
        asyncio.run(open_teacher(recipe(teacher={"model": "other", "base_url": served.url})))


def test_a_server_without_logprobs_of_prompts_is_refused() -> None:
    with teacher_server(HUB) as served:
        served.scores = False
        with pytest.raises(SetupError, match="gives no log-probabilities of a prompt's tokens"):
            asyncio.run(open_teacher(recipe(teacher={"model": "teacher", "base_url": served.url})))


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"rollout": {"temperature": 0.7}}, "temperature 1"), ({"learning": {"name": "dapo"}}, "resample = 0")],
)
def test_a_recipe_whose_samples_a_teacher_cannot_use_is_refused(changes: Mapping[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        recipe(teacher={"model": "x"}, **changes)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_policy_comes_closer_to_a_served_teacher_and_one_that_dies_ends_the_run_with_a_sentence(
    tmp_path: Path,
) -> None:
    torch.set_num_threads(1)
    apart: list[float] = []
    with teacher_server(HUB) as served:
        small = recipe(
            9,
            start=str(hot_checkpoint(tmp_path / "hot", heat=0.6)),
            teacher={"model": "teacher", "base_url": served.url},
            rollout={"engine": "transformers"},
            learning={"overlong": None},
            optimizer={"lr": 3e-4},
        )

        def on_step(step: int, figures: Mapping[str, float]) -> None:
            apart.append(figures["trainer/teacher_kl"])
            if step == 6:
                served.stop()

        with pytest.raises(SetupError, match=r"the teacher failed: no server at .*; then go on with --resume"):
            RlRun(small, tmp_path / "run", threads=1).go(on_step)
    assert len(apart) == 6
    assert sum(apart[-2:]) < 0.6 * sum(apart[:2]), apart
    assert (tmp_path / "run" / "states" / "checkpoint-6").is_dir()
