"""Keys of clients and what they used by day, as the guard asks for them. Only digests of keys are ever here."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime
from typing import Any, cast

from sqlalchemy import CursorResult, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from server.auth.keys import ApiKey, KeyLimits
from server.auth.usage import Used
from server.store.database import Database
from server.store.serial import storable
from server.store.tables import KEYS, USAGE


class StoredKeys:
    """The guard's `KeyStore` on a database. Each call raises `StoreError` where the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keys(self) -> Sequence[ApiKey]:
        """All of them, in the order in which they were made; also those that were revoked."""
        async with self._database.reading() as connection:
            rows = (await connection.execute(select(KEYS).order_by(KEYS.c.created, KEYS.c.id))).all()
        return [
            ApiKey(
                id=row.id,
                name=row.name,
                digest=row.digest,
                created=datetime.fromtimestamp(row.created, UTC),
                limits=KeyLimits(**json.loads(row.limits)),
                revoked=None if row.revoked is None else datetime.fromtimestamp(row.revoked, UTC),
            )
            for row in rows
        ]

    async def add_key(self, key: ApiKey) -> None:
        row = {
            "id": key.id,
            "name": storable(key.name),
            "digest": key.digest,
            "limits": json.dumps(asdict(key.limits)),
            "created": key.created.timestamp(),
            "revoked": key.revoked and key.revoked.timestamp(),
        }
        async with self._database.writing() as connection:
            await connection.execute(insert(KEYS).values(row))

    async def revoke_key(self, id: str, when: datetime) -> bool:
        """Whether there was such a key, not revoked yet."""
        revoked = update(KEYS).where(KEYS.c.id == id, KEYS.c.revoked.is_(None)).values(revoked=when.timestamp())
        async with self._database.writing() as connection:
            return cast(CursorResult[Any], await connection.execute(revoked)).rowcount > 0

    async def used(self, id: str, day: date) -> Used:
        """What the key used on that day, by all servers."""
        query = select(USAGE.c.tokens, USAGE.c.searches, USAGE.c.credits)
        async with self._database.reading() as connection:
            where = (USAGE.c.key_id == id, USAGE.c.day == day.isoformat())
            row = (await connection.execute(query.where(*where))).first()
        return Used(row.tokens, row.searches, row.credits) if row else Used()

    async def add_usage(self, id: str, day: date, used: Used) -> None:
        """Add to it; two servers that add at the same time are both counted."""
        into = (sqlite if self._database.dialect == "sqlite" else postgresql).insert(USAGE)
        amounts = asdict(used)
        more = {name: USAGE.c[name] + amount for name, amount in amounts.items()}
        row = {"key_id": id, "day": day.isoformat(), **amounts}
        async with self._database.writing() as connection:
            added = into.values(row).on_conflict_do_update(index_elements=["key_id", "day"], set_=more)
            await connection.execute(added)
