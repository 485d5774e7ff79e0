"""The answers of a study in one file beside its page: a study whose folder is elsewhere goes on from there.

One line for each job that is done: its entry of the ledger and, where it has questions, its answers by columns. A job
is taken from there only where its plan is the same to the letter.
"""

import lzma
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from agent.errors import SetupError
from lab.reproduce.evaluating import Answers, keep_answers, read_answers
from lab.reproduce.jobs import Job, answers_of
from lab.reproduce.ledger import Entry, Ledger, sha256_of
from lab.reproduce.study import Study
from train.common.saving import as_a_whole

ANSWERS_FILE: Final = Path("reproduction") / "answers.jsonl.xz"
"""Beside the page."""

Columns = dict[str, list[Any]]
"""`id`, `type` and each figure, with a value for each question."""


class KeptJob(BaseModel):
    """One line."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    job: str
    entry: Entry
    answers: Columns | None = None


def take(study: Study, jobs: Iterable[Job], ledger: Ledger, folder: Path) -> int:
    """Put into a study's folder what was kept beside a page.

    Args:
        study: with its folder.
        jobs: whose results are wanted; what its own folder began is left as it is.
        ledger: of that folder.
        folder: of the page; one without kept answers gives nothing.

    Returns:
        How many jobs were taken.

    Raises:
        SetupError: the file is damaged, or the study's folder cannot be written.
    """
    kept = _read(folder / ANSWERS_FILE)
    taken = 0
    for job in jobs:
        one = kept.get(job.name)
        if one is None or job.name in ledger.kept.jobs or one.entry.plan_sha256 != sha256_of(job.plan):
            continue
        if (out := answers_of(study, job)) is not None and one.answers is not None:
            out.mkdir(parents=True, exist_ok=True)
            keep_answers(_rows(one.answers), out)
        ledger.kept.jobs[job.name] = one.entry
        taken += 1
    ledger.write()
    return taken


def keep(study: Study, jobs: Sequence[Job], ledger: Ledger, folder: Path) -> None:
    """Write what is done beside the page; what was kept there of other jobs stays.

    Raises:
        SetupError: the file that is there is damaged.
    """
    kept = _read(folder / ANSWERS_FILE)
    for job in jobs:
        kept.pop(job.name, None)
        if ledger.has(job.name, job.plan):
            kept[job.name] = KeptJob(job=job.name, entry=ledger.kept.jobs[job.name], answers=_columns(study, job))
    lines = "".join(one.model_dump_json() + "\n" for _, one in sorted(kept.items()))
    (folder / ANSWERS_FILE).parent.mkdir(parents=True, exist_ok=True)
    with as_a_whole(folder / ANSWERS_FILE) as made:
        made.write_bytes(lzma.compress(lines.encode(), preset=9))


def _columns(study: Study, job: Job) -> Columns | None:
    out = answers_of(study, job)
    answers = None if out is None else read_answers(out)
    if not answers:
        return None
    names = dict.fromkeys(name for one in answers.values() for name in one)
    return {"id": list(answers), **{name: [one.get(name) for one in answers.values()] for name in names}}


def _rows(columns: Columns) -> Answers:
    names = [name for name in columns if name != "id"]
    return {key: {name: columns[name][at] for name in names} for at, key in enumerate(columns["id"])}


def _read(path: Path) -> dict[str, KeptJob]:
    if not path.exists():
        return {}
    try:
        lines = lzma.decompress(path.read_bytes()).decode().split("\n")
        return {one.job: one for one in map(KeptJob.model_validate_json, filter(None, lines))}
    except (OSError, lzma.LZMAError, ValueError) as error:
        raise SetupError(f"{path} cannot be read ({error}): remove it, or get it again") from error
