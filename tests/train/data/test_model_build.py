"""A whole build whose questions a scripted endpoint writes: what comes out, how it goes on, and what ends it."""

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agent.errors import SetupError
from tests.train.data.made import lines, recipe_for, words, write_docs
from tests.train.data.scripted import knows, one_is_enough, topics, writer_options, writer_server
from tests.train.evaluation.far import AgentRequest, Given, chat, far_agent
from train.data.build import build
from train.data.filters import KNOWN, ONE_DOCUMENT
from train.data.finish import Finished, read_finished
from train.evaluation.datasets import read_dataset
from train.safety.manifest import read_manifest

pytest.importorskip("sklearn")
pytest.importorskip("datasketch")


def built(folder: Path, **said: Any) -> tuple[Finished, Any]:
    """A build in `folder/out`, and the writer."""
    docs = topics()
    files = write_docs(docs, folder / "docs")
    with writer_server(docs) as (writer, server):
        done = build(files, recipe_for(files, **said), folder / "out", writer=writer_options(server), embed=words())
    return done, writer


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finished, Any]:
    return built(tmp_path_factory.mktemp("once"))


def dropped(done: Finished, name: str) -> dict[str, int]:
    return next(step.dropped for step in done.steps if step.name == name)


def test_every_question_needs_documents_of_several_sources_and_names_them(once: tuple[Finished, Any]):
    done, _ = once
    questions = lines(done.folder / "questions.jsonl")
    source = {doc.id: doc.source for doc in topics()}
    assert len(questions) == done.questions > 5
    assert {row["type"] for row in questions} == {"factual", "causal", "choice"}
    for row in questions:
        assert {source[key] for key in row["supporting"]} == set(row["sources"]) == {"news", "arxiv"}


def test_what_the_model_knows_and_what_one_document_answers_is_dropped_and_counted(once: tuple[Finished, Any]):
    done, _ = once
    written = [row["question"] for row in lines(done.folder / "writing.jsonl")]
    known = [question for question in written if knows(question)]
    enough = [question for question in written if not knows(question) and one_is_enough(question)]
    assert known
    assert enough
    assert dropped(done, "by heart") == {KNOWN: len(known)}
    assert dropped(done, "alone") == {ONE_DOCUMENT: len(enough)}
    left = {row["question"] for row in lines(done.folder / "questions.jsonl")}
    assert left == set(written) - {*known, *enough}


def test_every_step_gives_what_the_next_one_takes(once: tuple[Finished, Any]):
    steps = {step.name: step for step in once[0].steps}
    for name in ("by heart", "together", "alone"):
        assert steps[name].taken == steps[name].given + sum(steps[name].dropped.values())
    for before, after in (
        ("reading", "unique"),
        ("writing", "by heart"),
        ("by heart", "together"),
        ("alone", "ordering"),
    ):
        assert steps[before].given == steps[after].taken
    assert steps["bundling"].taken == steps["bundling"].given + sum(steps["bundling"].dropped.values())


def test_the_same_seed_gives_the_same_questions_byte_for_byte(once: tuple[Finished, Any], tmp_path: Path):
    again, _ = built(tmp_path)
    for name in ("questions.jsonl", "corpus.jsonl", "bundling.jsonl"):
        assert (again.folder / name).read_bytes() == (once[0].folder / name).read_bytes()


def test_the_questions_are_a_list_that_evaluation_reads(once: tuple[Finished, Any]):
    found = read_dataset(once[0].folder / "questions.jsonl", "cairn")
    assert len(found.questions) == once[0].questions
    choices = [question for question in found.questions if question.type == "choice"]
    assert choices
    assert all(set(question.answers) < set(question.options) for question in choices)


def test_the_manifest_has_what_went_in_and_what_came_of_it(once: tuple[Finished, Any]):
    manifest = read_manifest(once[0].folder)
    assert (manifest.kind, manifest.state) == ("data", "done")
    assert set(manifest.data) == {"news news.jsonl", "arxiv arxiv.jsonl", "questions.jsonl", "corpus.jsonl"}
    assert manifest.figures["ordering: out"] == once[0].questions


def test_a_build_that_is_done_asks_nothing_more(tmp_path: Path):
    first, _ = built(tmp_path)
    again, writer = built(tmp_path)
    assert not writer.requests
    assert again.steps == first.steps


class Enough(Exception):
    """As a kill, at a place of the test's choice."""


def killed_after(number: int) -> Callable[[str, int, int], None]:
    """Breaks a build off after a number of its requests."""

    def show(step: str, done: int, total: int) -> None:
        if step in ("writing", "alone") and done == number:
            raise Enough

    return show


@pytest.mark.parametrize("number", [1, 5])
def test_a_build_that_broke_off_goes_on_and_asks_nothing_twice(once: tuple[Finished, Any], tmp_path: Path, number: int):
    docs = topics()
    files = write_docs(docs, tmp_path / "docs")
    with writer_server(docs) as (writer, server):
        for show in (killed_after(number), killed_after(number), None):
            how: dict[str, Any] = {} if show is None else {"show": show}
            try:
                done = build(
                    files,
                    recipe_for(files),
                    tmp_path / "out",
                    writer=writer_options(server, concurrency=1),
                    embed=words(),
                    **how,
                )
            except (Enough, BaseExceptionGroup):
                continue
    assert writer.requests == once[1].requests
    assert (done.folder / "questions.jsonl").read_bytes() == (once[0].folder / "questions.jsonl").read_bytes()


def test_a_reply_that_a_kill_cut_off_is_requested_again_and_the_others_are_not(tmp_path: Path):
    first, writer = built(tmp_path)
    replies = first.folder / "replies.jsonl"
    whole = replies.read_bytes()
    replies.write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 20])
    steps = json.loads((first.folder / "steps.json").read_text(encoding="utf-8"))
    kept = {
        name: step
        for name, step in steps.items()
        if name not in ("writing", "by heart", "together", "alone", "ordering")
    }
    (first.folder / "steps.json").write_text(json.dumps(kept), encoding="utf-8")
    again, second = built(tmp_path)
    assert second.requests.total() == 1
    assert again.questions == first.questions
    assert len(lines(replies)) == writer.requests.total()


def test_an_endpoint_that_dies_ends_the_build_with_what_it_said_kept(tmp_path: Path):
    docs = topics()
    files = write_docs(docs, tmp_path / "docs")
    with writer_server(docs) as (writer, server):
        said = server.says

        def dies(request: AgentRequest) -> Given:
            return said(request) if writer.requests["write"] < 4 else Given({"error": {"message": "down"}}, status=503)

        server.says = dies
        with pytest.raises(SetupError, match=r"is gone: 5 requests in a row failed.*run the same command again"):
            build(
                files, recipe_for(files), tmp_path / "out", writer=writer_options(server, concurrency=1), embed=words()
            )
        assert writer.requests["write"] == 4
        assert len(lines(tmp_path / "out" / "replies.jsonl")) == 4
        assert "writing" not in {step.name for step in read_finished(tmp_path / "out").steps}
        server.says = said
        done = build(files, recipe_for(files), tmp_path / "out", writer=writer_options(server), embed=words())
        wanted = next(step.taken for step in done.steps if step.name == "writing")
        assert writer.requests["write"] == wanted, "the four were not requested again"


def failing_on(kind: str, given: Given, writer: Callable[[AgentRequest], Given]) -> Callable[[AgentRequest], Given]:
    return lambda request: given if kind in request.question.split("\n{")[0] else writer(request)


def test_what_no_one_answers_ends_the_step_unless_it_may_be_left_out(tmp_path: Path):
    docs = topics()
    files = write_docs(docs, tmp_path / "docs")
    with writer_server(docs) as (writer, server):
        hit = docs[0].text[:30]

        def says(request: AgentRequest) -> Given:
            return Given({}, status=503) if hit in request.question else writer(request)

        server.says = says
        run = partial(build, files, recipe_for(files), tmp_path / "out", embed=words())
        with pytest.raises(SetupError, match=r"3 of \d+ requests were not answered.*--leave-failed"):
            run(writer=writer_options(server, concurrency=1))
        done = run(writer=writer_options(server, concurrency=1, leave_failed=True))
    assert dropped(done, "writing") == {"the model did not answer (server)": 3}


def test_a_refusal_of_one_request_is_a_question_less(tmp_path: Path):
    docs = topics()
    files = write_docs(docs, tmp_path / "docs")
    with writer_server(docs) as (writer, server):
        refusal = Given({"error": {"message": "too long"}}, status=400)
        server.says = failing_on("asks why", refusal, writer)
        done = build(files, recipe_for(files), tmp_path / "out", writer=writer_options(server), embed=words())
    assert list(dropped(done, "writing")) == ["the model did not answer (refused)"]
    assert {row["type"] for row in lines(done.folder / "questions.jsonl")} == {"factual", "choice"}


def test_a_key_that_is_refused_ends_the_build_at_once(tmp_path: Path):
    docs = topics()
    files = write_docs(docs, tmp_path / "docs")
    with far_agent(lambda request: Given({}, status=401)) as server, pytest.raises(SetupError, match="refuses the key"):
        build(files, recipe_for(files), tmp_path / "out", writer=writer_options(server, concurrency=1), embed=words())
    assert len(server.requests) <= 2


@pytest.mark.parametrize(
    "nonsense", ["", "Sure! Here is a question.", '{"question": 5', '{"question": "?"}', "[]", "{}"]
)
def test_an_endpoint_that_answers_nonsense_gets_what_is_wrong_with_it(tmp_path: Path, nonsense: str):
    docs = topics(1)
    files = write_docs(docs, tmp_path / "docs")
    with far_agent(lambda request: chat(nonsense)) as server:
        with pytest.raises(SetupError, match=r"wrote no question that can be used: none of 3 replies could be used"):
            build(files, recipe_for(files, limit=2), tmp_path / "out", writer=writer_options(server), embed=words())
        assert len(server.requests) == 3 * 3 * 2
        assert "Your last reply could not be used" in server.requests[-1].question
    assert not (tmp_path / "out" / "replies.jsonl").exists(), "what cannot be read is not kept"


def test_a_folder_of_another_build_is_refused(tmp_path: Path):
    built(tmp_path)
    with pytest.raises(SetupError, match="is of another recipe"):
        built(tmp_path, seed=4)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear", encoding="utf-8")
    files = write_docs(topics(), tmp_path / "docs")
    with far_agent(lambda request: chat("")) as server, pytest.raises(SetupError, match="has other files in it"):
        build(files, recipe_for(files), tmp_path / "full", writer=writer_options(server), embed=words())


def test_a_full_disk_ends_the_build_in_a_sentence_and_the_same_call_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("train.data.folder.os", SimpleNamespace(fsync=full))
        with pytest.raises(SetupError, match=r"No space left on device; finished work is intact: free some space"):
            built(tmp_path)
    assert not list((tmp_path / "out").rglob("*.new"))
    done, _ = built(tmp_path)
    assert done.questions


def test_duplicates_alone_and_one_source_alone_are_refused_with_what_is_missing(tmp_path: Path):
    one = topics(1)[0]
    copies = [one.model_copy(update={"id": f"copy-{n}", "source": source}) for n, source in enumerate(("news", "web"))]
    files = write_docs(copies, tmp_path / "copies")
    with far_agent(lambda request: chat("")) as server:
        with pytest.raises(SetupError, match="After leaving out near-duplicates, 1 document is left"):
            build(files, recipe_for(files), tmp_path / "one", writer=writer_options(server), embed=words())
        files = write_docs(topics(sources=("news",)), tmp_path / "news")
        with pytest.raises(SetupError, match="all 12 documents are of the source 'news'"):
            build(files, recipe_for(files), tmp_path / "two", writer=writer_options(server), embed=words())
        assert not server.requests


def test_sources_whose_subjects_never_meet_are_refused_with_the_fix(tmp_path: Path):
    docs = topics(1)
    files = write_docs(docs, tmp_path / "docs")
    apart = {doc.whole: [1.0, 0.0] if doc.source == "news" else [0.0, 1.0] for doc in docs}

    def by_source(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([apart[text] for text in texts], np.float32)

    with far_agent(lambda request: chat("")) as server:
        with pytest.raises(SetupError, match=r"none of \d+ clusters became a bundle.*lower --reach"):
            build(files, recipe_for(files, group=4), tmp_path / "out", writer=writer_options(server), embed=by_source)
        assert not server.requests


@pytest.mark.slow
def test_after_a_kill_only_what_was_on_its_way_is_requested_again(once: tuple[Finished, Any], tmp_path: Path):
    docs = topics()
    files = write_docs(docs, tmp_path / "docs")
    reached, killed = threading.Event(), threading.Event()
    with writer_server(docs) as (writer, server):

        def says(request: AgentRequest) -> Given:
            if len(server.requests) == 30 and not killed.is_set():
                reached.set()
                killed.wait(60)
            return writer(request)

        server.says = says
        words_of = ["-m", "tests.train.data.running", str(tmp_path / "docs"), str(tmp_path / "out"), server.url]
        with subprocess.Popen([sys.executable, *words_of]) as child:
            assert reached.wait(90)
            child.kill()
        killed.set()
        done = build(
            files, recipe_for(files), tmp_path / "out", writer=writer_options(server, concurrency=1), embed=words()
        )
        times = Counter(request.question for request in server.requests)
    assert sorted(times.values())[-2:] == [1, 2]
    assert (done.folder / "questions.jsonl").read_bytes() == (once[0].folder / "questions.jsonl").read_bytes()
