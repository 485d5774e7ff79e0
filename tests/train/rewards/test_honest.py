"""What closing the cheats costs the honest: the oracle's rollouts on the little world, printed beside ours."""

import asyncio
from itertools import islice

import pytest

from tests.train.sft.test_episodes import episodes, rollout
from train.evaluation.questions import world_questions
from train.rewards import RewardTools, Task, reward_of

QUESTIONS = 25


class Extracts:
    """A reader that finds a gold answer where it stands."""

    def __init__(self) -> None:
        self.answers: tuple[str, ...] = ()

    async def read(self, question: str, evidence: str) -> str | None:
        return next((answer for answer in self.answers if answer in evidence), "unknown")


def means(name: str, protocol: str, **printed: object) -> tuple[dict[str, float], dict[str, float]]:
    """The mean of each part: as printed, and in ours."""
    reader = Extracts()
    rewards = [
        reward_of(name, settings, tools=RewardTools(reader=reader))
        for settings in ({"variant": "printed", **printed}, {})
    ]
    sums = [dict.fromkeys(reward.parts, 0.0) for reward in rewards]
    for question, made in islice(episodes(protocol), QUESTIONS):
        trace, task = rollout(question, made, protocol), Task.of(world_questions([question])[0])
        reader.answers = task.answers
        for reward, total in zip(rewards, sums, strict=True):
            found = asyncio.run(reward.score(trace, task, progress=1.0))
            assert found is not None
            for part, value in found.parts.items():
                total[part] += value / QUESTIONS
    return sums[0], sums[1]


@pytest.mark.train
@pytest.mark.parametrize(
    ("name", "protocol", "printed", "shares"),
    [
        ("multisearch", "cairn", {}, {"answer": 1.0, "query": 0.75, "merge": 0.75}),
        ("multisearch", "multisearch", {}, {"answer": 1.0, "query": 0.75, "merge": 0.75}),
        ("dag", "dag", {"answer": "f1"}, {"answer": 1.0, "format": 1.0, "plan": 1.0}),
        ("evidence", "evidence", {}, {"answer": 1.0, "evidence": 0.9, "format": 1.0}),
        ("kg", "kg", {}, {"accuracy": 1.0, "gain": 0.9}),
    ],
)
def test_ours_leaves_the_oracle_nearly_all_of_what_is_printed(
    name: str, protocol: str, printed: dict[str, object], shares: dict[str, float]
):
    as_printed, ours = means(name, protocol, **printed)
    for part, share in shares.items():
        assert ours[part] >= share * as_printed[part] - 1e-9, (part, as_printed, ours)


@pytest.mark.train
def test_the_oracle_of_reflect_gets_more_in_ours_which_lets_it_write_of_and_in():
    as_printed, ours = means("reflect", "reflect", right="em")
    assert as_printed["format"] == ours["format"] == pytest.approx(1.0)
    assert ours["search"] > as_printed["search"]
    assert ours["answer"] >= as_printed["answer"]
