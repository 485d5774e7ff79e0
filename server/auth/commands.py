"""`cairn key`: make, list and revoke the keys of clients. A key is shown once, when it is made."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.markup import escape

from agent.cli.console import note, output, print_json, printable
from agent.cli.options import ConfigOption, JsonOption
from agent.errors import SetupError

if TYPE_CHECKING:
    from server.auth.keys import ApiKey, KeyLimits, KeyStore
    from server.auth.usage import Used

T = TypeVar("T")

key_app = typer.Typer(no_args_is_help=True, help="API keys: who may use the server, and how much.")

StoreOption = Annotated[
    str | None,
    typer.Option("--store", metavar="FILE|URL", help="The server's store.", show_default="from the settings"),
]


def register(app: typer.Typer) -> None:
    """Add the `key` commands."""
    app.add_typer(key_app, name="key")


@key_app.command("add")
def add(
    name: Annotated[str, typer.Argument(help="Who uses the key; shown in the list.")],
    requests: Annotated[int | None, typer.Option("--requests-per-minute", min=1, help="Requests of any kind.")] = None,
    runs: Annotated[int | None, typer.Option("--concurrent-runs", min=1, help="Runs at the same time.")] = None,
    tokens: Annotated[
        int | None, typer.Option("--tokens-per-day", min=1, help="Tokens read and written, by UTC day.")
    ] = None,
    searches: Annotated[int | None, typer.Option("--searches-per-day", min=1, help="By UTC day.")] = None,
    credits: Annotated[
        float | None, typer.Option("--credits-per-day", min=0, help="Credits of paid sources, by UTC day.")
    ] = None,
    store: StoreOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a key. It is printed on standard output, once: only its SHA-256 is stored.

    Limits that are left out don't apply. Once there is a key, every client
    needs one; running servers know new keys after two seconds.

    Example: cairn key add laptop

    Example: cairn key add partner --requests-per-minute 60 --concurrent-runs 4 --credits-per-day 500
    """
    from server.auth.keys import KeyLimits, new_key

    limits = KeyLimits(requests, runs, tokens, searches, credits)
    secret, key = new_key(name, limits)
    _with_store(store, config, lambda keys: keys.add_key(key))
    if as_json:
        print_json({"id": key.id, "name": name, "key": secret.get_secret_value(), "limits": asdict(limits)})
        return
    note(f"the key {key.id} of {name}; it is shown only once")
    output().print(secret.get_secret_value(), markup=False)


@key_app.command("list")
def list_keys(store: StoreOption = None, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the keys with their limits and what they used today.

    Example: cairn key list
    """

    async def read(keys: "KeyStore") -> "list[tuple[ApiKey, Used]]":
        today = datetime.now(UTC).date()
        return [(key, await keys.used(key.id, today)) for key in await keys.keys()]

    found = _with_store(store, config, read)
    if as_json:
        print_json({"keys": [_as_dict(key, used) for key, used in found]})
        return
    if not found:
        note("no keys yet; create one with: cairn key add NAME")
    for key, used in found:
        state = f"revoked {key.revoked:%Y-%m-%d}" if key.revoked else _limits(key.limits)
        spent = f"today {used.tokens:,} tokens, {used.searches:,} searches, {used.credits:g} credits"
        name = escape(printable(key.name))
        output().print(f"{key.id}  {name:20}  made {key.created:%Y-%m-%d}  {state}; {spent}")


@key_app.command("revoke")
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="As in the list.")],
    store: StoreOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Revoke a key. Running servers refuse it after two seconds; active runs continue.

    Example: cairn key revoke 1a2b3c4d
    """
    if not _with_store(store, config, lambda keys: keys.revoke_key(id, datetime.now(UTC))):
        raise SetupError(f"there is no key {printable(id)!r} that could be revoked; cairn key list shows them")
    if as_json:
        print_json({"id": id, "revoked": True})
    else:
        note(f"the key {id} is revoked")


def _with_store(store: str | None, config: "ConfigOption", use: "Callable[[KeyStore], Awaitable[T]]") -> T:
    """Open the store of the settings, use its keys, and close it.

    Raises:
        SetupError: it cannot be used.
    """
    from agent.settings import load_settings
    from server.store.database import Database
    from server.store.errors import StoreError
    from server.store.keys import StoredKeys

    settings = load_settings(config, store=store)

    async def run() -> T:
        database = Database(settings.store.get_secret_value())
        try:
            return await use(StoredKeys(database))
        except StoreError as error:
            raise SetupError(str(error)) from error
        finally:
            await database.aclose()

    return asyncio.run(run())


def _limits(limits: "KeyLimits") -> str:
    said = [f"{amount:,g} {name.replace('_', ' ')}" for name, amount in asdict(limits).items() if amount is not None]
    return ", ".join(said) or "no limits"


def _as_dict(key: "ApiKey", used: "Used") -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "created": key.created.isoformat(),
        "revoked": key.revoked.isoformat() if key.revoked else None,
        "limits": asdict(key.limits),
        "today": asdict(used),
    }
