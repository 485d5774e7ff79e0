"""The folder of a run, read for its report, and the files that the report is."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from pydantic import ValidationError

from agent.errors import SetupError
from agent.files.foreign import MIB, WHOLE_BYTES, no_link, read_file
from agent.trace import Trace
from train.evaluation.pack import read_traces
from train.evaluation.report import Figures, markdown, summarise
from train.evaluation.report_html import report_page
from train.evaluation.result import QuestionResult

REPORT: Final = "report"
RESULTS: Final = "results.jsonl"
TRACES: Final = "traces.jsonl"
RUN: Final = "run.json"


@dataclass(frozen=True)
class StoredRun:
    """A run as its folder keeps it."""

    folder: Path
    settings: dict[str, str]
    results: tuple[QuestionResult, ...]
    """The last of each question."""

    @property
    def title(self) -> str:
        return str(_report(self.folder).get("title", "")) or self.folder.resolve().name

    @property
    def measured(self) -> str:
        """The day on which its last result was written."""
        at = (self.folder / RESULTS).stat().st_mtime
        return datetime.fromtimestamp(at, UTC).date().isoformat()

    def figures(self) -> Figures:
        """Computed again; what only the run itself could know comes from its earlier report."""
        before = _report(self.folder)
        reported = {str(name): str(value) for name, value in dict(before.get("settings") or {}).items()}
        kept = {"judge_failures": dict(judge_failures(self.folder))} if "judge_failures" in before else {}
        return summarise(self.results, reported | self.settings) | kept

    def traces(self, results: Iterable[QuestionResult] | None = None) -> Iterable[Trace]:
        """The traces of these results, by default of all."""
        wanted = self.results if results is None else results
        return read_traces(self.folder / TRACES, (result.trace for result in wanted if result.trace))


def read_run(folder: Path) -> StoredRun:
    """Read what an evaluation with --out kept.

    Raises:
        SetupError: it is no such folder, or a file in it is damaged.
    """
    path = folder / RESULTS
    try:
        lines = read_file(path, most=WHOLE_BYTES).splitlines(keepends=True)
        settings = dict(json.loads(read_file(folder / RUN, most=MIB)))
    except OSError as error:
        why = f"{error.filename}: {error.strerror}"
        raise SetupError(f"{folder} has no run ({why}); make one with cairn eval --out {folder}") from error
    except (ValueError, TypeError) as error:
        raise SetupError(f"{folder / RUN} is damaged; run the evaluation again into another --out") from error
    results: dict[str, QuestionResult] = {}
    for number, line in enumerate(lines, start=1):
        try:
            result = QuestionResult.model_validate_json(line)
        except ValidationError as error:
            if number == len(lines) and not line.endswith(b"\n"):
                break  # cut off by a kill
            raise SetupError(f"{path}, line {number} is not a result; remove the line to continue") from error
        results[result.id] = result
    if not results:
        raise SetupError(f"{path} has no results yet; run the evaluation first")
    return StoredRun(folder, {str(k): str(v) for k, v in settings.items()}, tuple(results.values()))


def write_report(
    folder: Path,
    figures: Figures,
    results: Sequence[QuestionResult],
    *,
    title: str,
    measured: str = "",
    html: bool = True,
) -> list[Path]:
    """Write report.json, report.md and, by default, report.html into a run's folder; returns their paths.

    Raises:
        SetupError: the folder cannot be written.
    """
    wanted = [result.trace for result in results if result.trace]
    texts = {
        "json": json.dumps({"title": title} | figures, indent=2, ensure_ascii=False) + "\n",
        "md": markdown(figures, title),
    }
    if html:
        texts["html"] = report_page(
            figures, results, lambda: read_traces(folder / TRACES, wanted), title=title, measured=measured or today()
        )
    return write(folder, {f"{REPORT}.{ending}": text for ending, text in texts.items()})


def write(folder: Path, texts: dict[str, str]) -> list[Path]:
    """Write files by their names.

    Raises:
        SetupError: the folder cannot be written.
    """
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            path = folder / name
            with open(path, "w", encoding="utf-8", errors="replace", newline="\n", opener=no_link) as file:
                file.write(text)
            written.append(path)
    except OSError as error:
        raise SetupError(f"the report cannot be written to {folder}: {error.strerror or error}") from error
    return written


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def judge_failures(folder: Path) -> Counter[str]:
    """How often and why a judge gave no verdict in earlier sessions, which only their report knows."""
    found = _report(folder).get("judge_failures")
    counts = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    return Counter({why: number for why, number in counts.items() if isinstance(number, int)})


def _report(folder: Path) -> dict[str, Any]:
    """What an earlier report of the folder says, or nothing."""
    try:
        return dict(json.loads(read_file(folder / f"{REPORT}.json", most=WHOLE_BYTES)))
    except (OSError, ValueError, TypeError):
        return {}
