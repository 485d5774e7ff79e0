"""Whether a server's store holds keys of clients, asked once before it starts."""

import asyncio

from agent.errors import SetupError
from agent.settings.server import ServerSettings
from server.store.database import Database
from server.store.errors import StoreError
from server.store.keys import StoredKeys


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
