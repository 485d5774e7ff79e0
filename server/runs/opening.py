"""From settings to a store and its run_manager, and the check that the store can be used before a server starts."""

import asyncio

from agent.errors import SetupError
from agent.settings.server import ServerSettings
from server.libraries.folder import LibraryFolder, folder_of
from server.libraries.manager import LibraryManager, Quota
from server.runs.manager import Retention, RunManager
from server.store import RunStore, StoreError
from server.store.database import Database
from server.store.keys import StoredKeys


def store_of(settings: ServerSettings) -> RunStore:
    """The store that the settings name. Nothing is opened yet.

    Raises:
        SetupError: it is none that can be used.
    """
    return RunStore(Database(settings.store.get_secret_value()), lease_seconds=settings.lease_seconds)


def run_manager_of(settings: ServerSettings) -> RunManager:
    """What keeps the runs of a server with these settings.

    Raises:
        SetupError: the store is none that can be used.
    """
    return RunManager(store_of(settings), retention=Retention(days=settings.store_days, runs=settings.store_runs))


def libraries_of(settings: ServerSettings, store: RunStore) -> LibraryManager:
    """What keeps the uploaded files of a server with these settings.

    Args:
        settings: of the server.
        store: that it keeps its runs in.
    """
    folder = LibraryFolder(settings.library_folder or folder_of(store.database))
    quota = Quota(settings.file_bytes, settings.library_bytes, settings.library_files)
    return LibraryManager(store, folder, quota=quota)


def check_store(settings: ServerSettings) -> None:
    """Open the store once, and bring it up to date.

    Raises:
        SetupError: it cannot be used; the sentence says why.
    """

    async def check() -> None:
        store = store_of(settings)
        try:
            await store.database.ready()
        except StoreError as error:
            raise SetupError(f"{error}: {store.database.name}") from error
        finally:
            await store.aclose()

    asyncio.run(check())


def keys_exist(settings: ServerSettings) -> bool:
    """Whether there ever was a key. A store that is not there yet is not made for that.

    Raises:
        SetupError: the store cannot be used.
    """

    async def look() -> bool:
        database = Database(settings.store.get_secret_value())
        if database.dialect == "sqlite" and not (database.file and database.file.exists()):
            return False
        try:
            return bool(await StoredKeys(database).keys())
        except StoreError as error:
            raise SetupError(f"{error}: {database.name}") from error
        finally:
            await database.aclose()

    return asyncio.run(look())
