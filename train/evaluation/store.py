"""The folder of an evaluation: what was scored is kept, and not run again."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from pydantic import ValidationError

from agent.errors import SetupError
from agent.trace import Trace
from train.evaluation.run import OnResult, Result

RESULTS: Final = "results.jsonl"
TRACES: Final = "traces.jsonl"
RUN: Final = "run.json"


class Run:
    """A folder with what was scored so far: run.json, results.jsonl, traces.jsonl."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        """Open a run, or go on with one.

        Raises:
            SetupError: the folder holds a run with other settings, or cannot be written.
        """
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._claim(dict(settings))
            self.results = {r.id: r for r in self._read() if not r.infrastructure}
        except OSError as error:
            raise SetupError(f"the results cannot be written to {folder}: {error.strerror or error}") from error

    @contextmanager
    def recording(self) -> Iterator[OnResult]:
        """Give what keeps each result with its trace; the trace is written first, so every result has one."""
        with self._append(TRACES) as traces, self._append(RESULTS) as results:

            def keep(result: Result, trace: Trace) -> None:
                traces.write(trace.model_dump_json() + "\n")
                traces.flush()
                results.write(result.model_dump_json() + "\n")
                results.flush()
                self.results[result.id] = result

            yield keep

    def _append(self, name: str) -> TextIO:
        return (self._folder / name).open("a", encoding="utf-8", newline="\n")

    def _claim(self, settings: dict[str, str]) -> None:
        card = self._folder / RUN
        if not card.exists():
            card.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            return
        try:
            before = dict(json.loads(card.read_bytes()))
        except (ValueError, TypeError) as error:
            raise SetupError(f"{card} is damaged; choose another --out") from error
        for name in sorted(before | settings):
            old, new = before.get(name, "nothing"), settings.get(name, "nothing")
            if old != new:
                raise SetupError(
                    f"{self._folder} holds a run with {name} = {old}, and this one has {new}; choose another --out"
                )

    def _read(self) -> Iterator[Result]:
        """What was scored before; a last line that a kill cut off is removed."""
        for name in (TRACES, RESULTS):
            path = self._folder / name
            if path.exists():
                content = path.read_bytes()
                if not content.endswith(b"\n"):
                    path.write_bytes(content[: content.rfind(b"\n") + 1])
        path = self._folder / RESULTS
        lines = path.read_bytes().splitlines() if path.exists() else []
        for number, line in enumerate(lines, start=1):
            try:
                yield Result.model_validate_json(line)
            except ValidationError as error:
                raise SetupError(f"{path}, line {number} is no result; choose another --out") from error
