import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.errors import PolicyError, SetupError
from agent.policies.checkpoint import write_manifest
from agent.policies.model_folder import About
from agent.policies.scripted import Script, ScriptedPolicy
from agent.protocols import protocol_named
from agent.settings import CairnSettings
from agent.world import load_world
from tests.agent.policies.chat_server import Reply, chat_server
from tests.server.live import Nothing
from train.checkpoints.export import as_toml
from train.evaluation.chosen import QuestionChoice
from train.evaluation.report import Figures
from train.evaluation.session import Evaluation, MeasureOptions, SoFar
from train.evaluation.store import CONTENTS

DOCUMENTS = [
    {"id": "d1", "title": "Aurora Falls", "text": "Lina Orr directed Aurora Falls."},
    {"id": "d2", "title": "Lina Orr", "text": "Lina Orr was born in Trieste."},
]
QUESTIONS = [
    {"id": "q1", "question": "Who directed Aurora Falls?", "answers": ["Lina Orr"], "supporting": ["d1"], "hops": 1},
    {"id": "q2", "question": "Where was Lina Orr born?", "answers": ["Trieste"], "supporting": ["d2"], "hops": 1},
    {"id": "q3", "question": "Who is that?", "answers": ["Lina Orr"], "hops": 1},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


class CountingScript:
    """A policy's script that searches its question, then answers "Lina Orr"; it keeps count of the answers."""

    def __init__(self) -> None:
        self.answers = 0

    def __call__(self, context: str) -> str:
        if "<information>" not in context:
            return f"<search>\nA: {context.strip().splitlines()[-1].removeprefix('Question: ')} (web)\n</search>"
        self.answers += 1
        return "<answer>Lina Orr</answer>"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    from agent.sources.corpus.source import build_index

    build_index([write(tmp_path / "documents.jsonl", DOCUMENTS)], tmp_path / "index")
    return tmp_path / "index"


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return write(tmp_path / "questions.jsonl", QUESTIONS)


def evaluation(index: Path, questions: Path, turns: Script, **options: Any) -> Evaluation:
    return Evaluation(CairnSettings(corpus=index), questions, policy=ScriptedPolicy(turns), **options)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_real_questions_run_through_the_whole_agent(index: Path, questions: Path, tmp_path: Path):
    figures = evaluation(index, questions, CountingScript(), out=tmp_path / "out").run()
    assert (figures["n"], figures["em"], figures["searches"]) == (3, 0.6667, 1.0)
    assert (figures["gold_n"], figures["gold_found"], figures["all_gold"]) == (2, 1.0, 1.0)
    assert figures["settings"]["searched"].startswith("corpus ")
    results, traces = lines(tmp_path / "out" / "results.jsonl"), lines(tmp_path / "out" / "traces.jsonl")
    assert {r["trace"] for r in results} == {t["id"] for t in traces}
    assert json.loads((tmp_path / "out" / "report.json").read_bytes()).items() >= figures.items()
    assert "| EM | 0.667 |" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")


def test_the_guard_that_users_get_is_evaluated_and_taken_off_only_by_a_flag_that_the_report_names(
    questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def build(settings: CairnSettings, *, sources: Sequence[str]) -> ScriptedPolicy:
        return ScriptedPolicy(CountingScript())

    monkeypatch.setattr("agent.build.agent.build_policy", build)
    settings = CairnSettings(policy="embedded", world="test")
    with_guard = Evaluation(settings, questions, out=tmp_path / "with").run()
    assert (with_guard["searches"], with_guard["em"], with_guard["settings"]["guard"]) == (0.0, 0.0, "")
    without = Evaluation(settings, questions, measured=MeasureOptions(guard=False), out=tmp_path / "without").run()
    assert (without["searches"], without["settings"]["guard"]) == (1.0, "off")
    assert "- guard: off" in (tmp_path / "without" / "report.md").read_text(encoding="utf-8")
    assert "guard" in (tmp_path / "without" / "report.html").read_text(encoding="utf-8")
    with pytest.raises(SetupError, match="guard = nothing, and this one has off"):
        Evaluation(settings, questions, measured=MeasureOptions(guard=False), out=tmp_path / "with").run()


def test_progress_shows_the_em_and_the_failures_so_far(index: Path, questions: Path):
    def fails_at_last(context: str) -> str | Exception:
        return PolicyError("gone") if "that?" in context else "<answer>Lina Orr</answer>"

    shown: list[SoFar] = []
    evaluation(index, questions, fails_at_last, concurrency=1).run(shown.append)
    assert shown == [SoFar(0, 3, 0, None), SoFar(1, 3, 0, 1.0), SoFar(2, 3, 0, 0.5), SoFar(3, 3, 1, 0.5)]


def test_a_run_goes_on_with_what_is_missing(index: Path, questions: Path, tmp_path: Path):
    first, second = CountingScript(), CountingScript()
    evaluation(index, questions, first, out=tmp_path / "out", choice=QuestionChoice(limit=2)).run()
    figures = evaluation(index, questions, second, out=tmp_path / "out").run()
    assert (first.answers, second.answers) == (2, 1)
    assert figures["n"] == 3
    assert [r["id"] for r in lines(tmp_path / "out" / "results.jsonl")] == ["q1", "q2", "q3"]


def test_a_line_that_a_kill_cut_off_runs_again(index: Path, questions: Path, tmp_path: Path):
    evaluation(index, questions, CountingScript(), out=tmp_path / "out", concurrency=1).run()
    results = tmp_path / "out" / "results.jsonl"
    results.write_bytes(results.read_bytes()[:-30])
    again = CountingScript()
    assert evaluation(index, questions, again, out=tmp_path / "out").run()["n"] == 3
    assert again.answers == 1
    assert sorted(r["id"] for r in lines(results)) == ["q1", "q2", "q3"]


def test_failures_are_counted_apart_and_run_again_only_where_that_is_said(index: Path, questions: Path, tmp_path: Path):
    def fails_once(context: str) -> str | Exception:
        return PolicyError("gone") if "that?" in context else "<answer>Lina Orr</answer>"

    figures = evaluation(index, questions, fails_once, out=tmp_path / "out").run()
    assert (figures["questions"], figures["n"], figures["infrastructure"], figures["em"]) == (3, 2, 1, 0.5)
    assert figures["failures"] == {"engine": 1}
    later, healed = CountingScript(), CountingScript()
    assert evaluation(index, questions, later, out=tmp_path / "out").run()["infrastructure"] == 1
    figures = evaluation(index, questions, healed, out=tmp_path / "out", retry_failed=True).run()
    assert (figures["n"], figures["infrastructure"], later.answers, healed.answers) == (3, 0, 0, 1)


def test_a_folder_of_another_run_is_refused(index: Path, questions: Path, tmp_path: Path):
    evaluation(index, questions, CountingScript(), out=tmp_path / "out").run()
    other = Evaluation(
        CairnSettings(corpus=index, protocol="multisearch"),
        questions,
        policy=ScriptedPolicy(CountingScript()),
        out=tmp_path / "out",
    )
    with pytest.raises(SetupError, match=r"a run with protocol = cairn 2, and this one has multisearch 1; choose"):
        other.run()
    write(questions, QUESTIONS[:2])
    with pytest.raises(SetupError, match="questions_sha256"):
        evaluation(index, questions, CountingScript(), out=tmp_path / "out").run()


def exported(folder: Path, weights: bytes) -> Path:
    """A folder like an exported checkpoint's, of a model that always has the same name."""
    folder.mkdir(exist_ok=True)
    (folder / "model.bin").write_bytes(weights)
    (folder / "README.md").write_bytes(b"What is said of it: " + weights)
    write_manifest(folder, About(name="mine", protocols=("cairn",), context_tokens=512, eos="</s>"))
    return folder


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CairnSettings:
    """An agent whose model, graph and protocol are all named by their paths."""

    def build(settings: CairnSettings, *, sources: Sequence[str]) -> ScriptedPolicy:
        return ScriptedPolicy(CountingScript())

    monkeypatch.setattr("agent.build.agent.build_policy", build)
    checkpoint, graph = exported(tmp_path / "ct2", b"first"), tmp_path / "graph.sqlite"
    graph.write_bytes(b"first")
    protocol = tmp_path / "own.toml"
    protocol.write_text(as_toml(protocol_named("cairn")), encoding="utf-8")
    return CairnSettings(policy="embedded", checkpoint=checkpoint, kg=graph, protocol=str(protocol))


def kept(settings: CairnSettings, questions: Path, out: Path) -> Figures:
    return Evaluation(settings, questions, sources={"web": Nothing(), "all": Nothing()}, out=out).run()


def change_model(settings: CairnSettings) -> None:
    assert settings.checkpoint
    exported(settings.checkpoint, b"second")


def change_graph(settings: CairnSettings) -> None:
    assert settings.kg
    settings.kg.write_bytes(b"second")


def change_protocol(settings: CairnSettings) -> None:
    other = protocol_named("cairn").model_copy(update={"nothing": "No page."})
    Path(settings.protocol).write_text(as_toml(other), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "change"), [("model", change_model), ("graph", change_graph), ("protocol", change_protocol)]
)
def test_another_model_graph_or_protocol_under_the_same_path_is_refused(
    named: CairnSettings, questions: Path, tmp_path: Path, name: str, change: Callable[[CairnSettings], None]
):
    kept(named, questions, tmp_path / "out")
    change(named)
    with pytest.raises(
        SetupError, match=rf"a run with {name}_sha256 = \w+, and this one has \w+; choose another --out"
    ):
        kept(named, questions, tmp_path / "out")


def test_what_is_written_about_a_model_changes_nothing(named: CairnSettings, questions: Path, tmp_path: Path):
    kept(named, questions, tmp_path / "out")
    assert named.checkpoint
    (named.checkpoint / "README.md").write_text("It scored .48.", encoding="utf-8")
    assert kept(named, questions, tmp_path / "out")["n"] == 3


def test_a_model_in_the_hubs_form_is_known_by_its_files(questions: Path, tmp_path: Path, named: CairnSettings):
    hub = tmp_path / "hub"
    hub.mkdir()
    (hub / "model.safetensors").write_bytes(b"first")
    settings = CairnSettings(policy="transformers", model=str(hub))
    kept(settings, questions, tmp_path / "out")
    (hub / "README.md").write_text("It scored .48.", encoding="utf-8")
    kept(settings, questions, tmp_path / "out")
    (hub / "model.safetensors").write_bytes(b"second")
    with pytest.raises(SetupError, match="model_sha256"):
        kept(settings, questions, tmp_path / "out")


def test_a_run_of_an_earlier_version_goes_on_and_is_held_against_what_went_on_with_it(
    named: CairnSettings, questions: Path, tmp_path: Path
):
    kept(named, questions, tmp_path / "out")
    card = tmp_path / "out" / "run.json"
    whole = json.loads(card.read_bytes())
    card.write_text(json.dumps({name: said for name, said in whole.items() if name not in CONTENTS}))
    results = (tmp_path / "out" / "results.jsonl").read_bytes()
    assert kept(named, questions, tmp_path / "out")["n"] == 3
    assert (tmp_path / "out" / "results.jsonl").read_bytes() == results
    assert json.loads(card.read_bytes()) == whole
    change_model(named)
    with pytest.raises(SetupError, match="model_sha256"):
        kept(named, questions, tmp_path / "out")


@pytest.mark.parametrize(
    ("file", "content", "why"),
    [("run.json", "[", "is damaged"), ("results.jsonl", "{}\n", "line 1 is not a result")],
)
def test_a_damaged_folder_is_a_sentence(
    index: Path, questions: Path, tmp_path: Path, file: str, content: str, why: str
):
    evaluation(index, questions, CountingScript(), out=tmp_path / "out").run()
    (tmp_path / "out" / file).write_text(content, encoding="utf-8")
    with pytest.raises(SetupError, match=why):
        evaluation(index, questions, CountingScript(), out=tmp_path / "out").run()


def test_the_closed_book_baseline_answers_without_a_search(index: Path, questions: Path):
    def guess(context: str) -> str:
        if context.endswith("<answer>"):
            return "Lina Orr</answer>"
        return "<search>\nA: x (web)\n</search>"

    figures = evaluation(index, questions, guess, baseline="closed-book").run()
    assert (figures["n"], figures["searches"], figures["forced"], figures["em"]) == (3, 0.0, 3, 0.6667)


def test_with_one_search_a_second_one_is_not_made(index: Path, questions: Path):
    def keen(context: str) -> str:
        if context.count("<information>") < 2 and not context.endswith("<answer>"):
            return "<search>\nA: Lina Orr (web)\n</search>"
        return "Lina Orr</answer>" if context.endswith("<answer>") else "<answer>Lina Orr</answer>"

    assert evaluation(index, questions, keen).run()["searches"] == 2
    assert evaluation(index, questions, keen, baseline="one-search").run()["searches"] == 1


def test_gold_passages_are_given_whatever_is_searched_for(index: Path, questions: Path):
    def lost(context: str) -> str:
        if "<information>" not in context:
            return "<search>\nA: something else (web)\n</search>"
        return "<answer>Trieste</answer>" if "born in Trieste" in context else "<answer>no one</answer>"

    choice = QuestionChoice(limit=2)
    assert evaluation(index, questions, lost, choice=choice).run()["em"] == 0
    figures = evaluation(index, questions, lost, choice=choice, baseline="gold-passages").run()
    assert figures["em"] == 0.5
    assert figures["gold_found"] == 1


def test_gold_passages_that_no_corpus_has_cannot_be_given(index: Path, tmp_path: Path):
    strange = write(tmp_path / "strange.jsonl", [{**QUESTIONS[0], "supporting": ["d9"]}])
    with pytest.raises(SetupError, match="no gold passage"):
        evaluation(index, strange, lambda _: "<answer>x</answer>", baseline="gold-passages").run()


def test_plain_rag_searches_once_and_takes_what_the_model_says(index: Path, questions: Path):
    async def run() -> tuple[Figures, list[dict[str, Any]]]:
        async with chat_server(Reply(["The director is Lina Orr."]), Reply(["Trieste"])) as server:
            settings = CairnSettings(corpus=index, policy="openai", base_url=server.url, model="m")
            made = Evaluation(settings, questions, baseline="plain-rag", concurrency=1)
            return await asyncio.to_thread(made.run), server.requests

    figures, requests = asyncio.run(run())
    assert (figures["n"], figures["searches"], figures["rounds"], figures["em"]) == (3, 1.0, 1.0, 0.3333)
    assert len(requests) == 3
    (message,) = requests[0]["messages"]
    assert "Lina Orr directed" in message["content"] or "Aurora Falls" in message["content"]


def test_plain_rag_searches_all_sources_as_one_and_knows_the_turns_before():
    world = load_world("test-v2")
    at, question = next((at, one) for at, one in enumerate(world.questions) if one.history)

    async def run() -> list[dict[str, Any]]:
        async with chat_server(Reply(["Trieste"])) as server:
            settings = CairnSettings(world="test-v2", policy="openai", base_url=server.url, model="m")
            made = Evaluation(settings, baseline="plain-rag", choice=QuestionChoice(limit=at + 1), concurrency=1)
            await asyncio.to_thread(made.run)
            return server.requests

    *before, prompt = asyncio.run(run())[-1]["messages"]
    assert [message["content"] for message in before] == [text for turn in question.history for text in turn]
    assert [message["role"] for message in before] == ["user", "assistant"] * len(question.history)
    found = world.find("all", question.question, limit=5)
    assert [f"[{n}] {p.title}: {p.text}" in prompt["content"] for n, p in enumerate(found, start=1)] == [True] * 5


def test_plain_rag_wants_a_model_behind_an_endpoint(index: Path, questions: Path):
    with pytest.raises(SetupError, match="--policy openai"):
        evaluation(index, questions, CountingScript(), baseline="plain-rag").run()


def test_the_first_passage_baseline_reads_one_passage_of_the_world():
    figures = Evaluation(CairnSettings(world="test-v1"), baseline="first-passage").run()
    assert (figures["n"], figures["searches"], figures["policy_tokens"]) == (500, 1.0, 0.0)
    assert 0 < figures["em"] <= 0.35
    assert 0 < figures["all_gold"] < figures["gold_found"] < 1


def test_without_questions_the_worlds_own_run():
    evaluation = Evaluation(CairnSettings(world="test-v1"), choice=QuestionChoice(limit=7))
    assert [q.id for q in evaluation.questions] == [q.id for q in load_world("test-v1").questions[:7]]
    assert all(q.answers and q.supporting and q.type and q.hops for q in evaluation.questions)


def test_questions_that_do_not_fit_the_rest_are_said(index: Path, questions: Path):
    with pytest.raises(SetupError, match="name them with --questions"):
        Evaluation(CairnSettings(corpus=index))
    with pytest.raises(SetupError, match="leave out --questions"):
        Evaluation(CairnSettings(), questions, baseline="first-passage")


def test_the_evaluation_imports_no_torch():
    code = "import sys, train.evaluation.session, train.evaluation.commands; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
