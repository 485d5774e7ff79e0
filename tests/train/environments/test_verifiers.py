"""verifiers' own evaluation runs Cairn's environment: its code drives, and a server answers for the model."""

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from agent.policies.embedded import EmbeddedPolicy
from tests.shipped import CT2, HUB
from tests.train.environments.model_server import TEMPLATE, ModelServer, logprob_of, model_server
from tests.train.environments.trainers import MARKS, python_of, run, write_questions

pytestmark = MARKS

DOCUMENTS: Final = {
    "Winter Harbour": "Winter Harbour is a 1987 drama film that was directed by Paula Ferri.",
    "Norvik Verlag": "Norvik Verlag is a publishing house in Oslo. It was founded by Greta Sund.",
    "Port Elling": "Port Elling is a town with 12,400 inhabitants. Its mayor is Tomas Reyk.",
}
RIGHT: Final = "Who directed Winter Harbour?"
WRONG: Final = "Who founded Norvik Verlag?"
BROKEN: Final = "Who is the mayor of Port Elling?"
QUESTIONS: Final = {RIGHT: "Paula Ferri", WRONG: "Greta Sund", BROKEN: "Tomas Reyk"}


def script(messages: Sequence[dict[str, str]]) -> str | None:
    """It searches, and reads the answer in what was found; once it reads badly, and once it is gone."""
    question, last = messages[1]["content"], messages[-1]["content"]
    if "<information>" not in last:
        return f"<think>I look it up.</think>\n<search>{question}</search>\nI made this up."
    if question == BROKEN:
        return None
    found = re.findall(r"(\w+ \w+)\b[^\n]* (directed|founded) by (\w+ \w+)\.", last)
    title, what, name = next(one for one in found if one[0] in question)
    answer = name if question == RIGHT else "Ida Kranz"
    return f"<merge>{title} was {what} by {name} [1].</merge>\n<answer>{answer}</answer>"


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with model_server(script, policy=EmbeddedPolicy.load(CT2)) as served:
        yield served


@pytest.fixture(scope="module")
def seen(server: ModelServer, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of it. All runs share one start of verifiers."""
    folder = tmp_path_factory.mktemp("verifiers")
    settings = {
        "protocol": "multisearch",
        "data": write_questions(folder, DOCUMENTS, QUESTIONS),
        "reward": {"name": "multisearch", "weights": {"merge": 2.0}},
    }
    python = python_of(pytestconfig, "verifiers")
    renderer = {"renderer": {"name": "default"}, "renderer_model_name": str(with_template(folder / "model"))}
    return run(python, "evaluate_verifiers.py", folder, url=server.url, settings=settings, renderer=renderer)


def with_template(folder: Path) -> Path:
    """The shipped checkpoint's tokenizer with a template for chats."""
    shutil.copytree(HUB, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    path = folder / "tokenizer_config.json"
    fields = json.loads(path.read_text(encoding="utf-8")) | {"chat_template": TEMPLATE}
    path.write_text(json.dumps(fields), encoding="utf-8")
    return folder


def of(rollouts: list[dict[str, Any]], question: str) -> dict[str, Any]:
    [found] = [rollout for rollout in rollouts if rollout["question"] == question]
    return found


def test_a_right_answer_gets_each_part_of_cairns_reward_by_its_weight(seen: dict[str, Any]):
    rollout = of(seen["whole"], RIGHT)
    assert rollout["ok"]
    assert rollout["answer"] == "Paula Ferri"
    assert rollout["rewards"] == {"answer": 1.0, "query": 0.0, "merge": 0.2}
    assert rollout["reward"] == pytest.approx(1.2)
    assert (rollout["metrics"]["rounds"], rollout["metrics"]["searches"]) == (1.0, 1.0)


def test_a_wrong_answer_is_a_rollout_whose_reward_is_nothing(seen: dict[str, Any]):
    rollout = of(seen["whole"], WRONG)
    assert rollout["ok"]
    assert rollout["rewards"] == {"answer": 0.0, "query": 0.0, "merge": 0.0}
    assert not rollout["errors"]


def test_a_rollout_whose_engine_failed_is_an_error_of_verifiers_and_has_no_reward(seen: dict[str, Any]):
    rollout = of(seen["whole"], BROKEN)
    assert not rollout["ok"]
    assert rollout["rewards"] == {}
    assert rollout["errors"][-1][0] == "ProviderError"
    assert "the engine is gone" in rollout["errors"][-1][1]


def test_the_model_gets_cairns_rules_and_what_cairns_search_found(server: ModelServer, seen: dict[str, Any]):
    assert seen["whole"]
    chats = [chat["messages"] for chat in server.chats if chat["messages"][1]["content"] == RIGHT]
    [first, second] = [messages for messages in chats if len(messages) in (2, 4)][:2]
    assert "<search>" in first[0]["content"]
    assert [message["role"] for message in second] == ["system", "user", "assistant", "user"]
    assert second[2]["content"].endswith("</search>")
    assert DOCUMENTS["Winter Harbour"] in second[3]["content"]
    assert {tuple(chat["stop"]) for chat in server.chats} == {("</search>", "</answer>")}


def test_its_client_for_training_has_the_very_ids_of_each_turn(server: ModelServer, seen: dict[str, Any]):
    for question, reward in ((RIGHT, 1.2), (WRONG, 0.0)):
        rollout = of(seen["trained"], question)
        assert rollout["ok"]
        assert rollout["reward"] == pytest.approx(reward)
        assert len(rollout["sampled"]) == 2
        for turn in rollout["sampled"]:
            assert turn["ids"] in [response for _, response in server.sampled]
            assert turn["logprobs"] == [logprob_of(number) for number in turn["ids"]]
    assert of(seen["trained"], BROKEN)["rewards"] == {}


def test_what_is_trained_is_what_the_model_saw(server: ModelServer, seen: dict[str, Any]):
    whole = [prompt + response for prompt, response in server.sampled]
    for question in (RIGHT, WRONG):
        for branch in of(seen["trained"], question)["branches"]:
            assert branch in whole


def test_a_rollout_that_verifiers_ends_before_its_answer_is_not_scored(seen: dict[str, Any]):
    for rollout in seen["stopped"]:
        assert not rollout["ok"]
        assert rollout["rewards"] == {}
        assert "before Cairn could score it" in rollout["errors"][-1][1]


def test_wrong_settings_are_one_sentence(seen: dict[str, Any]):
    assert seen["refused"] == (
        "the settings of the environment cannot be used: protocl: there is no such field (see docs/environments.md)"
    )


def test_an_environment_without_cairn_says_what_to_do(seen: dict[str, Any]):
    assert "set `python` to the Python of an environment that has it" in seen["elsewhere"]
