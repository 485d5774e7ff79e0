import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

from server.auth.keys import ApiKey, KeyLimits, KeyStore, new_key
from server.auth.usage import Used
from server.store import RunStore
from server.store.database import Database


def test_keys_are_kept_with_their_limits_and_revoked_once(location: str):
    when = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)

    async def main() -> tuple[ApiKey, ApiKey, Sequence[ApiKey], list[bool]]:
        store = RunStore(Database(location))
        keys: KeyStore = store.keys
        _, one = new_key("one", KeyLimits(requests_per_minute=5, credits_per_day=0.5))
        _, two = new_key("two \x00")
        await keys.add_key(one)
        await keys.add_key(two)
        revoked = [await keys.revoke_key(id, when) for id in (one.id, one.id, "unknown")]
        found = await keys.keys()
        await store.aclose()
        return one, two, found, revoked

    one, two, found, revoked = asyncio.run(main())
    assert revoked == [True, False, False]
    assert list(found) == [replace(one, revoked=when), replace(two, name="two \ufffd")]


def test_usage_of_two_servers_at_the_same_time_is_added(location: str):
    day = date(2026, 5, 1)

    async def main() -> tuple[Used, Used]:
        database = Database(location)
        stores = [RunStore(database), RunStore(database if location == "memory" else Database(location))]
        async with asyncio.TaskGroup() as group:
            for at in range(20):
                group.create_task(
                    stores[at % 2].keys.add_usage("k", day, Used(tokens=3_000_000_000, searches=2, credits=0.5))
                )
        found = await stores[0].keys.used("k", day), await stores[1].keys.used("k", date(2026, 5, 2))
        for store in stores:
            await store.aclose()
        return found

    assert asyncio.run(main()) == (Used(tokens=60_000_000_000, searches=40, credits=10.0), Used())
