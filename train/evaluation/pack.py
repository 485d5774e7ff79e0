"""A run's questions and traces as the small plain object that the HTML page shows.

Token ids and log-probabilities stay out; a text that occurs often (a passage, the protocol's rules) is kept once in
`texts`, and the raw context points there. `Level` says how much of long texts is kept.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ValidationError

from agent.errors import SetupError
from agent.evidence import Passage
from agent.files.foreign import open_file
from agent.sources.questions import gold_found
from agent.trace import Gathered, Searched, Segment, Step, Trace
from train.evaluation.gold import fold
from train.evaluation.metrics import NORMALISATION
from train.evaluation.report import verdict
from train.evaluation.result import QuestionResult

Packed = dict[str, Any]

_UNSHOWN: Final = {"trace", "metrics", "status", "supporting"}
SHARED: Final = 120
"""Characters from which a piece of a prompt is kept in the table of texts."""


@dataclass(frozen=True, slots=True)
class Level:
    """How much is kept of each text, in characters."""

    passage: int
    step: int
    raw: bool = True
    """Whether the raw context is kept."""
    traces: Literal["all", "not right", "none"] = "all"

    @property
    def note(self) -> str:
        """What a reader misses, in one sentence; said only where something was left out."""
        if self.traces == "none":
            return (
                "This run is too large for one page: it shows the figures and answers; the traces are in traces.jsonl."
            )
        parts = [f"passages are cut to {self.passage:,} characters and other texts to {self.step:,}"]
        parts += [] if self.raw else ["the raw text is left out"]
        parts += ["of right answers no trace is kept"] if self.traces == "not right" else []
        return f"To keep this page small, {'; '.join(parts)}. The whole is in traces.jsonl."


LEVELS: Final = (
    Level(passage=6_000, step=12_000),
    Level(passage=1_200, step=4_000),
    Level(passage=500, step=2_000, raw=False),
    Level(passage=200, step=800, raw=False),
    Level(passage=200, step=800, raw=False, traces="not right"),
    Level(passage=0, step=800, raw=False, traces="none"),
)


def pack(
    results: Sequence[QuestionResult],
    traces: Iterable[Trace],
    level: Level = LEVELS[0],
    *,
    normalisation: str = NORMALISATION,
) -> Packed:
    """The questions in the order of `results`, each with its trace where `traces` has it."""
    packer = _Packer(level, normalisation)
    wanted = {r.trace: r for r in results if r.trace and level.traces != "none"}
    shown = {
        trace.id: packer.trace(trace, wanted[trace.id].supporting)
        for trace in traces
        if trace.id in wanted and (level.traces == "all" or packer.verdict(wanted[trace.id]) != "right")
    }
    questions = [packer.question(result, shown.get(result.trace)) for result in results]
    cut = packer.cut or level.traces != "all" or not level.raw
    return {
        "questions": questions,
        "passages": packer.passages,
        "texts": packer.texts,
        "note": level.note if cut else "",
    }


def read_traces(path: Path, wanted: Iterable[str]) -> Iterator[Trace]:
    """The traces with these ids, one at a time.

    Raises:
        SetupError: the file cannot be read, or a line of it is no trace.
    """
    left = set(wanted)
    if not left or not path.exists():
        return
    try:
        lines = open_file(path)
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror or error}; remove it to continue") from error
    with lines:
        for number, line in enumerate(lines, start=1):
            found = _ID.search(line)
            if found and found.group(1).decode("utf-8", "replace") not in left:
                continue
            try:
                trace = Trace.model_validate_json(line)
            except ValidationError as error:
                if not line.endswith(b"\n"):
                    return  # cut off by a kill
                raise SetupError(f"{path}, line {number} is not a trace; remove the line to continue") from error
            if trace.id in left:
                left.discard(trace.id)
                yield trace


_ID: Final = re.compile(rb'^\{"version":1,"id":"([^"\\]*)"')


class _Packer:
    def __init__(self, level: Level, normalisation: str) -> None:
        self._level, self._normalisation = level, normalisation
        self.texts: list[str] = []
        self.passages: list[Packed] = []
        self.cut = False
        self._text_at: dict[str, int] = {}
        self._passage_at: dict[tuple[str, ...], int] = {}

    def verdict(self, result: QuestionResult) -> str:
        return verdict(result, self._normalisation)

    def question(self, result: QuestionResult, trace: Packed | None) -> Packed:
        packed = result.model_dump(mode="json", exclude=_UNSHOWN, exclude_defaults=True)
        packed["verdict"] = self.verdict(result)
        packed["metrics"] = {name: round(v, 4) for name, v in result.metrics.items() if v is not None}
        for name in ("prediction", "said", "detail"):
            if name in packed:
                packed[name] = self._short(packed[name])
        return packed | ({"trace": trace} if trace else {})

    def trace(self, trace: Trace, supporting: Sequence[str]) -> Packed:
        shown = [p for step in trace.steps if isinstance(step, Gathered | Searched) for p in step.passages]
        gold = {self._passage(p) for p in shown if _gold_names(p, supporting)}
        found = {name for p in trace.passages for name in _gold_names(p, supporting)}
        packed: Packed = {
            "protocol": trace.protocol,
            "policy": trace.policy,
            "steps": [self._step(step) for step in trace.steps],
            "gold": sorted(gold),
            "missing": [name for name in supporting if name not in found],
            "usage": _plain(trace.usage.model_dump()),
            "timings": _plain(trace.timings.model_dump()),
        }
        if trace.history:
            packed["history"] = [[self._short(text) for text in turn] for turn in trace.history]
        if self._level.raw:
            packed["raw"] = self._raw(trace)
        return packed

    def _step(self, step: Step) -> Packed:
        fields = step.model_dump(mode="json", exclude={"segments", "passages"})
        packed = {name: self._short(value) if isinstance(value, str) else value for name, value in fields.items()}
        packed["kind"] = step.kind
        if isinstance(step, Searched):
            packed["passages"] = [self._passage(p) for p in step.passages]
        elif isinstance(step, Gathered):
            packed["passages"] = [[self._passage(p), p.number, p.node] for p in step.passages]
        return _plain(packed)

    def _raw(self, trace: Trace) -> list[Packed]:
        """The context by author, each a list of texts and of places in `texts`."""
        known = {p.text for step in trace.steps if isinstance(step, Gathered) for p in step.passages if p.text}
        cutter = re.compile("|".join(re.escape(text) for text in sorted(known, key=len, reverse=True)) or r"(?!)")
        return [self._segment(segment, trace, cutter) for segment in trace.segments]

    def _segment(self, segment: Segment, trace: Trace, cutter: re.Pattern[str]) -> Packed:
        parts: list[str | int] = []
        if segment.by == "prompt":
            pieces = _around(segment.text, trace.question)
            parts = [self._text(piece) if len(piece) >= SHARED else piece for piece in pieces]
        elif segment.by == "policy":
            parts = [self._short(segment.text)]
        else:
            end = 0
            for found in cutter.finditer(segment.text):
                parts += [self._short(segment.text[end : found.start()]), self._shared_passage(found.group())]
                end = found.end()
            parts.append(self._short(segment.text[end:]))
        packed: Packed = {"by": segment.by, "parts": [part for part in parts if part != ""]}
        return packed if segment.branch == "main" else packed | {"branch": segment.branch}

    def _passage(self, passage: Passage) -> int:
        key = (passage.id, passage.source, passage.title, passage.text)
        if key not in self._passage_at:
            self._passage_at[key] = len(self.passages)
            fields = {"id": passage.id, "source": passage.source, "title": self._short(passage.title)}
            more = {name: value for name, value in (("url", passage.url), ("date", passage.date)) if value}
            self.passages.append(fields | more | {"text": self._shared_passage(passage.text)})
        return self._passage_at[key]

    def _shared_passage(self, text: str) -> int:
        return self._text(self._clip(text, self._level.passage))

    def _text(self, text: str) -> int:
        if text not in self._text_at:
            self._text_at[text] = len(self.texts)
            self.texts.append(text)
        return self._text_at[text]

    def _short(self, text: str) -> str:
        return self._clip(text, self._level.step)

    def _clip(self, text: str, limit: int) -> str:
        if len(text) <= limit:
            return text
        self.cut = True
        return f"{text[:limit]}… [cut: {len(text) - limit:,} more characters]"


def _gold_names(passage: Passage, supporting: Sequence[str]) -> set[str]:
    """Which gold names (ids, addresses, or folded titles) are this passage's."""
    return gold_found(supporting, [passage.id]) or {passage.url, fold(passage.title)} & set(supporting)


def _around(text: str, question: str) -> list[str]:
    """What stands before the question's last occurrence, the question, and the rest."""
    before, found, after = text.rpartition(question) if question else ("", "", text)
    return [before, found, after]


def _plain(fields: Mapping[str, Any]) -> Packed:
    """Numbers with three decimals: more is not read, and packs badly."""
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in fields.items()}
