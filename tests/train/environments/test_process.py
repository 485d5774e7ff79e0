"""The process of an environment, and what is refused before any model is called; no trainer is needed."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.errors import SetupError
from agent.policies.model_folder import read_about, write_about
from tests.shipped import HUB
from tests.train.environments.model_server import ModelServer, model_server
from tests.train.environments.trainers import PLANTED, ROOT
from train.environments.process import EnvironmentFailed, EnvironmentProcess, RolloutMasked, environment_of
from train.environments.rollouts import Environment
from train.environments.settings import read_settings

SMALL: dict[str, Any] = {"tasks": 2, "data": {"questions_per_world": 2, "people": 12, "split": "dev"}}


def script(messages: Sequence[dict[str, str]]) -> str | None:
    """It answers the first question, and fails at the second."""
    first = Environment(read_settings(SMALL)).tasks[0]
    return f"<answer>{first.answers[0]}</answer>" if messages[1]["content"] == first.question else None


@pytest.fixture
def server() -> Generator[ModelServer]:
    with model_server(script) as served:
        yield served


def test_a_policy_that_never_saw_dates_is_shown_none(tmp_path: Path) -> None:
    hub = Path(shutil.copytree(HUB, tmp_path / "hub"))
    settings = read_settings(SMALL | {"endpoint": "completions", "tokenizer": str(hub)})
    assert Environment(settings).protocol.dated
    write_about(hub, read_about(hub).model_copy(update={"dates": False}))
    assert not Environment(settings).protocol.dated


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose files would run, or be read, if anything of the current folder were."""
    folder = tmp_path_factory.mktemp("planted")
    for name in PLANTED:
        (folder / f"{name}.py").write_text("open('ran', 'w').close()\n", encoding="utf-8")
    (folder / "cairn.toml").write_text("protocol = 'nothing'\nnot TOML", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def environment(planted: Path) -> Generator[EnvironmentProcess]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(planted)
        process = EnvironmentProcess(SMALL)
    yield process
    process.close()


def test_rollouts_run_side_by_side_and_each_gets_its_own_result(server: ModelServer, environment: EnvironmentProcess):
    async def both() -> list[Any]:
        runs = [environment.run(task, base_url=server.url, model="theirs") for task in (0, 1, 0)]
        return await asyncio.gather(*runs, return_exceptions=True)

    first, second, third = asyncio.run(both())
    assert (first["reward"], first["parts"], first["stopped"]) == (1.0, {"answer": 1.0, "format": 0.0}, "answered")
    assert third == first
    assert isinstance(second, RolloutMasked)
    assert "the engine is gone" in str(second)


def test_rollouts_of_one_question_have_seeds_of_their_own(server: ModelServer, environment: EnvironmentProcess):
    async def three() -> None:
        for seed in (None, None, 7):
            await environment.run(0, base_url=server.url, model="theirs", **({"seed": seed} if seed else {}))

    asyncio.run(three())
    seeds = [chat["seed"] for chat in server.chats]
    assert len(set(seeds)) == 3
    assert seeds[-1] == 7


def test_a_cancelled_rollout_ends_and_the_process_goes_on(server: ModelServer, environment: EnvironmentProcess):
    async def cancelled() -> dict[str, Any]:
        run = asyncio.create_task(environment.run(0, base_url=server.url, model="theirs"))
        await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        return await environment.run(0, base_url=server.url, model="theirs")

    assert asyncio.run(cancelled())["reward"] == 1.0


@pytest.mark.slow
def test_a_process_that_was_killed_fails_its_rollouts_and_is_started_again(server: ModelServer):
    async def killed() -> None:
        process = environment_of(SMALL)
        assert environment_of(SMALL) is process
        waiting = asyncio.create_task(process.run(0, base_url=server.url, model="theirs"))
        await asyncio.sleep(0)
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(EnvironmentFailed, match="has ended"):
            await waiting
        again = environment_of(SMALL)
        assert again is not process
        assert (await again.run(0, base_url=server.url, model="theirs"))["reward"] == 1.0
        again.close()
        process.close()

    asyncio.run(killed())


def test_nothing_of_the_current_folder_is_run_or_read(
    server: ModelServer, environment: EnvironmentProcess, planted: Path
):
    assert asyncio.run(environment.run(0, base_url=server.url, model="theirs"))["reward"] == 1.0
    assert not (planted / "ran").exists()


def test_a_trainer_needs_the_standard_library_alone():
    code = "import sys; import train.environments.process; print(*{n.partition('.')[0] for n in sys.modules})"
    said = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert set(said.stdout.split()) - set(sys.stdlib_module_names) <= {"__main__", "train"}


def test_rollouts_need_no_torch():
    code = "import sys; import train.environments.rollouts; print('torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert said.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"protocl": "cairn"}, "protocl: there is no such field"),
        ({"data": {"order": "listed"}}, "`order` in `data` is for Cairn's trainer"),
        ({"reward": {"name": "outcome", "until": 0.5}}, "`until` in `reward` is for Cairn's trainer"),
        ({"reward": {"name": "fame"}}, "there is no reward 'fame'; choose from: multisearch"),
        ({"endpoint": "completions"}, "`tokenizer` belongs to"),
        ({"protocol": "nothing"}, "there is no protocol 'nothing'"),
        ({"reward": {"name": "outcome", "weights": {"merge": 2}}}, "the reward 'outcome' has no part 'merge'"),
        ({"reward": {"name": "dag", "settings": {"variant": "printed"}}}, "needs a judge with these settings"),
        ({"data": {"questions": "nowhere.jsonl"}}, "nowhere.jsonl cannot be read"),
        ({"data": {"people": 6, "questions_per_world": 400}}, "raise `people`"),
    ],
)
def test_wrong_settings_are_refused_in_one_sentence(said: dict[str, Any], sentence: str):
    with pytest.raises(SetupError) as refused:
        Environment(read_settings(said))
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_is_no_setting_is_refused_before_anything_starts():
    with pytest.raises(EnvironmentFailed, match="are no JSON"):
        environment_of({"seed": object()})
