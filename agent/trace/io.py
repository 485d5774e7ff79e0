"""Traces on disk: JSONL, one trace a line; and the same trace without its times, to hold two rollouts side by side."""

import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import ValidationError

from agent.errors import SetupError, wrong_fields
from agent.files.foreign import open_file
from agent.trace import Timings, Trace


def append_trace(path: Path, trace: Trace) -> None:
    """Write one more line; the file and its folder are made if they are not there."""
    write_traces(path, [trace], append=True)


def write_traces(path: Path, traces: Iterable[Trace], *, append: bool = False) -> None:
    """Write one line for each trace, as they come."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a" if append else "w", encoding="utf-8", newline="\n") as file:
        for trace in traces:
            file.write(trace.model_dump_json() + "\n")
            file.flush()


def read_traces(path: Path) -> Iterator[Trace]:
    """Read the traces of a file one by one.

    Raises:
        SetupError: the file cannot be read, or a line of it is no trace; the sentence names the line.
    """
    try:
        with io.TextIOWrapper(open_file(path), encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _trace(line, where=f"{path}, line {number}")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"the traces in {path} cannot be read: {error}") from error


def timeless(trace: Trace) -> Trace:
    """The trace without its id and its times: the same for equal question, seed, engine and search results."""
    steps = [
        step.model_copy(update={"seconds": 0.0} | ({"took": 0.0} if hasattr(step, "took") else {}))
        for step in trace.steps
    ]
    return trace.model_copy(update={"id": "", "steps": steps, "timings": Timings()})


def _trace(line: str, *, where: str) -> Trace:
    try:
        return Trace.model_validate_json(line)
    except ValidationError as error:
        wrong = wrong_fields(error, whole="the line", most=1)
        raise SetupError(f"{where} is not a trace of this version: {wrong}") from error
