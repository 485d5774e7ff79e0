"""Information gain: in which contexts the answer is looked up, what the model says of it, and what turns get for it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from agent.loop.agent import Agent, Budgets  # noqa: E402 - only where TRL is
from agent.policies.scripted import ScriptedPolicy  # noqa: E402
from agent.protocols import TextProtocol, protocol_named  # noqa: E402
from agent.protocols.chat import CHAT_TEMPLATES  # noqa: E402
from agent.sources.questions import GoldQuestion  # noqa: E402
from agent.trace.samples import to_samples  # noqa: E402
from tests.train.rewards.rollouts import SOURCES, TASK, said  # noqa: E402
from tests.train.rl.small import PAIR, hot_checkpoint, recipe  # noqa: E402
from train.rewards.base import Rewarded  # noqa: E402
from train.rewards.task import Task  # noqa: E402
from train.rl import run as run_module  # noqa: E402
from train.rl.adapter import RlTrainer  # noqa: E402
from train.rl.batch import RolloutReward, WeightedRow, by_length, informative_rollouts, turn_advantages  # noqa: E402
from train.rl.gain import answer_rows, gain_credit  # noqa: E402
from train.rl.rollouts import RolloutResult  # noqa: E402
from train.rl.run import RlRun  # noqa: E402
from train.rl.tasks import Ask  # noqa: E402
from train.rl.turns import TurnCredit  # noqa: E402

pytestmark = pytest.mark.train

TARN, LINA = "<search>Tarn Harbour</search>", "<search>Lina Orr</search>"
PLAIN = protocol_named("multisearch")
CHAT = PLAIN.model_copy(
    update={
        "chat": CHAT_TEMPLATES["chatml"],
        "deliver": "user",
        "prompt": "{question}",
        "system": "",
        "begins": "<think>",
        "wrapper": "<result>\n{passages}\n</result>",
    }
)


def _result(*turns: str, protocol: TextProtocol = PLAIN, task: Task = TASK, masked: bool = False) -> RolloutResult:
    """A rollout of the real loop whose policy says `turns`; a token is a byte."""
    agent = Agent(ScriptedPolicy(turns), protocol, SOURCES, Budgets())
    trace = asyncio.run(agent.run(agent.new_trace(task.question)))
    question = GoldQuestion(id="q", question=task.question, answers=("x",))
    ask = Ask(question, task, protocol, SOURCES)
    if masked:
        return RolloutResult(ask, 0, trace, (), None)
    return RolloutResult(ask, 0, trace, tuple(to_samples(trace)), Rewarded({"answer": 0.0}))


def _texts(result: RolloutResult) -> list[tuple[str, str]]:
    """Of each row what is only read, and what is looked up."""
    return [(_text(row, weight=0.0), _text(row, weight=1.0)) for row in answer_rows(result, ScriptedPolicy([]))]


def _text(row: WeightedRow, *, weight: float) -> str:
    return bytes(id for id, own in zip(row.ids, row.weights, strict=True) if own == weight).decode()


def test_the_answer_is_looked_up_before_the_first_turn_and_behind_each_observation() -> None:
    result = _result(TARN, LINA, said("Rome"))
    prompt, first, second = (segment.text for segment in result.trace.segments if segment.by != "policy")
    before = prompt if prompt.endswith("\n") else f"{prompt}\n"
    lines = ["" if text.endswith("\n") else "\n" for text in (first, second)]
    assert _texts(result) == [
        (f"{before}<answer>", "Trieste"),
        (f"{prompt}{TARN}{first}{lines[0]}<answer>", "Trieste"),
        (f"{prompt}{TARN}{first}{LINA}{second}{lines[1]}<answer>", "Trieste"),
    ]


def test_in_a_chat_the_turn_that_the_loop_begins_is_closed_first() -> None:
    before, after = _texts(_result(f"Hm.</think>{LINA}", f"So.</think>{said('Rome')}", protocol=CHAT))
    assert before[0].endswith("<|im_start|>assistant\n<think></think>\n<answer>")
    assert after[0].endswith("</result><|im_end|>\n<|im_start|>assistant\n<think></think>\n<answer>")


def test_an_answer_in_a_box_is_looked_up_in_its_box() -> None:
    kg = protocol_named("kg")
    found = _texts(_result(f"<think>I know.</think><answer>{chr(92)}boxed{{Rome}}</answer>", protocol=kg))
    assert [text[0].endswith("<answer>\\boxed{") for text in found] == [True]
    assert [text[1] for text in found] == ["Trieste"]


def test_nothing_is_looked_up_for_a_masked_rollout_or_a_question_without_an_answer() -> None:
    assert _texts(_result(said("Rome"), masked=True)) == []
    assert _texts(_result(said("Rome"), task=Task(question="Where?", answers=(), unanswerable=True))) == []


def test_a_turn_gains_what_its_observation_adds_and_the_last_one_nothing() -> None:
    results = [
        _result(TARN, LINA, said("Rome")),
        _result(said("Rome"), masked=True),
        _result(said("Rome")),
        _result(TARN, said("Rome"), task=Task(question="Where?", answers=(), unanswerable=True)),
    ]
    found = gain_credit(results, ScriptedPolicy([]), lambda rows: [0.25, 0.125, 0.75, 0.5][: len(rows)])
    assert [one.rewards for one in found] == [(-0.125, 0.625, 0.0), (), (0.0,), (0.0, 0.0)]
    figures = {"answer_probability_first": 0.25, "answer_probability_last": 0.75, "information_gain": 0.25}
    assert [one.figures for one in found] == [
        figures,
        {},
        {"answer_probability_first": 0.5, "answer_probability_last": 0.5},
        {},
    ]


def _one(group: int, reward: float | None, *turns: float) -> RolloutReward:
    return RolloutReward(group, None if reward is None else {"answer": reward}, TurnCredit(turns))


def test_gains_and_outcomes_are_normalised_together_and_later_turns_count_for_earlier_ones() -> None:
    """Rewards .4 1 and 0 -.2 0, mean .24: .16 .76 and -.24 -.44 -.24, then each turn and half of what follows."""
    settings = {"divide_by_std": False, "credit": {"information_gain": {"discount": 0.5}}}
    ones = [_one(0, 1.0, 0.4, 0.0), _one(0, 0.0, 0.0, -0.2, 0.0), _one(0, None)]
    found = turn_advantages(ones, recipe(learning=settings).learning, {})
    assert found[0] == pytest.approx((0.16 + 0.38, 0.76))
    assert found[1] == pytest.approx((-0.24 - 0.28, -0.44 - 0.12, -0.24))
    assert found[2] == (0.0,)


def test_a_group_with_equal_outcomes_learns_from_its_gains() -> None:
    learning = recipe(learning={"credit": {"information_gain": {}}}).learning
    ones = [_one(0, 0.0, 0.25, 0.0), _one(0, 0.0, 0.0), _one(1, 0.0, 0.0, 0.0), _one(1, 0.0, 0.0)]
    assert informative_rollouts(ones, learning, {}) == [True, True, False, False]
    # rewards .25 0 0: their deviation is .25 / sqrt(3), their mean .25 / 3
    first, second = turn_advantages(ones, learning, {})[:2]
    unit = 0.25 / 3 / (0.25 / 3**0.5 + 1e-4)
    assert (first, second) == (pytest.approx((2 * unit - unit, -unit)), pytest.approx((-unit,)))


def test_rows_of_like_length_share_a_pass_that_has_room_for_them() -> None:
    assert by_length([5, 1, 4, 9, 2], most=10) == [[1, 4], [2, 0], [3]]
    assert by_length([20], most=10) == [[0]]


class Recorded(RlTrainer):
    """Keeps the probabilities that it computed, and what the bare model says of each row alone."""

    def probabilities(self, rows: Sequence[WeightedRow]) -> list[float]:
        found = super().probabilities(rows)
        Recorded.seen = list(zip(found, map(self._alone, rows), strict=True))  # type: ignore[attr-defined]
        return found

    def _alone(self, row: WeightedRow) -> float:
        with torch.no_grad():
            logits = cast(Any, self).bare(input_ids=torch.tensor([row.ids])).logits[0, :-1]
        logs = logits.log_softmax(-1).gather(-1, torch.tensor(row.ids)[1:, None])[:, 0]
        return logs[torch.tensor(row.weights[1:]) > 0].mean().exp().item()


@pytest.mark.slow
def test_a_run_looks_the_answers_up_with_the_weights_that_it_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hot = str(hot_checkpoint(tmp_path / "hot"))
    small = recipe(1, start=hot, rollout=PAIR, learning={"credit": {"information_gain": {"discount": 0.9}}})
    monkeypatch.setattr(run_module, "RlTrainer", Recorded)
    lines: list[Any] = []
    assert RlRun(small, tmp_path / "run", threads=1).go(lambda _, figures: lines.append(figures))
    seen: list[tuple[float, float]] = Recorded.seen  # type: ignore[attr-defined]
    assert len(seen) >= 4
    for found, alone in seen:
        assert found == pytest.approx(alone, rel=1e-3)
    assert len({round(alone, 6) for _, alone in seen}) > 1
    assert -1 <= lines[0]["trainer/information_gain"] <= 1
    assert 0 < lines[0]["trainer/answer_probability_first"] < 1
    assert 0 < lines[0]["trainer/answer_probability_last"] < 1
    assert lines[0]["trainer/rows"] > 0
