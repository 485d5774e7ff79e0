"""The folder of an evaluation: what ended is kept, and does not run again, however the process ends.

run.json holds what makes two runs the same. results.jsonl and traces.jsonl grow by whole lines: each is handed to the
system at once, so a killed process loses nothing that ended, and is forced to the disk about once a second, so a power
cut loses at most the last second. A last line that was cut off is removed when the run goes on. What other processes
ask ends with its shard: see `shards`.
"""

import json
import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Final, Self

from pydantic import ValidationError

from agent.errors import CorpusError, SetupError
from agent.files.foreign import MIB, no_link, open_file, read_file
from agent.sources.corpus.folder import locked
from agent.trace import Trace
from train.evaluation.result import QuestionResult

RESULTS: Final = "results.jsonl"
TRACES: Final = "traces.jsonl"
RUN: Final = "run.json"
CONTENTS: Final = ("model_sha256", "graph_sha256", "protocol_sha256")
"""Of a card: hashes of what its other names may mean later, too. Cards of earlier versions lack them."""
SYNC_SECONDS: Final = 1.0
_BLOCK: Final = 1 << 16


class EvaluationRun:
    """What a folder holds: `results` by the question's id, the last one of each. Use it inside of `opened`."""

    def __init__(self, folder: Path, card: Mapping[str, str]) -> None:
        self._folder = folder
        _claim(folder, dict(card))
        for name in (TRACES, RESULTS):
            _end_last_line(folder / name)
        self.results = {result.id: result for result in read_results(folder)}

    def __enter__(self) -> Self:
        self._traces, self._results = _Lines(self._folder / TRACES), _Lines(self._folder / RESULTS)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for lines in (self._traces, self._results):
            lines.close()

    def keep(self, result: QuestionResult, trace: Trace | None) -> None:
        """Keep a result; its trace is written first, so every result that names one has it.

        Raises:
            SetupError: the folder cannot be written to.
        """
        try:
            if trace:
                self._traces.add(trace.model_dump_json())
            self._results.add(result.model_dump_json())
        except OSError as error:
            raise _unwritable(self._folder, error) from error
        self.results[result.id] = result


@contextmanager
def opened(folder: Path, card: Mapping[str, str]) -> Generator[EvaluationRun]:
    """Begin a run, or go on with one; no other process writes to the folder meanwhile.

    Args:
        folder: made if it is not there.
        card: what makes two runs the same.

    Raises:
        SetupError: the folder holds another run, is in use or damaged, or cannot be written.
    """
    with ExitStack() as held:
        try:
            held.enter_context(locked(folder))
            run = held.enter_context(EvaluationRun(folder, card))
        except CorpusError as error:
            why = f"another evaluation is writing to {folder}; wait until it ends, or choose another --out"
            raise SetupError(why) from error
        except OSError as error:
            raise _unwritable(folder, error) from error
        yield run


def read_results(folder: Path) -> Iterator[QuestionResult]:
    """Every result that was kept, in the order in which they ended; of a question that ran again, all.

    Raises:
        SetupError: a line that is no result.
    """
    path = folder / RESULTS
    try:
        lines = open_file(path, follow=False)
    except FileNotFoundError:
        return
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror or error}; choose another --out") from error
    with lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield QuestionResult.model_validate_json(line)
            except ValidationError as error:
                raise SetupError(f"{path}, line {number} is not a result; choose another --out") from error


class _Lines:
    """A file that grows by whole lines."""

    def __init__(self, path: Path) -> None:
        self._file = os.fdopen(no_link(str(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab", buffering=0)
        self._synced = monotonic()

    def add(self, line: str) -> None:
        rest = memoryview(line.encode("utf-8", "replace") + b"\n")
        while rest:
            rest = rest[self._file.write(rest) or 0 :]
        if monotonic() - self._synced >= SYNC_SECONDS:
            os.fsync(self._file.fileno())
            self._synced = monotonic()

    def close(self) -> None:
        with self._file:
            os.fsync(self._file.fileno())


def _claim(folder: Path, card: dict[str, str]) -> None:
    """Write the card, or hold this run against the one that is there."""
    path = folder / RUN
    if not path.exists():
        if (folder / RESULTS).exists():
            raise SetupError(f"{folder} holds results without their {RUN}; choose another --out")
        _write_card(path, card)
        return
    try:
        before = dict(json.loads(read_file(path, most=MIB, follow=False)))
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror or error}; choose another --out") from error
    except (ValueError, TypeError) as error:
        raise SetupError(f"{path} is damaged; choose another --out") from error
    later = {name: card[name] for name in CONTENTS if name in card and name not in before}
    for name in sorted(before | card):
        if name in later:
            continue
        old, new = before.get(name) or "nothing", card.get(name) or "nothing"
        if old != new:
            raise SetupError(f"{folder} holds a run with {name} = {old}, and this one has {new}; choose another --out")
    if later:  # an earlier version of Cairn wrote the card
        _write_card(path, before | later)


def _write_card(path: Path, card: Mapping[str, str]) -> None:
    written = path.with_suffix(".tmp")
    with open(written, "w", encoding="utf-8", opener=no_link) as file:
        file.write(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
    written.replace(path)


def _end_last_line(path: Path) -> None:
    """Cut off what follows the last line break, reading only the end of the file."""
    if not path.exists():
        return
    with open(path, "r+b", opener=no_link) as file:
        end = file.seek(0, os.SEEK_END)
        start = end
        while start:
            start = max(0, start - _BLOCK)
            file.seek(start)
            if (found := file.read(min(_BLOCK, end - start)).rfind(b"\n")) >= 0:
                start += found + 1
                break
        if start < end:
            file.truncate(start)


def _unwritable(folder: Path, error: OSError) -> SetupError:
    return SetupError(f"the results cannot be written to {folder}: {error.strerror or error}")
