"""Agent Lightning's own runner runs Cairn's agent; a server with the shipped checkpoint answers for the model."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

import pytest

from agent.policies.embedded import EmbeddedPolicy
from agent.sources.questions import GoldQuestion
from tests.shipped import CT2, HUB
from tests.train.environments.model_server import ModelServer, model_server
from tests.train.environments.trainers import MARKS, python_of, run
from train.environments.rollouts import Environment
from train.environments.settings import read_settings

pytestmark = MARKS

SETTINGS: Final[dict[str, Any]] = {
    "tasks": 4,
    "data": {"split": "dev", "questions_per_world": 4, "people": 20},
    "reward": {"name": "outcome", "settings": {"answer": "em"}},
}
IDS: Final = SETTINGS | {"endpoint": "completions", "tokenizer": str(HUB)}


@cache
def tasks() -> list[GoldQuestion]:
    return Environment(read_settings(SETTINGS)).tasks


def script(messages: Sequence[dict[str, str]]) -> str | None:
    """A general model that knows the answer to the first question, and never searches; for the last one it is gone."""
    return None if messages[1]["content"] == tasks()[-1].question else f"<answer>{tasks()[0].answers[0]}</answer>"


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with model_server(script, policy=EmbeddedPolicy.load(CT2), broken=tasks()[-1].question) as served:
        yield served


@pytest.fixture(scope="module")
def seen(server: ModelServer, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of it. All runs share one start of Agent Lightning."""
    python = python_of(pytestconfig, "lightning")
    folder = tmp_path_factory.mktemp("lightning")
    return run(python, "run_lightning.py", folder, url=server.url, ids=IDS, chat=SETTINGS)


def whole(seen: dict[str, Any]) -> list[dict[str, Any]]:
    return [rollout for rollout in seen["rollouts"] if rollout["question"] != tasks()[-1].question]


def test_each_turn_is_a_call_with_the_very_ids_that_the_server_sampled(server: ModelServer, seen: dict[str, Any]):
    sampled = {(tuple(prompt), tuple(response)) for prompt, response in server.sampled}
    for rollout in whole(seen["ids"]):
        assert rollout["status"] == "succeeded"
        assert len(rollout["responses"]) > 1
        for prompt, response, logprobs in zip(
            rollout["prompts"], rollout["responses"], rollout["logprobs"], strict=True
        ):
            assert any(got == tuple(prompt) and gave[: len(response)] == tuple(response) for got, gave in sampled)
            assert logprobs == len(response)


def test_the_next_prompt_is_all_that_was_said_and_what_the_search_found(server: ModelServer, seen: dict[str, Any]):
    assert server.policy is not None
    codec = server.policy.checkpoint.codec
    for rollout in whole(seen["ids"]):
        begun = rollout["prompts"][0] + rollout["responses"][0]
        assert rollout["prompts"][1][: len(begun)] == begun
        assert "<information>" in codec.decode(rollout["prompts"][1][len(begun) :])


def test_the_reward_is_cairns_and_goes_to_the_last_turn(seen: dict[str, Any]):
    rewards = [rollout["reward"] for rollout in whole(seen["ids"])]
    assert 1.0 in rewards
    for rollout in whole(seen["ids"]):
        assert rollout["rewards"] == [None] * (len(rollout["rewards"]) - 1) + [rollout["reward"]]


def test_a_rollout_whose_engine_failed_is_a_failed_attempt_without_a_reward(seen: dict[str, Any]):
    for found in (seen["ids"], seen["chat"]):
        [rollout] = [one for one in found["rollouts"] if one["question"] == tasks()[-1].question]
        assert (rollout["status"], rollout["attempts"]) == ("failed", 2)
        assert rollout["reward"] is None
        assert rollout["responses"] == []
        assert found["why"].startswith("Cairn masked the rollout: a search or the engine failed: ")
        assert "the engine is gone" in found["why"]


def test_a_general_model_is_called_by_messages_and_rewarded(server: ModelServer, seen: dict[str, Any]):
    assert [rollout["reward"] for rollout in whole(seen["chat"])] == [
        float(task.answers[0] == tasks()[0].answers[0]) for task in tasks()[:-1]
    ]
    assert all("<search>" in chat["messages"][0]["content"] for chat in server.chats)


def test_wrong_settings_are_one_sentence(seen: dict[str, Any]):
    assert seen["refused"].startswith("the settings of the environment cannot be used: protocl: ")
