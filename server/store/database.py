"""One database: SQLite in a file, or PostgreSQL by URL. It opens it, brings it up to date, and hands out transactions.

Its queries are written elsewhere. Whatever it raises leaves as `StoreError`.
"""

import asyncio
import re
import sqlite3
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode
from uuid import uuid4

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from platformdirs import user_data_path
from sqlalchemy import Connection, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool, NullPool

from agent.errors import SetupError
from agent.files.own import private_file, private_folder
from server.store.errors import StoreError, typed_errors
from server.store.serial import read_text

MEMORY: Final = "memory"
_TAKEN: Final = frozenset(
    {"sslmode", "ssl", "host", "port", "target_session_attrs", "passfile", "gsslib", "krbsrvname"}
)
"""Members of a PostgreSQL's URL that the driver takes by their names …"""
_IN_DSN: Final = frozenset("application_name sslrootcert sslcert sslkey sslcrl sslpassword".split())
"""… those that it reads in a URL of its own …"""
_IGNORED: Final = frozenset({"channel_binding", "pgbouncer"})
"""… and those of other clients, which hosts put into the URLs that they hand out: the driver does without them."""
_LOCK: Final = 7223160410
"""Of PostgreSQL's advisory locks: one process at a time migrates."""
_WRITES: Final = "cairn_writes"
_AGAIN_SECONDS: Final = 0.05
"""Between two tries to open a file that is locked."""
_PRAGMAS: Final = (
    "PRAGMA auto_vacuum=INCREMENTAL",
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=NORMAL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA secure_delete=ON",  # what is deleted is overwritten
    "PRAGMA cache_size=-512",  # KiB of each connection; the system's own cache has the whole file
)


def default_path() -> Path:
    """Where runs are kept by default."""
    return user_data_path("cairn", appauthor=False) / "runs.sqlite"


def url_of(store: str) -> URL:
    """The database that a setting names.

    Args:
        store: empty (the default file), `memory`, a file's path, or a URL that begins with sqlite: or postgresql:.

    Raises:
        SetupError: it is a URL of something else.
    """
    if store == MEMORY:
        database = f"file:cairn-{uuid4().hex}"
        return URL.create(
            "sqlite+aiosqlite", database=database, query={"mode": "memory", "cache": "shared", "uri": "true"}
        )
    if "://" not in store:
        path = Path(store).expanduser() if store else default_path()
        return URL.create("sqlite+aiosqlite", database=str(path))
    try:
        url = make_url(store)
    except (ArgumentError, ValueError):  # what it says may hold the password
        raise SetupError("the store's URL cannot be parsed; write it as postgresql://host/database") from None
    match url.get_backend_name():
        case "sqlite":
            return url.set(drivername="sqlite+aiosqlite")
        case "postgresql" | "postgres":
            if find_spec("asyncpg") is None:
                raise SetupError("PostgreSQL needs one more package: pip install 'cairn-search[postgres]'")
            if unknown := url.query.keys() - _TAKEN - _IN_DSN - _IGNORED - {"connect_timeout"}:
                named = ", ".join(sorted(unknown))
                raise SetupError(f"the store's URL has {named}, which Cairn does not know; leave it out")
            query = {("ssl" if name == "sslmode" else name): url.query[name] for name in url.query if name in _TAKEN}
            return url.set(drivername="postgresql+asyncpg", query=query)
        case other:
            raise SetupError(f"the store cannot be {other}; name a file, or a database as postgresql://host/database")


def _connect_args(store: str) -> dict[str, Any]:
    """What the driver takes beside the URL that `url_of` makes of a PostgreSQL's.

    Raises:
        SetupError: a member of the URL is wrong.
    """
    given = {name: value if isinstance(value, str) else value[-1] for name, value in make_url(store).query.items()}
    seconds = given.get("connect_timeout", "10")
    if not re.fullmatch(r"\d{1,6}", seconds, re.ASCII):
        raise SetupError("connect_timeout of the store's URL is no whole number of seconds; write it as 10")
    args: dict[str, Any] = {"timeout": int(seconds) or None, "command_timeout": 30}
    read_by_driver = {name: value for name, value in given.items() if name in _IN_DSN}
    return args | ({"dsn": f"postgresql://?{urlencode(read_by_driver)}"} if read_by_driver else {})


class Database:
    """Transactions on one database. Nothing is opened before the first one, or before `ready`."""

    def __init__(self, store: str = "", *, busy_seconds: float = 5.0, connections: int = 4) -> None:
        """Name a database.

        Args:
            store: as `url_of` reads it.
            busy_seconds: how long a lock of another process is waited for.
            connections: at most; an in-memory database has one.

        Raises:
            SetupError: it is no database that can be used.
        """
        self.url = url_of(store)
        self.dialect = self.url.get_backend_name()
        self.file = Path(self.url.database or "") if self.dialect == "sqlite" and store != MEMORY else None
        args = _connect_args(store) if self.dialect == "postgresql" else {"factory": _Unlocking}
        self._engine: AsyncEngine = _engine(self.url, connections=1 if store == MEMORY else connections, args=args)
        self._busy_seconds = busy_seconds
        self._prepare()
        postgres = self.dialect == "postgresql"
        self._reader = self._engine.execution_options(isolation_level="REPEATABLE READ") if postgres else self._engine
        self._opening = asyncio.Lock()
        self._open = False
        self._anchor: AsyncConnection | None = None
        """Keeps a database in memory alive while it is not used."""

    @property
    def name(self) -> str:
        """For people: the file, or the URL without its password."""
        if self.dialect == "sqlite":
            return str(self.file or MEMORY)
        return self.url.render_as_string(hide_password=True)

    async def ready(self) -> None:
        """Open it and bring it up to date, once.

        Raises:
            StoreError: it cannot be used, or a newer Cairn wrote it.
        """
        async with self._opening:
            late = time.monotonic() + self._busy_seconds
            while not self._open:
                try:
                    await self._bring_up()
                except StoreError as error:
                    # SQLite does not wait for a file whose last connection is being closed elsewhere, or whose journal
                    # changes: a server that follows another one may meet that.
                    if error.kind != "locked" or time.monotonic() >= late:
                        raise
                    await asyncio.sleep(_AGAIN_SECONDS)
                else:
                    self._open = True

    async def _bring_up(self) -> None:
        async with typed_errors():
            if self.file and self.url.database not in {None, "", ":memory:"} and "uri" not in self.url.query:
                private_folder(self.file.absolute().parent)
                private_file(self.file)  # SQLite gives its logs the mode of the file
            if self.dialect == "sqlite" and not self.file:
                self._anchor = await create_async_engine(self.url, poolclass=NullPool).connect()
            async with self._engine.execution_options(**{_WRITES: True}).begin() as connection:
                if self.dialect == "postgresql":
                    await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
                await connection.run_sync(_migrate)

    @asynccontextmanager
    async def reading(self) -> AsyncGenerator[AsyncConnection]:
        """A transaction that writes nothing and sees one moment.

        Raises:
            StoreError: anything failed.
        """
        await self.ready()
        async with typed_errors(), self._reader.connect() as connection:
            yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncGenerator[AsyncConnection]:
        """A transaction that is committed at the end, or rolled back where anything fails.

        Raises:
            StoreError: anything failed; nothing was written.
        """
        await self.ready()
        async with typed_errors(), self._engine.execution_options(**{_WRITES: True}).begin() as connection:
            yield connection

    async def shrink(self, *, log: bool = False) -> None:
        """Give freed pages back to the file system; PostgreSQL does that by itself.

        Args:
            log: empty SQLite's log, too, which holds what was deleted; where another connection reads, later.
        """
        if self.dialect == "sqlite":
            async with self.writing() as connection:
                driver: Any = (await connection.get_raw_connection()).driver_connection
                await driver.executescript("PRAGMA incremental_vacuum(2000)")  # `execute` frees one page and stops
            if log:
                async with typed_errors(), self._engine.connect() as connection:
                    driver = (await connection.get_raw_connection()).driver_connection
                    await driver.executescript("PRAGMA wal_checkpoint(TRUNCATE)")

    async def aclose(self) -> None:
        """Close every connection."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._engine.dispose)
            anchor, self._anchor = self._anchor, None
            if anchor is not None:
                stack.push_async_callback(anchor.close)
            self._open = False

    def _prepare(self) -> None:
        """Have SQLite begin its transactions when we say so: one that will write takes the lock before it reads."""
        if self.dialect != "sqlite":
            return
        engine = self._engine.sync_engine

        @event.listens_for(engine, "connect")
        def _on_connect(connection: Any, _record: object) -> None:  # pyright: ignore[reportUnusedFunction]
            connection.isolation_level = None
            connection.driver_connection.text_factory = read_text  # one text that is no UTF-8 would fail every list
            cursor = connection.cursor()
            try:
                cursor.execute(f"PRAGMA busy_timeout={round(self._busy_seconds * 1000)}")
                for pragma in _PRAGMAS:
                    cursor.execute(pragma)
            except BaseException:  # the pool has not taken it yet, and would leave it open
                connection.close()
                raise
            cursor.close()

        @event.listens_for(engine, "begin")
        def _on_begin(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]
            writes = connection.get_execution_options().get(_WRITES, False)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


class _Unlocking(sqlite3.Connection):
    """A connection that ends its transaction before it is closed.

    A request that is cancelled leaves its cursor behind. SQLite then keeps the connection, and with it the lock on the
    file, until Python collects the cursor: perhaps minutes.
    """

    def close(self) -> None:
        if self.in_transaction:
            self.rollback()
        super().close()


def _engine(url: URL, *, connections: int, args: dict[str, Any]) -> AsyncEngine:
    return create_async_engine(
        url,
        poolclass=AsyncAdaptedQueuePool,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=30,
        pool_pre_ping=url.get_backend_name() == "postgresql",
        hide_parameters=True,
        connect_args=args,
    )


def _migrate(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", "server.store:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    scripts = ScriptDirectory.from_config(config)
    found = MigrationContext.configure(connection).get_current_revision()
    if found is not None and found not in {script.revision for script in scripts.walk_revisions()}:
        raise StoreError("newer", f"its version is {found}")
    if found != scripts.get_current_head():
        command.upgrade(config, "head")
