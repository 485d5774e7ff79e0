import asyncio
import gc
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, create_engine, text

from agent.errors import SetupError
from server.store.database import Database, default_path, url_of
from server.store.errors import StoreError
from server.store.tables import METADATA


def test_a_setting_names_a_file_a_memory_or_a_server():
    assert url_of("").database == str(default_path())
    assert url_of("~/runs.sqlite").database == str(Path("~/runs.sqlite").expanduser())
    assert url_of("sqlite:///runs.sqlite").drivername == "sqlite+aiosqlite"
    server = url_of("postgres://me:secret@host:5433/cairn?sslmode=require")
    assert (server.drivername, server.query) == ("postgresql+asyncpg", {"ssl": "require"})
    assert "secret" not in Database("postgresql://me:secret@host/cairn").name


def test_members_that_hosts_put_into_urls_are_taken(postgres_url: str):
    async def main() -> tuple[str, str]:
        members = "connect_timeout=7&application_name=cairn&channel_binding=prefer&pgbouncer=true&sslmode=disable"
        database = Database(f"{postgres_url}&{members}&target_session_attrs=any&sslrootcert=/no/such/file")
        async with database.reading() as connection:
            named = (await connection.execute(text("SHOW application_name"))).scalar_one()
        await database.aclose()
        return named, database.name

    named, shown = asyncio.run(main())
    assert named == "cairn"
    assert "connect_timeout" not in shown, "libraries are kept under a name of the database alone"


def test_a_certificate_is_read_where_the_url_names_it(tmp_path: Path):
    async def main() -> None:
        missing = tmp_path / "root.crt"
        database = Database(f"postgresql://me@127.0.0.1:9/cairn?sslmode=verify-full&sslrootcert={missing}")
        with pytest.raises(StoreError, match="No such file"):
            await database.ready()
        await database.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("member", ["options=secret", "connect_timeout=secret", "conect_timeout=9"])
def test_another_member_is_refused_by_its_name(member: str):
    with pytest.raises(SetupError, match=member.partition("=")[0]) as error:
        Database(f"postgresql://me@host/cairn?{member}")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("wrong", ["mysql://host/cairn", "postgresql://host:port/cairn"])
def test_another_kind_of_database_is_refused(wrong: str):
    with pytest.raises(SetupError, match="postgresql://host/database"):
        url_of(wrong)


def test_the_migrations_make_the_tables_that_the_code_uses(location: str):
    def ours(name: str | None, kind: str, _: object) -> bool:
        return kind != "table" or name in METADATA.tables

    def differences(connection: Connection) -> list[object]:
        return compare_metadata(MigrationContext.configure(connection, opts={"include_name": ours}), METADATA)

    async def main() -> list[object]:
        database = Database(location)
        async with database.reading() as connection:
            found = await connection.run_sync(differences)
        await database.aclose()
        return found

    assert asyncio.run(main()) == []


def test_an_older_database_is_upgraded_and_keeps_what_it_holds(tmp_path: Path):
    path = tmp_path / "old.sqlite"
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", "server.store:migrations")
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.execute(
            text(
                "INSERT INTO runs (id, question, origin, model, protocol, policy, state, created, trace) "
                "VALUES ('a', 'Why?', 'v1', 'cairn', 'cairn', 'p', 'answered', 1, '{}')"
            )
        )
    engine.dispose()

    async def main() -> tuple[object, object]:
        database = Database(str(path))
        async with database.reading() as connection:
            kept = (await connection.execute(text("SELECT id, question FROM runs"))).one()
            version = (await connection.execute(text("SELECT version_num FROM alembic_version"))).scalar_one()
            assert (await connection.execute(text("SELECT count(*) FROM keys"))).scalar_one() == 0
        await database.aclose()
        return tuple(kept), version

    assert asyncio.run(main()) == (("a", "Why?"), "0007")


def test_a_database_of_a_newer_cairn_is_refused_and_not_touched(location: str):
    if location == "memory":
        pytest.skip("no other database has it")

    async def main() -> None:
        database = Database(location)
        async with database.writing() as connection:
            await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        await database.aclose()
        again = Database(location)
        with pytest.raises(
            StoreError, match=r"a newer Cairn wrote it; update this one, .*\(its version is 9999\)"
        ) as error:
            await again.ready()
        assert error.value.kind == "newer"
        await again.aclose()

    asyncio.run(main())


def test_many_processes_may_open_a_new_database_at_the_same_time(location: str):
    if location == "memory":
        pytest.skip("no other database has it")

    async def main() -> None:
        databases = [Database(location) for _ in range(4)]
        await asyncio.gather(*(database.ready() for database in databases))
        for database in databases:
            await database.aclose()

    asyncio.run(main())


def test_a_locked_database_is_a_typed_error(tmp_path: Path):
    async def main() -> StoreError:
        database = Database(str(tmp_path / "runs.sqlite"), busy_seconds=0.05)
        await database.ready()
        other = sqlite3.connect(tmp_path / "runs.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            with pytest.raises(StoreError, match="another program is using it") as error:
                async with database.writing():
                    pass
        finally:
            other.close()
        async with database.writing() as connection:
            assert (await connection.execute(text("SELECT 1"))).scalar_one() == 1
        await database.aclose()
        return error.value

    assert asyncio.run(main()).kind == "locked"


def test_a_file_that_is_locked_for_a_moment_is_waited_for_at_the_start(tmp_path: Path):
    path = tmp_path / "runs.sqlite"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("CREATE TABLE other (value)")
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO other VALUES (1)")  # SQLite refuses to change the journal now, without waiting

    async def main() -> None:
        hasty, patient = Database(str(path), busy_seconds=0.05), Database(str(path), busy_seconds=30)
        with pytest.raises(StoreError, match="another program is using it"):
            await hasty.ready()
        opening = asyncio.create_task(patient.ready())
        await asyncio.sleep(0.3)
        assert not opening.done()
        other.execute("ROLLBACK")
        await asyncio.wait_for(opening, 20)
        for database in (hasty, patient):
            await database.aclose()

    try:
        asyncio.run(main())
    finally:
        other.close()


async def fill(database: Database) -> None:
    async with database.writing() as connection:
        await connection.exec_driver_sql(
            "INSERT INTO keys (id, name, digest, limits, created) VALUES ('a', ?, 'd', '{}', 1)", ("x" * 1_000_000,)
        )


def test_a_full_disk_is_a_typed_error_and_what_was_there_stays(tmp_path: Path):
    async def main() -> StoreError:
        database = Database(str(tmp_path / "runs.sqlite"), connections=1)
        async with database.writing() as connection:
            pages = (await connection.exec_driver_sql("PRAGMA page_count")).scalar_one()
            await connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
        with pytest.raises(StoreError, match="the disk is full") as error:
            await fill(database)
        async with database.reading() as connection:
            assert (await connection.execute(text("SELECT count(*) FROM keys"))).scalar_one() == 0
        await database.aclose()
        return error.value

    error = asyncio.run(main())
    assert error.kind == "full"
    assert "xxx" not in str(error)


def test_a_server_that_is_not_there_is_a_typed_error(tmp_path: Path):
    async def main() -> None:
        database = Database(f"postgresql://me:secret@/cairn?host={tmp_path}")
        with pytest.raises(StoreError, match="cannot be reached") as error:
            await database.ready()
        assert "secret" not in str(error.value)
        await database.aclose()

    asyncio.run(main())


def test_a_file_that_is_no_database_is_a_typed_error(tmp_path: Path):
    (tmp_path / "runs.sqlite").write_text("a letter\n" * 200, encoding="utf-8")

    async def main() -> None:
        database = Database(str(tmp_path / "runs.sqlite"))
        with pytest.raises(StoreError, match="not a database") as error:
            await database.ready()
        assert error.value.kind == "broken"
        await database.aclose()

    asyncio.run(main())
    assert (tmp_path / "runs.sqlite").read_text(encoding="utf-8").startswith("a letter")


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Python collects no garbage meanwhile: a server freezes what it has loaded, and collects the rest seldom."""
    gc.disable()
    yield
    gc.enable()
    gc.collect()


@pytest.mark.usefixtures("uncollected")
def test_a_write_that_is_cancelled_leaves_no_lock(tmp_path: Path):
    path, chance = tmp_path / "runs.sqlite", random.Random(1)

    async def write(database: Database) -> None:
        async with database.writing() as connection:
            for _ in range(3):
                await connection.execute(text("INSERT INTO t VALUES (1)"))
                await connection.execute(text("SELECT * FROM t"))

    async def main() -> list[int]:
        database, locked = Database(str(path)), list[int]()
        async with database.writing() as connection:
            await connection.execute(text("CREATE TABLE t (x)"))
        for attempt in range(200):
            task = asyncio.create_task(write(database))
            await asyncio.sleep(chance.random() * 0.006)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            with closing(sqlite3.connect(path, timeout=2)) as other:
                try:
                    other.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError:
                    locked.append(attempt)
        await database.aclose()
        return locked

    assert asyncio.run(main()) == []
