"""Checks of what lies on this machine: install, checkpoint, index, graph, world, plug-ins, cache, disk, port."""

import asyncio
import errno
import platform
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, cast

from agent import __version__
from agent.doctor.run import CheckResult, bad, ok, skipped, warn
from agent.errors import SourceError
from agent.files.own import NotPrivate, private_folder
from agent.outbound.urls import is_loopback, split_url
from agent.settings import CairnSettings
from agent.sources.base import SearchRequest, Source, ask, close_sources
from agent.sources.resilience.folder_store import FILE

EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "ddgs": ("ddgs",),
    "dense": ("sentence_transformers", "faiss"),
    "redis": ("redis",),
    "train": ("torch", "transformers", "safetensors"),
    "vllm": ("vllm",),
}
"""Extra of the package → the modules that it brings."""
FULL_BYTES: Final = 200 << 20
LOW_BYTES: Final = 2 << 30
REDIS_SECONDS: Final = 3.0
HOLDER_SECONDS: Final = 2.0
"""For who holds the port to say what it is."""


async def check_install() -> CheckResult:
    """Versions and extras; none of them is wrong by itself, the check that needs one says so."""
    there = [name for name, modules in EXTRAS.items() if all(map(find_spec, modules))]
    extras = f"with the extras {', '.join(there)}" if there else "without extras"
    return ok(f"Cairn {__version__} on Python {platform.python_version()}, {extras}")


async def check_checkpoint(settings: CairnSettings) -> CheckResult:
    """Every file of the embedded policy's checkpoint against its hash; the model itself is not loaded."""
    from agent.build.shipped import needs_small, newest_checkpoint
    from agent.policies.checkpoint import open_checkpoint

    if needs_small(settings):
        return await asyncio.to_thread(_of_small, settings)
    folder = settings.checkpoint or newest_checkpoint()
    found = await asyncio.to_thread(open_checkpoint, folder)
    if find_spec("ctranslate2") is None:
        return bad(f"{found.manifest.name} is whole, but ctranslate2 is missing", "pip install ctranslate2")
    return ok(f"the checkpoint {found.manifest.name} is whole, file by file")


def _of_small(settings: CairnSettings) -> CheckResult:
    """The package ships only the adapter of this policy: its base model is fetched."""
    from agent.build.shipped import SMALL
    from agent.models.fetch import at_hand
    from agent.models.wheel import DEFAULT

    if at_hand(DEFAULT):
        return ok(f"{SMALL.name} answers, and its base model {DEFAULT} is on this machine")
    if settings.fetch:
        return warn(f"the base model of {SMALL.name} is fetched with the first question", "cairn model fetch")
    return bad(f"{SMALL.name} lacks its base model, and `fetch` is off", "cairn model fetch")


async def check_protocol(settings: CairnSettings) -> CheckResult:
    from agent.build.agent import build_protocol

    protocol = build_protocol(settings)
    return ok(f"{protocol.name} can be read; at most {protocol.max_rounds} rounds")


async def check_world(settings: CairnSettings) -> CheckResult:
    """The little world answers where nothing else is configured."""
    from agent.world import load_world

    world = await asyncio.to_thread(load_world, settings.world)
    return ok(f"the little world {settings.world!r} answers as {', '.join(world.indexes)}")


async def check_corpus(settings: CairnSettings) -> CheckResult:
    """An index is opened with its models and searched; documents are only counted: to index them may take long."""
    from agent.sources.corpus.finding import find_files
    from agent.sources.corpus.folder import is_index
    from agent.sources.corpus.hybrid import open_corpus

    path = settings.corpus
    assert path is not None, "no corpus is set"
    if not is_index(path):
        found = await asyncio.to_thread(find_files, [path])
        return ok(f"{path} holds {len(found.files):,} files of documents; the first search indexes them")
    source = await asyncio.to_thread(open_corpus, path, mode=settings.retrieval, rerank=settings.rerank or None)
    failed = await _fails(source, f"the index {path}", f"build it again: cairn index build CORPUS --out {path}")
    return failed or ok(f"the index {path} is whole and answers")


async def check_graph(settings: CairnSettings) -> CheckResult:
    from agent.sources.kg.source import KgSource

    path = settings.kg
    assert path is not None, "no graph is set"
    source = await asyncio.to_thread(KgSource.open, path)
    failed = await _fails(source, f"the graph {path}", f"build it again: cairn kg build TRIPLES --out {path}")
    return failed or ok(f"the graph {path} can be read and answers")


async def check_plugin(name: str, options: Mapping[str, Any]) -> CheckResult:
    """A plug-in makes its source. It is not searched: only it knows what a query costs."""
    from agent.sources.plugins import installed, load_plugin

    source = await asyncio.to_thread(load_plugin, name, options)
    await close_sources([source])
    return ok(f"{installed()[name].value} makes its source")


async def _fails(source: Source, what: str, fix: str) -> CheckResult | None:
    try:
        await ask(source, SearchRequest("doctor", limit=1), seconds=10.0)
    except SourceError as error:
        return bad(f"{what} does not answer: {error}", fix)
    finally:
        await close_sources([source])
    return None


async def check_cache(where: str) -> CheckResult:
    """The query cache: searches go on without it, slower and dearer."""
    if not where:
        return skipped("switched off; every search goes to its backend")
    if "://" in where:
        return await _check_redis(where)
    return await asyncio.to_thread(_check_folder, where)


def _check_folder(where: str) -> CheckResult:
    folder = Path(where).expanduser()
    fix = "set cache (CAIRN_CACHE) to a folder that you may write to, or to '' for none"
    try:
        private_folder(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return bad(f"{folder} cannot be written to: {error.strerror}", fix)
    except NotPrivate as error:
        return bad(str(error), fix)
    database = folder / FILE
    if database.exists():
        try:
            connection = sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True, timeout=2.0)
            try:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            finally:
                connection.close()
        except sqlite3.Error as error:
            return bad(f"{database} cannot be read: {error}", f"remove the folder {folder}; it is made again")
    return ok(f"{folder} can be written to")


async def _check_redis(url: str) -> CheckResult:
    if not url.startswith(("redis://", "rediss://")):
        return bad("the cache's URL is not a redis:// URL", "set cache (CAIRN_CACHE) to a folder or a redis:// URL")
    if find_spec("redis") is None:
        return bad("the cache is in Redis, whose client is missing", "pip install 'cairn-search[redis]'")
    from redis.asyncio import Redis
    from redis.exceptions import RedisError

    at = _without_password(url)
    try:
        client = cast(Any, Redis).from_url(url, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS)
        try:
            await client.ping()
        finally:
            await client.aclose()
    except (RedisError, OSError, ValueError) as error:
        return bad(f"{at} does not answer ({type(error).__name__})", "start Redis, or correct cache (CAIRN_CACHE)")
    return ok(f"{at} answers")


def _without_password(url: str) -> str:
    parts = split_url(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


async def check_disk(settings: CairnSettings) -> CheckResult:
    """Room where the query cache, indices and traces are written."""
    room = await asyncio.to_thread(_room, settings.cache)
    place, free = min(room.items(), key=lambda item: item[1])
    says = f"{free / 2**30:,.1f} GB are free at {place}"
    fix = "free some space, or set cache (CAIRN_CACHE) to another disk"
    if free < FULL_BYTES:
        return bad(says, fix)
    return warn(says, fix) if free < LOW_BYTES else ok(says)


def _room(cache: str) -> dict[Path, int]:
    """Free bytes by folder."""
    from agent.sources.corpus.source import CACHE

    places = {CACHE, Path.cwd()}
    if cache and "://" not in cache:
        places.add(Path(cache).expanduser())
    return {folder: shutil.disk_usage(folder).free for folder in map(_existing, places)}


def _existing(path: Path) -> Path:
    """The folder itself, or the nearest one above it that there is."""
    return next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())


async def check_port(settings: CairnSettings) -> CheckResult:
    """Whether `cairn serve` could start here, or runs here already."""
    host, port = settings.host.strip("[]"), settings.port
    if not (is_loopback(host) or settings.insecure or settings.server_key.get_secret_value()):
        return warn(
            f"no server_key is set: at {host} the server starts only if its store has keys",
            "set CAIRN_SERVER_KEY, make a key with `cairn key add`, or allow everyone with insecure (--insecure)",
        )
    if port == 0:
        return ok(f"a free port of {host} is taken when the server starts")
    try:
        await asyncio.to_thread(_bind, host, port)
    except PermissionError:
        return bad(f"port {port} needs more privileges", "choose one above 1023 with port (--port)")
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            return bad(f"{host} cannot be served: {error.strerror}", "set host (--host) to an address of this machine")
        holder = await _holder(host, port)
        fix = "choose another with port (--port), or stop the program that uses it"
        return ok(f"{holder} serves on {host}:{port} already") if holder else bad(f"another program uses {port}", fix)
    return ok(f"{host}:{port} is free")


def _bind(host: str, port: int) -> None:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)


async def _holder(host: str, port: int) -> str:
    """The Cairn that holds the port; empty where it is something else."""
    from agent.sources.http import Api, make_client

    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    base = f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"
    async with make_client() as client:
        try:
            async with asyncio.timeout(HOLDER_SECONDS):
                version = await Api(client, name="it", base=base).get("/version")
        except (SourceError, TimeoutError):
            return ""
    facts = cast(dict[str, Any], version) if isinstance(version, dict) else {}
    return f"Cairn {facts.get('version')}" if facts.get("name") == "cairn-search" else ""
