"""A store on each kind of database, empty at the beginning of each test; one PostgreSQL for all tests of the server."""

import asyncio
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from server.store.database import url_of
from tests.server.store.databases import postgres


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test on PostgreSQL waits until one is made."""
    for item in items:
        if "[postgres" in item.name or "-postgres" in item.name:
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def postgres_url() -> Generator[str]:
    with postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "memory", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """What the setting `store` would say."""
    match request.param:
        case "sqlite":
            yield str(tmp_path / "runs.sqlite")
        case "memory":
            yield "memory"
        case _:
            url: str = request.getfixturevalue("postgres_url")
            asyncio.run(emptied(url))
            yield url


async def emptied(url: str) -> None:
    """Drop everything that is in the database, no matter which test wrote it."""
    engine = create_async_engine(url_of(url))
    async with engine.begin() as connection:
        await connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        await connection.exec_driver_sql("CREATE SCHEMA public")
    await engine.dispose()
