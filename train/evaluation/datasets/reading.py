"""From a published file to questions, and to the corpus of the paragraphs that come with them."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from agent.errors import CorpusError
from agent.files.foreign import open_file
from agent.sources.corpus.documents import line_problem
from agent.sources.questions import GoldQuestion
from train.evaluation.datasets.base import NOTHING_BESIDE, AnswerAliases, Paragraph, PublishedQuestion, Row
from train.evaluation.datasets.files import read_rows
from train.evaluation.datasets.registry import FORMATS, Format, recognised

ALIASES: Final = "id_aliases.json"
"""The file of 2WikiMultiHopQA that adds other names of answers."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Questions with where they come from."""

    name: str
    label: str
    path: Path
    sha256: str
    """Of the file."""
    questions: list[GoldQuestion]


def read_dataset(path: Path, name: str | None = None) -> Dataset:
    """Read a file of questions in any published form.

    Args:
        path: the file.
        name: of its form, one of `FORMATS`; without it the first row decides.

    Raises:
        CorpusError: the file cannot be read, is of no known form or not of the one that was named, has a row that is
            no question, or an id twice. The sentence says what was expected.
    """
    form, rows = _rows(path, name)
    beside = _beside(path) if form.name == "2wikimultihopqa" else NOTHING_BESIDE
    questions: dict[str, GoldQuestion] = {}
    for number, (where, row) in enumerate(rows, start=1):
        question = _question(row, number, beside, where=where, form=form)
        if question.id in questions:
            raise CorpusError(f"{where}: the id {question.id!r} occurs twice; give every question its own")
        questions[question.id] = question
    label = form.label if form.name != "cairn" else path.name
    return Dataset(form.name, label, path, _sha256(path), list(questions.values()))


def _sha256(path: Path) -> str:
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_paragraphs(path: Path, name: str | None = None) -> Iterator[Paragraph]:
    """The paragraphs that come with the questions of a file, each once.

    Raises:
        CorpusError: as `read_dataset`.
    """
    seen: set[str] = set()
    for _, row in _rows(path, name)[1]:
        for paragraph in row.paragraphs():
            if paragraph.text and paragraph.id not in seen:
                seen.add(paragraph.id)
                yield paragraph


def write_corpus(path: Path, out: Path, name: str | None = None) -> int:
    """Write the paragraphs that come with a file's questions as a corpus that `cairn index build` takes.

    Returns:
        How many there are.

    Raises:
        CorpusError: as `read_dataset`; no paragraphs come with these questions; or `out` cannot be written.
    """
    rows = (
        json.dumps({"id": p.id, "title": p.title, "text": p.text}, ensure_ascii=False)
        for p in read_paragraphs(path, name)
    )
    written = _write(out, rows)
    if not written:
        out.unlink()
        raise CorpusError(f"no paragraphs come with the questions in {path}; search another corpus for them")
    return written


def write_questions(questions: list[GoldQuestion], out: Path) -> int:
    """Write questions as lines of the project's own form.

    Raises:
        CorpusError: `out` cannot be written.
    """
    return _write(out, (json.dumps(_plain(q), ensure_ascii=False) for q in questions))


def _plain(question: GoldQuestion) -> dict[str, Any]:
    return question.model_dump(exclude_defaults=True) | {"answers": question.answers}


def _write(out: Path, lines: Iterator[str]) -> int:
    written = 0
    try:
        with out.open("w", encoding="utf-8", newline="\n") as file:
            for line in lines:
                file.write(line + "\n")
                written += 1
    except OSError as error:
        raise CorpusError(f"{out} cannot be written: {error.strerror or error}") from error
    return written


def _rows(path: Path, name: str | None) -> tuple[Format, Iterator[tuple[str, PublishedQuestion]]]:
    """The form of a file, and its rows, each read as one of that form."""
    rows = read_rows(path)
    first = next(rows, None)
    if first is None:
        raise CorpusError(f"no questions in {path}; {expectations()}")
    form = _form(path, first[1], name)

    def read() -> Iterator[tuple[str, PublishedQuestion]]:
        yield first[0], _published(first[1], where=first[0], form=form)
        for where, row in rows:
            yield where, _published(row, where=where, form=form)

    return form, read()


def _form(path: Path, row: Row, name: str | None) -> Format:
    if name is not None and name not in FORMATS:
        raise CorpusError(f"unknown question set {name!r}; choose from: {', '.join(FORMATS)}")
    found = recognised(row)
    if name is None:
        if found is None:
            raise CorpusError(f"{path} has no known format; {expectations()}")
        return found
    form = FORMATS[name]
    if not form.fits(row):
        instead = f"; it looks like {found.label} ({found.name})" if found else ""
        raise CorpusError(f"{path} is not {form.label}, which is {form.expects}{instead}")
    return form


def expectations() -> str:
    """What may be given, in one sentence."""
    own = FORMATS["cairn"]
    others = ", ".join(form.label for form in FORMATS.values() if form is not own)
    return f"give {own.expects}, or a published file of {others}"


def _published(row: Row, *, where: str, form: Format) -> PublishedQuestion:
    try:
        return form.row.model_validate(row)
    except ValidationError as error:
        raise CorpusError(f"{where}: {line_problem(error)}; {form.label} is {form.expects}") from error


def _question(row: PublishedQuestion, number: int, beside: AnswerAliases, *, where: str, form: Format) -> GoldQuestion:
    try:
        return row.to_question(number, beside)
    except ValidationError as error:
        raise CorpusError(f"{where}: {line_problem(error)}; {form.label} is {form.expects}") from error


def _beside(path: Path) -> AnswerAliases:
    """The aliases in the file beside, if there is one."""
    file = path.with_name(ALIASES)
    if not file.is_file():
        return NOTHING_BESIDE
    aliases: dict[str, tuple[str, ...]] = {}
    for where, row in read_rows(file):
        try:
            aliases[str(row["Q_id"])] = (*row["aliases"], *row.get("demonyms", ()))
        except (KeyError, TypeError) as error:
            raise CorpusError(f'{where}: not a line of {ALIASES}, {{"Q_id", "aliases", "demonyms"}}') from error
    return AnswerAliases(aliases)
