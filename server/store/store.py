"""The store of one process: its database, and what it reads and writes there of runs, keys and libraries."""

from uuid import uuid4

from server.store.batches import FileBatches
from server.store.database import Database
from server.store.keys import StoredKeys
from server.store.libraries import LibraryRows
from server.store.reading import RunReads
from server.store.reports import StoredReports
from server.store.writing import RunWrites

LEASE_SECONDS = 10.0


class RunStore:
    """One database with everything that is kept in it."""

    def __init__(self, database: Database, *, owner: str = "", lease_seconds: float = LEASE_SECONDS) -> None:
        """Keep runs in a database.

        Args:
            database: opened when it is first used.
            owner: id of this process; a new one by default.
            lease_seconds: how long its runs are its own without word of it.
        """
        self.database = database
        self.owner = owner or uuid4().hex
        self.lease_seconds = lease_seconds
        self.writes = RunWrites(database, owner=self.owner, lease_seconds=lease_seconds)
        self.reads = RunReads(database, owner=self.owner)
        self.reports = StoredReports(database, owner=self.owner, lease_seconds=lease_seconds)
        self.keys = StoredKeys(database)
        self.libraries = LibraryRows(database)
        self.batches = FileBatches(database)

    async def aclose(self) -> None:
        """Close the database."""
        await self.database.aclose()
