"""What is read about runs: one of them, lists of them with search, and the events of one."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from sqlalchemy import Row, Select, and_, func, or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.outbound.numbers import amount, count
from server.store.database import Database
from server.store.records import ORIGINS, STATES, OpenBlock, RunFigures, RunRow, State
from server.store.serial import read_text, storable
from server.store.tables import EVENTS, RUNS

_LISTED = [
    column
    for column in RUNS.c
    if column.name not in ("trace", "aside", "libraries", "open_block", "wish", "lease_until", "number")
]


@dataclass(frozen=True)
class RunQuery:
    """Which runs a list shall hold; what is left out does not matter."""

    key_id: str | None = None
    words: str = ""
    """All of them must begin a word of the question or the answer."""
    conversation: str | None = None
    state: str | None = None
    origin: str | None = None
    before: tuple[float, str] | None = None
    """(created, id) of the last run of the page before."""


@dataclass(frozen=True)
class Look:
    """A run at one moment."""

    row: RunRow
    steps: Sequence[tuple[int, str]]
    """(number, step as JSON) after the requested number."""
    total: int
    """Number of the last step."""
    open_block: OpenBlock


class RunReads:
    """Reads runs; `owner` is the process that asks."""

    def __init__(self, database: Database, *, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def get(self, run: str, *, key_id: str | None = None) -> RunRow | None:
        """One run.

        Args:
            run: its id.
            key_id: only where it was started with this key.

        Raises:
            StoreError: it could not be read.
        """
        query = select(*_LISTED).where(RUNS.c.id == run)
        if key_id is not None:
            query = query.where(RUNS.c.key_id == key_id)
        async with self._database.reading() as connection:
            found = (await connection.execute(query)).first()
        return self._row(found) if found else None

    async def beginning_with(self, prefix: str) -> list[str]:
        """The ids that begin so, the shortest first and two at most: enough to know whether it names one.

        Raises:
            StoreError: they could not be read.
        """
        query = select(RUNS.c.id).where(RUNS.c.id.startswith(storable(prefix), autoescape=True))
        query = query.order_by(func.length(RUNS.c.id)).limit(2)
        async with self._database.reading() as connection:
            return list((await connection.execute(query)).scalars())

    async def trace(self, run: str) -> str | None:
        """The trace as JSON; of a run that runs, as it began.

        Raises:
            StoreError: it could not be read.
        """
        async with self._database.reading() as connection:
            found = (await connection.execute(select(RUNS.c.trace).where(RUNS.c.id == run))).scalar_one_or_none()
        return None if found is None else read_text(found)

    async def metadata(self, run: str) -> str:
        """What is kept beside its trace; "" where there is nothing, or no such run.

        Raises:
            StoreError: it could not be read.
        """
        async with self._database.reading() as connection:
            found = (await connection.execute(select(RUNS.c.aside).where(RUNS.c.id == run))).scalar_one_or_none()
        return read_text(found or "")

    async def look(self, run: str, *, after: int = 0) -> Look | None:
        """A run with its steps after the step of that number, all of one moment.

        Raises:
            StoreError: it could not be read.
        """
        steps = select(EVENTS.c.seq, EVENTS.c.step).where(EVENTS.c.run == run).order_by(EVENTS.c.seq)
        async with self._database.reading() as connection:
            found = (await connection.execute(select(*_LISTED, RUNS.c.open_block).where(RUNS.c.id == run))).first()
            if found is None:
                return None
            new = [(seq, read_text(step)) for seq, step in await connection.execute(steps.where(EVENTS.c.seq > after))]
            total = new[-1][0] if new else await _last(connection, run)
        return Look(self._row(found), new, total, OpenBlock.from_json(read_text(found.open_block)))

    async def grown(self, run: str) -> list[tuple[str, str]]:
        """Of each step (the step, what the trace gained with it), as JSON.

        Raises:
            StoreError: it could not be read.
        """
        query = select(EVENTS.c.step, EVENTS.c.grown).where(EVENTS.c.run == run).order_by(EVENTS.c.seq)
        async with self._database.reading() as connection:
            return [(read_text(step), read_text(grown)) for step, grown in await connection.execute(query)]

    async def list(self, wanted: RunQuery, *, limit: int) -> list[RunRow]:
        """Runs, the latest first.

        Raises:
            StoreError: they could not be read.
        """
        query = self._matching(_narrowed(select(*_LISTED), wanted), wanted.words)
        query = query.order_by(RUNS.c.created.desc(), RUNS.c.id.desc()).limit(limit)
        async with self._database.reading() as connection:
            return [self._row(found) for found in await connection.execute(query)]

    def _matching(self, query: Select[Any], words: str) -> Select[Any]:
        sought = re.findall(r"\w+", words.replace("\x00", " "))
        if not sought:
            return query
        if self._database.dialect == "sqlite":
            match = " ".join(f'"{word}"*' for word in sought)
            rows = text("SELECT rowid FROM run_words WHERE run_words MATCH :match").bindparams(match=match)
            return query.where(RUNS.c.number.in_(rows.columns(RUNS.c.number)))
        said = RUNS.c.question.concat(" ").concat(func.coalesce(RUNS.c.answer, ""))
        return query.where(and_(*(said.regexp_match(rf"\m{word}", flags="i") for word in sought)))

    def _row(self, found: Row[Any]) -> RunRow:
        """A row that can be listed, whatever an older or broken version wrote: SQLite holds any value in any column."""
        return RunRow(
            id=found.id,
            conversation=read_text(found.conversation),
            question=read_text(found.question),
            answer=None if found.answer is None else read_text(found.answer),
            origin=ORIGINS.get(read_text(found.origin), "v1"),
            model=read_text(found.model),
            protocol=read_text(found.protocol),
            policy=read_text(found.policy),
            state=cast(State, found.state) if found.state in STATES else "interrupted",
            key_id=read_text(found.key_id),
            created=found.created if isinstance(found.created, int | float) else math.inf,  # SQLite sorts text above
            ended=amount(found.ended, most=LAST_SECOND),
            figures=_figures(found),
            mine=found.owner == self._owner,
        )


LAST_SECOND: Final = 253_402_300_799.0
"""Of the year 9999, since 1970: no later time can be written."""
MOST_STORED: Final = 2**53
"""Tokens of one run: JSON readers take no larger whole number."""


def _figures(found: Row[Any]) -> RunFigures:
    """The figures of a run; SQLite holds whatever an older version wrote, and what is no number counts as 0."""
    return RunFigures(
        seconds=amount(found.seconds) or 0.0,
        rounds=count(found.rounds) or 0,
        searches=count(found.searches) or 0,
        passages=count(found.passages) or 0,
        tokens=count(found.tokens, most=MOST_STORED) or 0,
        credits=amount(found.credits) or 0.0,
        usd=amount(found.usd) or 0.0,
    )


def _narrowed(query: Select[Any], wanted: RunQuery) -> Select[Any]:
    for column, value in (
        (RUNS.c.key_id, wanted.key_id),
        (RUNS.c.conversation, wanted.conversation),
        (RUNS.c.state, wanted.state),
        (RUNS.c.origin, wanted.origin),
    ):
        if value is not None:
            query = query.where(column == value)
    if wanted.before is not None:
        created, id = wanted.before
        query = query.where(or_(RUNS.c.created < created, and_(RUNS.c.created == created, RUNS.c.id < id)))
    return query


async def _last(connection: AsyncConnection, run: str) -> int:
    query = select(EVENTS.c.seq).where(EVENTS.c.run == run).order_by(EVENTS.c.seq.desc()).limit(1)
    return (await connection.execute(query)).scalar_one_or_none() or 0
