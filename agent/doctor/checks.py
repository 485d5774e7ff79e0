"""Which checks the settings ask for. Nothing is looked at here."""

import asyncio
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, assert_never

from agent.doctor import local, remote
from agent.doctor.run import CheckResult, DoctorCheck, bad, ok, skipped, warn
from agent.errors import SetupError
from agent.settings import CairnSettings
from agent.settings.live import STANDALONE, needed
from agent.sources.base import credits_of
from agent.sources.plugins import BUILT_IN

if TYPE_CHECKING:
    import httpx2

    from agent.sources.resilience.resilient import Backend


_OPEN: Final = {"arxiv": "arxiv", "wiki": "mediawiki", "kg": "wikidata"}
"""Sources whose one backend needs no key."""


def checks_of(settings: CairnSettings, *, probe: bool = False) -> list[DoctorCheck]:
    """Every check that these settings ask for, in the order in which a person would look.

    Args:
        settings: what is configured.
        probe: ask paid backends one question each, too.
    """
    return [
        DoctorCheck("install", local.check_install),
        *_policy(settings, probe=probe),
        DoctorCheck("local models", partial(remote.check_local_servers, settings)),
        *_sources(settings, probe=probe),
        DoctorCheck("cache", partial(local.check_cache, settings.cache)),
        DoctorCheck("disk", partial(local.check_disk, settings)),
        DoctorCheck("port", partial(local.check_port, settings)),
    ]


def paid_probes(settings: CairnSettings) -> dict[str, float]:
    """What `probe` would cost at most: credits of each paid backend, by its name."""
    if not settings.is_live:
        return {}
    from agent.sources.http import make_client

    try:  # the client is never used: it opens nothing that must be closed
        made = _made(settings, make_client())
    except SetupError:
        return {}  # a key that cannot be one: its own check says so
    return {name: cost for name, backend in made.items() if name in _wanted(settings) and (cost := credits_of(backend))}


def _policy(settings: CairnSettings, *, probe: bool) -> list[DoctorCheck]:
    match settings.policy:
        case "embedded":
            check = partial(local.check_checkpoint, settings)
        case "transformers":
            check = partial(check_transformers, settings)
        case "vllm":
            check = partial(check_vllm, settings)
        case "openai":
            check = partial(remote.check_engine, settings)
        case _:
            assert_never(settings.policy)
    has_endpoint = settings.policy == "openai" and settings.base_url and settings.model
    model = (
        [DoctorCheck("model", partial(remote.check_model, settings, probe=probe), slow=True)] if has_endpoint else []
    )
    return [DoctorCheck("policy", check), *model, DoctorCheck("protocol", partial(local.check_protocol, settings))]


def _sources(settings: CairnSettings, *, probe: bool) -> list[DoctorCheck]:
    from agent.build.sources import uses_world

    checks: list[DoctorCheck] = []
    if uses_world(settings):
        checks.append(DoctorCheck("world", partial(local.check_world, settings)))
    if settings.corpus:
        checks.append(DoctorCheck("corpus", partial(local.check_corpus, settings), slow=True))
    if settings.kg:
        checks.append(DoctorCheck("kg", partial(local.check_graph, settings)))
    options = {name: settings.plugins.get(name, {}) for name in _plugins(settings)}
    checks += [DoctorCheck(name, partial(local.check_plugin, name, given)) for name, given in options.items()]
    checks += [DoctorCheck(name, partial(remote.check_mcp, settings, name), slow=True) for name in settings.mcp]
    return [*checks, *(_live(settings, probe=probe) if settings.is_live else [DoctorCheck("live", _no_live)])]


async def _no_live() -> CheckResult:
    return skipped("the live web is not searched: no key and no SearXNG URL is set, or live is false")


def _plugins(settings: CairnSettings) -> list[str]:
    """Those with options, and what `sources` names beside the built-in ones: where there is none, its check says so."""
    return list(
        dict.fromkeys(
            [*settings.plugins, *(name for name in settings.sources if name not in (*BUILT_IN, *settings.mcp))]
        )
    )


def _live(settings: CairnSettings, *, probe: bool) -> Iterator[DoctorCheck]:
    """Every backend that the settings could mean; those without their key say that they are left out."""
    usable = settings.usable
    for source in ("web", "news"):
        if _searches(settings, source) and not set(_order(settings, source)) & set(usable):
            yield DoctorCheck(source, partial(_no_backend, settings, source))
    for name in _wanted(settings):
        if name in (*_OPEN.values(), *STANDALONE, *usable):
            yield DoctorCheck(name, partial(_backend, settings, name, probe=probe))
        else:
            yield DoctorCheck(name, partial(_left_out, name))


async def _no_backend(settings: CairnSettings, source: str) -> CheckResult:
    wanted = " or ".join(needed(name) for name in _order(settings, source) if name != "ddgs")
    says, fix = f"no backend of {source} is set up", f"set {wanted}, or {remote.INSTALL_DDGS}"
    return bad(says, fix) if source in settings.sources else warn(says, fix)


async def _left_out(name: str) -> CheckResult:
    if name == "ddgs":
        return skipped(f"left out: its extra is not installed; {remote.INSTALL_DDGS}")
    return skipped(f"left out: {needed(name)} is not set")


async def _backend(settings: CairnSettings, name: str, *, probe: bool) -> CheckResult:
    from agent.sources.http import make_client

    async with make_client() as client:
        backend = _made(_alone(settings, name), client)[name]
        return await remote.check_backend(settings, backend, client, probe=probe)


def _alone(settings: CairnSettings, name: str) -> CairnSettings:
    """Of web and news only this backend: what is wrong with another one's key is not its fault."""
    order = {source: (name,) if name in _order(settings, source) else () for source in ("web", "news")}
    return settings.model_copy(update=order)


def _made(settings: CairnSettings, client: "httpx2.AsyncClient") -> "dict[str, Backend]":
    """The backends by their names; one that serves two sources stands here once, as it serves the first."""
    from agent.build.backends import backends_of

    made = [backend for backends in backends_of(settings, client).values() for backend in backends]
    return {backend.name: backend for backend in reversed(made)}


def _wanted(settings: CairnSettings) -> list[str]:
    """Names of the backends that the wanted sources may ask."""
    names = [name for source in ("web", "news") if _searches(settings, source) for name in _order(settings, source)]
    names += [name for source, name in _OPEN.items() if _searches(settings, source)]
    return list(dict.fromkeys([*names, *settings.standalone]))


def _order(settings: CairnSettings, source: str) -> tuple[str, ...]:
    return settings.web if source == "web" else settings.news


def _searches(settings: CairnSettings, source: str) -> bool:
    """Whether the live form of a source is used."""
    if source == "kg" and settings.kg is not None:
        return False
    return not settings.sources or source in settings.sources or "all" in settings.sources


async def check_transformers(settings: CairnSettings) -> CheckResult:
    """The libraries, and everything of the model but its weights' content."""
    from agent.build.agent import named_model

    model = named_model(settings)
    if not all(map(find_spec, ("torch", "transformers"))):
        return bad("the policy 'transformers' needs torch and transformers", "pip install 'cairn-search[train]'")
    return await asyncio.to_thread(check_model, model)


async def check_vllm(settings: CairnSettings) -> CheckResult:
    """The library is installed, and everything of the model is there but its weights' content; nothing is loaded."""
    from agent.build.agent import named_model
    from agent.policies.vllm_engine import INSTALL

    model = named_model(settings)
    if find_spec("vllm") is None:
        return bad("the policy 'vllm' needs vLLM", INSTALL.partition(": ")[2])
    return await asyncio.to_thread(check_model, model)


def check_model(model: str) -> CheckResult:
    """A folder in the hub's form, or a name on the hub, which is not queried."""
    from agent.policies.hub_form import open_hub_form

    folder = Path(model).expanduser()
    if not folder.is_dir() and model.count("/") == 1 and not model.startswith((".", "/", "~")):
        return warn(f"{model} is not a folder here; it is fetched from the hub on the first start", "name a folder")
    form = open_hub_form(model)
    if not any(form.folder.glob("*.safetensors")):
        return bad(f"{form.folder} has no weights", "put the model's .safetensors files there")
    return ok(f"{form.name} can be read; its context takes {form.context_tokens:,} tokens")
