"""Checks of what is reached over the network: the policy's engine, local model servers, the backends of live sources.

A backend is searched only where that is free, or where the user wants it to be. Where its API reports what is
left of the quota, that is read.
"""

import difflib
from typing import TYPE_CHECKING, Any, Final, cast

from agent.doctor.run import CheckResult, bad, ok, skipped, warn
from agent.errors import SetupError, SourceError, SourceErrorKind
from agent.outbound.urls import host_of, is_loopback, split_url
from agent.settings import CairnSettings
from agent.settings.live import KEYED, STANDALONE, needed
from agent.sources.base import SearchRequest, ask, credits_of

if TYPE_CHECKING:
    import httpx2

    from agent.policies.local_servers import LocalServer
    from agent.sources.resilience.resilient import Backend

QUERY: Final = "Ada Lovelace"
LOW: Final = 0.05
"""Share of a quota below which there is a warning."""
_SECONDS: Final = 12.0
_NAMED_MODELS: Final = 5
"""Of one server, in one line."""
_NAMED_TOOLS: Final = 12
_SETTINGS: Final = {"mediawiki": "wiki"}
"""Where a backend and its settings have different names."""
INSTALL_DDGS: Final = "pip install 'cairn-search[ddgs]' for a search without a key"
_FIXES: Final[dict[SourceErrorKind, str]] = {
    "auth": "set {setting} to a key that is valid",
    "quota": "wait until the quota is renewed, take a larger plan, or put another backend first",
    "rate": "wait a moment; if that does not help, lower its limits in [limits.{name}] of cairn.toml",
    "bad_query": "check whether {setting_url} is the address of this API",
    "upstream": "check whether this machine reaches {url}: network, firewall, DNS, or the service itself",
    "timeout": "check whether this machine reaches {url}: network, firewall, DNS, or the service itself",
    "parse": "check whether {setting_url} is the address of this API; something else answers there",
}


async def check_engine(settings: CairnSettings) -> CheckResult:
    """The endpoint of the policy: is it there, does it take the key, does it have the model."""
    if not settings.base_url or not settings.model:
        return bad(
            "the policy 'openai' has no endpoint or no model",
            "set both, for example: --base-url http://127.0.0.1:11434/v1 --model qwen3:8b",
        )
    from agent.outbound.address import Address
    from agent.sources.http import Api, make_client

    key = settings.api_key.get_secret_value()
    try:
        address = Address.of(settings.base_url)
    except SetupError as error:
        return bad(str(error), "correct base_url (--base-url)")
    at, headers = address.base, address.headers or ({"authorization": f"Bearer {key}"} if key else {})
    async with make_client(proxies=not is_loopback(host_of(at))) as client:  # as questions go there
        api = Api(client, name="the endpoint", base=at, headers=headers, secret=address.password or key)
        try:
            answer = await api.send("GET", "/models", params=dict(address.query))
        except SourceError as error:
            return bad(f"{at}: {error}", "start the server, or correct base_url (--base-url)")
        match answer.status:
            case 200:
                return _has_model(api.parse(answer), settings, at)
            case 401 | 403:
                return bad(f"{at} refuses the key ({answer.status})", "set CAIRN_API_KEY to a valid one")
            case 404 | 405:
                return bad(
                    f"{at}/models was not found ({answer.status})",
                    "check whether base_url should end in /v1",
                )
            case status:
                return bad(f"{at} answered {status}", "look at the server's log, then try again")


async def check_model(settings: CairnSettings, *, probe: bool) -> CheckResult:
    """What the endpoint's model offers, and how it will be spoken to; a model elsewhere is prompted only on request."""
    from agent.build.agent import build_policy
    from agent.policies.openai_offers import offers_of
    from agent.policies.openai_policy import OpenAiPolicy

    host = split_url(settings.base_url.strip()).hostname or ""
    if not probe and not is_loopback(host):
        return skipped(f"{settings.model} at {host} was not prompted: that may cost, see --probe")
    policy = build_policy(settings, sources=())
    if not isinstance(policy, OpenAiPolicy):
        return skipped("the policy is not an endpoint")
    try:
        offers = await offers_of(policy.endpoint)
        await policy.prepare(fresh=True)
        return ok(f"{settings.model}: {offers}; {policy.summary}")
    finally:
        await policy.aclose()


def _has_model(data: Any, settings: CairnSettings, at: str) -> CheckResult:
    rows = cast(dict[str, Any], data).get("data") if isinstance(data, dict) else None
    if not isinstance(rows, list):
        return warn(f"{at} lists no models", "check whether it is OpenAI-compatible")
    ids = [str(cast(dict[str, Any], row).get("id")) for row in cast(list[Any], rows) if isinstance(row, dict)]
    if settings.model in ids:
        return ok(f"{at} answers and has {settings.model}")
    near = difflib.get_close_matches(settings.model, ids, n=3, cutoff=0.4) or ids[:3]
    fix = f"set model (--model) to one of them, such as {', '.join(near)}" if near else "load a model there"
    return bad(f"{at} answers, but does not list {settings.model!r} among {len(ids)} models", fix)


async def check_local_servers(settings: CairnSettings) -> CheckResult:
    """Model servers that run on this machine, with the command that uses each one that is not in use."""
    from agent.policies.local_servers import find_local_servers

    found = await find_local_servers()
    if not found:
        return skipped("no Ollama, LM Studio, llama.cpp or vLLM answers on its usual port of this machine")
    free = [server for server in found if not _is_endpoint(server, settings)]
    says = [_models_of(server) if server in free else f"{server.name} is the policy's endpoint" for server in found]
    commands = [server.command(server.models[0]) for server in free if server.models]
    return CheckResult("ok", "; ".join(says), "; or: ".join(commands))


def _models_of(server: "LocalServer") -> str:
    where = f"{server.name} runs at {server.base_url}"
    if not server.models:
        return f"{where}, without a model that writes"
    more = len(server.models) - _NAMED_MODELS
    return f"{where} with {', '.join(server.models[:_NAMED_MODELS])}{f' and {more} more' if more > 0 else ''}"


def _is_endpoint(server: "LocalServer", settings: CairnSettings) -> bool:
    """Whether the settings name this server, under whatever name of this machine."""
    named = split_url(settings.base_url.strip())
    return is_loopback(named.hostname or "") and named.port == split_url(server.base_url).port


async def check_backend(
    settings: CairnSettings, backend: "Backend", client: "httpx2.AsyncClient", *, probe: bool
) -> CheckResult:
    """One backend: reached, key accepted, quota left, one answer."""
    try:
        account = await _account(settings, backend.name, client)
        if account is not None and account.state == "bad":
            return account
        if probe or not credits_of(backend):
            return _joined(await _probe(backend), account)
        if account is not None:
            return account
        await _knock(settings, backend.name, client)
    except SourceError as error:
        return _failed(settings, backend.name, error)
    return ok(f"{_url(settings, backend.name)} is reached; its key was not tried: that costs, see --probe")


async def _probe(backend: "Backend") -> CheckResult:
    result = await ask(backend, SearchRequest(QUERY, limit=1), seconds=_SECONDS)
    found = f"answers: {result.passages[0].title!r}" if result.passages else f"answers, with nothing about {QUERY!r}"
    cost = f", for {result.credits:g} credits" if result.credits else ""
    return ok(f"{found}{cost}")


def _joined(probed: CheckResult, account: CheckResult | None) -> CheckResult:
    if account is None:
        return probed
    return CheckResult(account.state, f"{probed.says}; {account.says}", account.fix)


async def _knock(settings: CairnSettings, name: str, client: "httpx2.AsyncClient") -> None:
    """Ask for nothing: whatever comes back, the service is reached, and an error is not billed."""
    from agent.sources.http import Api

    await Api(client, name=name, base=_url(settings, name)).send("GET", "/")


async def _account(settings: CairnSettings, name: str, client: "httpx2.AsyncClient") -> CheckResult | None:
    """What is left of the quota, where the API reports it for free; None where it does not."""
    if name not in ("tavily", "serper"):
        return None
    from agent.sources.http import Api

    key: str = getattr(settings, f"{name}_key").get_secret_value()
    if name == "tavily":
        headers, path, read = {"authorization": f"Bearer {key}"}, "/usage", _tavily
    else:
        headers, path, read = {"x-api-key": key}, "/account", _serper
    kinds: dict[int, SourceErrorKind] = {432: "quota", 433: "quota"}
    api = Api(client, name=name, base=_url(settings, name), headers=headers, kinds=kinds, secret=key)
    answer = await api.send("GET", path)
    if answer.status in (404, 405, 429):
        return None  # it reports nothing, or there were too many requests: a search shows more
    data = api.parse(api.checked(answer))
    return read(cast(dict[str, Any], data) if isinstance(data, dict) else {})


def _tavily(data: dict[str, Any]) -> CheckResult | None:
    """`{"key": {usage, limit}, "account": {current_plan, plan_usage, plan_limit, …}}`; a limit may be null."""
    left: list[tuple[float, float, str]] = []
    for part, used, most, of in (
        ("account", "plan_usage", "plan_limit", "plan"),
        ("key", "usage", "limit", "key"),
    ):
        row = cast(dict[str, Any], data.get(part)) if isinstance(data.get(part), dict) else {}
        spent, limit = row.get(used), row.get(most)
        if isinstance(spent, int | float) and isinstance(limit, int | float) and limit > 0:
            left.append((limit - spent, limit, of))
    if not left:
        return ok("the key is accepted; it has no limit") if data else None
    least, limit, of = min(left)
    return _left(f"{max(least, 0):,.0f} of {limit:,.0f} credits of its {of}", share=least / limit)


def _serper(data: dict[str, Any]) -> CheckResult | None:
    balance = data.get("balance", data.get("credits"))
    if not isinstance(balance, int | float):
        return None
    return _left(f"{balance:,.0f} credits", share=1.0 if balance >= 100 else 0.01 * (balance > 0))


def _left(what: str, *, share: float) -> CheckResult:
    says = f"the key is accepted; {what} are left"
    if share <= 0:
        return bad(says, "wait until the quota is renewed, or take a larger plan; the next backend answers meanwhile")
    return warn(says, "they will soon be used up") if share < LOW else ok(says)


def _failed(settings: CairnSettings, name: str, error: SourceError) -> CheckResult:
    """The failure with its kind; where the backend's own sentence names the fix, it stays the only one."""
    said = str(error)
    if name == "searxng" and error.kind in ("auth", "rate"):
        return bad(f"{error.kind}: {said}")
    if name == "ddgs":
        return warn(f"{error.kind}: {said}", "set the key of a search service: engines block those who scrape them")
    fix = _FIXES[error.kind].format(
        name=name,
        setting=needed(name),
        setting_url=f"CAIRN_{_SETTINGS.get(name, name).upper()}_URL",
        url=_url(settings, name),
    )
    if error.kind == "auth" and name not in (*KEYED, *STANDALONE):
        fix = f"check what {_url(settings, name)} requires of its clients; it needs no key"
    return CheckResult("warn" if error.kind == "rate" else "bad", f"{error.kind}: {said}", fix)


def _url(settings: CairnSettings, name: str) -> str:
    return cast(str, getattr(settings, f"{_SETTINGS.get(name, name)}_url")).replace("{lang}", "en")


async def check_mcp(settings: CairnSettings, name: str) -> CheckResult:
    """An MCP server is started or reached, and its tools are listed; none is called."""
    from agent.build.backends import bare_mcp_source

    source = bare_mcp_source(settings, name)
    try:
        server, call = await source.opened()
    except SourceError as error:
        return bad(f"{error.kind}: {source.without_secrets(str(error))}", f"correct [mcp.{name}] in cairn.toml")
    finally:
        await source.aclose()
    tools = [tool.name for tool in server.tools]
    more = len(tools) - _NAMED_TOOLS
    listed = ", ".join(tools[:_NAMED_TOOLS]) + (f" and {more} more" if more > 0 else "")
    return ok(f"answers with {listed}; a search calls {call.tool}({call.query}=…)")
