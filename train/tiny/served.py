"""An agent that is started as a person would start it, and asked one question over HTTP; then it is stopped."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import devnull
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from time import perf_counter
from typing import Final

from openai import APIStatusError, OpenAI

from agent.errors import SetupError
from agent.sources.questions import Question

_ADDRESS: Final = re.compile(r"http://[\w.\[\]:]+:\d+")
_START_SECONDS: Final = 120.0
_ANSWER_SECONDS: Final = 120.0
_STOP_SECONDS: Final = 15.0


@dataclass(frozen=True)
class Answered:
    """One question, and what the started agent said."""

    question: str
    answer: str
    gold: str
    right: bool
    start_seconds: float
    answer_seconds: float


def command(model: Path, world: Path) -> list[str]:
    """What a person types, behind the name of the program."""
    return ["serve", "--model", str(model), "--world", str(world)]


def ask_started(model: Path, world: Path, question: Question) -> Answered:
    """Start the agent, ask, and stop it.

    Args:
        model: folder of the checkpoint.
        world: that it searches.
        question: of that world.

    Raises:
        SetupError: it does not start, or does not answer at all.
    """
    began = perf_counter()
    with _started(model, world) as address:
        started = perf_counter()
        answer = _ask(address, question.question)
        ended = perf_counter()
    gold = question.answers[0]
    return Answered(
        question=question.question,
        answer=answer,
        gold=gold,
        right=answer.strip().casefold() in {known.casefold() for known in question.answers},
        start_seconds=round(started - began, 2),
        answer_seconds=round(ended - started, 2),
    )


@contextmanager
def _started(model: Path, world: Path) -> Iterator[str]:
    """The agent's address, while it runs."""
    arguments = [*command(model, world), "--port", "0", "--config", devnull]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "agent.cli", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    lines: Queue[str | None] = Queue()
    assert process.stderr is not None
    reader = Thread(target=_read, args=(process.stderr, lines), daemon=True)
    reader.start()
    try:
        yield _address(lines)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reader.join(_STOP_SECONDS)
        process.stderr.close()


def _read(stream: Iterator[str], lines: "Queue[str | None]") -> None:
    """Until the end, so that the agent never waits for somebody to read."""
    for line in stream:
        lines.put(line)
    lines.put(None)


def _address(lines: "Queue[str | None]") -> str:
    """What the agent says of itself when it listens."""
    until, said = perf_counter() + _START_SECONDS, list[str]()
    while True:
        try:
            line = lines.get(timeout=max(0.0, until - perf_counter()))
        except Empty:
            why = f"it said nothing of its address for {_START_SECONDS:.0f} s"
            raise SetupError(f"the agent did not start: {why}; it said: {' '.join(said)[-500:]!r}") from None
        if line is None:
            raise SetupError(f"the agent ended while it started; it said: {' '.join(said)[-500:]!r}")
        said.append(line.strip())
        if found := _ADDRESS.search(line):
            return found.group()


def _ask(address: str, question: str) -> str:
    """The answer, or the sentence that stands in its place."""
    with OpenAI(base_url=f"{address}/v1", api_key="none", timeout=_ANSWER_SECONDS, max_retries=2) as client:
        try:
            said = client.chat.completions.create(
                model="cairn", messages=[{"role": "user", "content": question}], stream=False
            )
        except APIStatusError as error:
            return f"({error.message})"
        except Exception as error:
            raise SetupError(f"the started agent does not answer: {error}") from error
    return said.choices[0].message.content or ""
