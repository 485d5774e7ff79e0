"""Rows: finished rollouts as text, for `cairn train sft --rows`. A row knows no model; ids stay where there are some.

JSON lines, one row each. A rollout is one row, and each of its branches is another one.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from zlib import crc32

from pydantic import BaseModel, ConfigDict, ValidationError

from agent.errors import SetupError, wrong_fields
from agent.protocols import TextProtocol
from agent.trace import Author, Trace
from agent.trace.samples import context_of
from train.common.saving import replacing

HELD_OUT: Final = 16
"""One question in this many is kept back from training, to measure on."""


class RowPiece(BaseModel):
    """A segment of a context."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: Author
    text: str
    ids: tuple[int, ...] | None = None
    """As they were sampled or put there; they count for a tokenizer that reads the same text from them."""


class TrainingRow(BaseModel):
    """One context from its prompt to its end."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    trace: str
    """Id of the rollout."""
    branch: str = "main"
    question: str
    type: str = ""
    protocol: str
    policy: str
    """Who wrote it."""
    context: int = 0
    """The number of its pieces that belong to another row, where they are learned; here they are only read."""
    pieces: tuple[RowPiece, ...]

    @property
    def held_out(self) -> bool:
        """Whether it is measured on and never learned; all rows of a question are alike in this."""
        return crc32(self.question.encode()) % HELD_OUT == 0

    @property
    def kind(self) -> str:
        """Protocol and type of question, for the report."""
        return f"{self.protocol} {self.type or 'question'}"


def rows_of(trace: Trace, protocol: TextProtocol, *, type: str = "") -> list[TrainingRow]:
    """The rows of a rollout.

    The prompt that a trained policy of this protocol gets replaces a chat's, and a chat's branches are left out: it
    gets its instructions for them in other words.

    Args:
        trace: ended.
        protocol: of the trace.
        type: of its question.
    """
    chat = any(segment.ids is None for segment in trace.segments)
    rows: list[TrainingRow] = []
    for branch in ["main"] if chat else ["main", *trace.branches]:
        places = context_of(trace, branch)
        own = [place for place in places if trace.segments[place].branch == branch]
        if not own:
            continue
        pieces = [_piece(trace, place) for place in places]
        if chat:
            prompt = protocol.prompt_text(trace.question, history=trace.history)
            pieces = [RowPiece(by="prompt", text=prompt), *(piece for piece in pieces if piece.by != "prompt")]
        rows.append(
            TrainingRow(
                trace=trace.id,
                branch=branch,
                question=trace.question,
                type=type,
                protocol=trace.protocol,
                policy=trace.policy,
                context=0 if branch == "main" else len(places) - len(own),
                pieces=tuple(pieces),
            )
        )
    return rows


def _piece(trace: Trace, place: int) -> RowPiece:
    segment = trace.segments[place]
    return RowPiece(by=segment.by, text=segment.text, ids=segment.ids)


def write_rows(path: Path, rows: Iterable[TrainingRow]) -> int:
    """Write a file of rows, as a whole or not at all; gives how many there are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with replacing(path) as written, written.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            file.write(row.model_dump_json(exclude_defaults=True) + "\n")
            count += 1
    return count


def read_rows(path: Path) -> Iterator[TrainingRow]:
    """Read a file of rows.

    Raises:
        SetupError: it cannot be read, or a line of it is no row; the sentence names the line.
    """
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _row(line, where=f"{path}, line {number}")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"the rows in {path} cannot be read: {error}; `cairn train distill` writes some") from error


def _row(line: str, *, where: str) -> TrainingRow:
    try:
        return TrainingRow.model_validate_json(line)
    except ValidationError as error:
        wrong = wrong_fields(error, whole="the line", most=1)
        raise SetupError(f"{where} is no row: {wrong}") from error
