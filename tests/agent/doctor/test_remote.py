"""The doctor on what is reached over the network: each wrong state, from a server that is in it."""

import asyncio
from typing import Any

import pytest
from pydantic import SecretStr

from agent.doctor import Diagnosis, checks_of, paid_probes
from agent.doctor.remote import check_engine
from agent.doctor.run import CheckResult
from agent.settings import CairnSettings
from tests.agent.doctor.look import SECRET, live, look, look_beside
from tests.agent.sources.live.apiserver import ApiServer, Reply, Route, json_reply, text_reply
from tests.model_servers import lm_studio, ollama

KEYS: dict[str, Any] = {f"{name}_key": SecretStr(SECRET) for name in ("tavily", "serper", "brave", "exa", "gnews")}


def usage(spent: float, most: float | None, **key: float) -> Reply:
    return json_reply({"key": key, "account": {"current_plan": "Free", "plan_usage": spent, "plan_limit": most}})


def look_live(
    name: str, routes: dict[str, Route], *, probe: bool = False, seconds: float = 10.0, **more: Any
) -> tuple[Diagnosis, list[str]]:
    """The finding with every key set, and the paths that were requested."""
    found, requested = look_beside(name, routes, lambda base: live(base, **(KEYS | more)), probe=probe, seconds=seconds)
    return found, [one.path for one in requested]


@pytest.mark.parametrize(
    ("reply", "state", "says"),
    [
        (usage(150, 1000), "ok", "850 of 1,000 credits of its plan are left"),
        (usage(980, 1000), "warn", "20 of 1,000 credits"),
        (usage(1000, 1000), "bad", "0 of 1,000 credits"),
        (usage(0, 1000, usage=100, limit=100), "bad", "0 of 100 credits of its key"),
        (usage(0, None), "ok", "it has no limit"),
        (json_reply({"detail": {"error": "Unauthorized: missing or invalid API key."}}, 401), "bad", "auth: "),
        (json_reply({"detail": {"error": "limit"}}, 432), "bad", "quota: "),
        (text_reply("<html>a captive portal</html>"), "bad", "parse: "),
    ],
)
def test_tavily_reports_what_is_left_of_the_quota(reply: Reply, state: str, says: str) -> None:
    found, requested = look_live("tavily", {"/usage": reply})
    assert (found.state, requested) == (state, ["/usage"])
    assert says in found.says


@pytest.mark.parametrize(
    ("reply", "state", "says"),
    [
        (json_reply({"balance": 2492, "rateLimit": 5}), "ok", "2,492 credits are left"),
        (json_reply({"balance": 7}), "warn", "7 credits"),
        (json_reply({"balance": 0}), "bad", "0 credits"),
        (json_reply({"message": "Unauthorized.", "statusCode": 403}, 403), "bad", "auth: "),
    ],
)
def test_serper_reports_what_is_left(reply: Reply, state: str, says: str) -> None:
    found, requested = look_live("serper", {"/account": reply})
    assert (found.state, requested) == (state, ["/account"])
    assert says in found.says


def test_a_refused_key_names_the_setting_and_never_the_key() -> None:
    refused = json_reply({"detail": {"error": f"the key {SECRET} is unknown"}}, 401)
    found, _ = look_live("tavily", {"/usage": refused}, probe=True)
    assert "CAIRN_TAVILY_KEY" in found.fix
    assert SECRET not in str(found)


@pytest.mark.parametrize("name", ["tavily", "serper"])
def test_where_no_quota_is_reported_the_address_is_only_reached(name: str) -> None:
    found, requested = look_live(name, {})
    assert found.state == "ok"
    assert "its key was not tried: that costs, see --probe" in found.says
    assert requested[-1] == "/"


@pytest.mark.parametrize("name", ["brave", "exa", "gnews"])
def test_a_search_that_costs_is_made_only_when_it_is_wanted(name: str) -> None:
    rows: dict[str, Any] = {
        "type": "search",
        "web": {"results": [{"title": "Ada", "url": "https://example.org/ada", "description": "She wrote."}]},
    }
    rows |= {"results": [{"title": "Ada", "url": "https://example.org/ada", "highlights": ["She wrote."]}]}
    rows |= {"articles": [{"title": "Ada", "url": "https://example.org/ada", "description": "She wrote."}]}
    routes: dict[str, Route] = {"*": json_reply({"totalArticles": 1, **rows})}
    found, requested = look_live(name, routes)
    assert (found.state, requested) == ("ok", ["/"])
    probed, requested = look_live(name, routes, probe=True)
    assert probed.state == "ok"
    assert "answers: 'Ada', for 1 credits" in probed.says
    assert len(requested) == 1
    assert requested[0] != "/"


@pytest.mark.parametrize("kind", ["auth", "quota"])
def test_a_probe_shows_a_key_that_is_refused_or_used_up(kind: str) -> None:
    status = {"auth": 401, "quota": 403}[kind]
    found, _ = look_live("gnews", {"*": json_reply({"errors": ["no"]}, status)}, probe=True)
    assert (found.state, found.says.split(":")[0]) == ("bad", kind)
    assert found.fix


def _searxng(routes: dict[str, Route]) -> tuple[Diagnosis, list[str]]:
    found, requested = look_beside("searxng", routes, lambda base: live(base, searxng_url=base))
    return found, [one.path for one in requested]


def test_searxng_without_json_gets_the_line_to_write() -> None:
    found, _ = _searxng({"/search": text_reply("Forbidden", 403)})
    assert found.state == "bad"
    assert "search.formats: [html, json]" in found.says


def test_searxng_must_give_no_less_than_an_answer() -> None:
    row = {"title": "Ada Lovelace", "url": "https://example.org", "content": "She wrote.", "score": 1.0}
    found, requested = _searxng({"/search": json_reply({"results": [row], "unresponsive_engines": []})})
    assert (found.state, requested) == ("ok", ["/search"])
    assert "'Ada Lovelace'" in found.says
    silent, _ = _searxng({"/search": json_reply({"results": [], "unresponsive_engines": [["brave", "timeout"]]})})
    assert (silent.state, silent.says.split(":")[0]) == ("bad", "upstream")


def test_what_is_not_reached_names_its_address() -> None:
    found = look("tavily", live=True, tavily_url="http://127.0.0.1:1", **KEYS)
    assert (found.state, found.says.split(":")[0]) == ("bad", "upstream")
    assert "http://127.0.0.1:1" in found.fix


def test_what_hangs_is_a_finding_and_not_a_wait() -> None:
    found, _ = look_live("mediawiki", {"*": Reply(how="hang")}, seconds=0.2)
    assert (found.state, found.says) == ("bad", "no answer in 0.2 s")


def test_something_else_at_the_address_is_not_the_api() -> None:
    found, _ = look_live("mediawiki", {"*": text_reply("<html>Welcome</html>")})
    assert (found.state, found.says.split(":")[0]) == ("bad", "parse")
    assert "CAIRN_WIKI_URL" in found.fix


def test_a_key_that_cannot_be_one_costs_the_others_nothing() -> None:
    key = SecretStr("two words")
    assert look_live("tavily", {"/usage": usage(0, 1000)}, serper_key=key)[0].state == "ok"
    broken, _ = look_live("serper", {}, serper_key=key)
    assert broken.state == "bad"
    assert "copy it again" in broken.says


def names(**settings: Any) -> list[str]:
    return [check.name for check in checks_of(CairnSettings(**settings))]


def test_only_what_the_settings_mean_is_looked_at() -> None:
    assert "live" in names()
    assert {"tavily", "gnews", "arxiv", "mediawiki", "wikidata"} <= set(names(live=True))
    only_web = names(live=True, sources=("web",))
    assert {"tavily", "brave"} <= set(only_web)
    assert not {"gnews", "arxiv", "wikidata", "world"} & set(only_web)


def test_a_source_without_a_backend_names_the_settings_that_give_one() -> None:
    assert look("web", live=True).state == "warn"
    wanted = look("web", live=True, sources=("web",))
    assert wanted.state == "bad"
    assert "CAIRN_TAVILY_KEY or CAIRN_SERPER_KEY" in wanted.fix
    assert look("brave", live=True).state == "skip"


@pytest.mark.parametrize("name", ["openalex", "semanticscholar"])
def test_a_source_of_papers_is_looked_at_where_sources_name_it(name: str) -> None:
    rows: list[dict[str, str]] = [{"display_name": "Ada", "title": "Ada"}]
    routes: dict[str, Route] = {"*": json_reply({"results": rows, "data": rows})}
    found, requested = look_live(name, routes, sources=(name,))
    assert (found.state, found.says) == ("ok", "answers: 'Ada'")
    assert len(requested) == 1
    refused, _ = look_live(name, {"*": json_reply({"message": "no"}, 401)}, sources=(name,))
    assert (refused.state, refused.fix) == ("bad", f"set CAIRN_{name.upper()}_KEY to a key that is valid")
    assert name not in names(live=True)


def test_a_search_without_a_key_is_left_out_until_its_extra_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.settings.live.find_spec", {"other": 1}.get)
    found = look("ddgs", live=True, sources=("web",), web=("ddgs",))
    assert (found.state, found.says) == (
        "skip",
        "left out: its extra is not installed; pip install 'cairn-search[ddgs]' for a search without a key",
    )


def test_what_a_probe_costs_is_known_before() -> None:
    assert paid_probes(CairnSettings()) == {}
    assert paid_probes(CairnSettings(**KEYS)) == dict.fromkeys(("tavily", "serper", "brave", "exa", "gnews"), 1.0)
    assert paid_probes(CairnSettings(sources=("news",), news=("gnews",), **KEYS)) == {"gnews": 1.0}


def engine(routes: dict[str, Route], *, model: str = "qwen3:8b", key: str = "") -> Diagnosis:
    def make(base: str) -> CairnSettings:
        return CairnSettings(base_url=f"{base}/v1", model=model, api_key=SecretStr(key))

    found, requested = look_beside("policy", routes, make)
    assert [one.headers.get("authorization") for one in requested] == [f"Bearer {key}" if key else None]
    return found


MODELS = json_reply({"object": "list", "data": [{"id": "qwen3:8b"}, {"id": "llama3.2:3b"}]})


def test_an_endpoint_that_has_the_model_is_fine() -> None:
    assert engine({"/v1/models": MODELS}, key=SECRET).state == "ok"


@pytest.mark.parametrize(
    ("routes", "says", "fix"),
    [
        ({"/v1/models": MODELS}, "does not list 'qwen3:9b'", "qwen3:8b"),
        ({"/v1/models": json_reply({"error": "no"}, 401)}, "refuses the key (401)", "CAIRN_API_KEY"),
        ({}, "was not found (404)", "should end in /v1"),
        ({"/v1/models": json_reply({"error": "loading"}, 503)}, "answered 503", "log"),
        ({"/v1/models": text_reply("<html>")}, "did not send JSON", ""),
        ({"/v1/models": json_reply([])}, "lists no models", "OpenAI-compatible"),
    ],
)
def test_an_endpoint_that_is_wrong_says_how(routes: dict[str, Route], says: str, fix: str) -> None:
    found = engine(routes, model="qwen3:9b")
    assert found.state == ("warn" if "lists no" in says else "bad")
    assert says in found.says
    assert fix in found.fix


def test_no_endpoint_and_no_server_are_distinguished() -> None:
    assert "has no endpoint or no model" in look("policy", policy="openai").says
    found = look("policy", base_url="http://127.0.0.1:1/v1", model="m")
    assert "cannot be reached" in found.says
    assert "start the server" in found.fix


def look_local(monkeypatch: pytest.MonkeyPatch, routes: dict[str, Route], **settings: Any) -> tuple[Diagnosis, str]:
    """The finding on a machine where this server runs, and the server's port; PORT in settings becomes that."""
    ports: list[str] = []

    def make(base: str) -> CairnSettings:
        ports.append(base.rpartition(":")[2])
        monkeypatch.setattr("agent.policies.local_servers.PORTS", {int(ports[0]): "LM Studio"})
        given: dict[str, Any] = {name: str(value).replace("PORT", ports[0]) for name, value in settings.items()}
        return CairnSettings(**given)

    return look_beside("local models", routes, make)[0], ports[0]


def test_a_model_server_of_this_machine_is_named_with_the_command_that_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found, port = look_local(monkeypatch, ollama(*(f"m{n}" for n in range(7))))
    base = f"http://127.0.0.1:{port}/v1"
    assert (found.state, found.says) == ("ok", f"Ollama runs at {base} with m0, m1, m2, m3, m4 and 2 more")
    assert found.fix == f"cairn serve --base-url {base} --model m0"


def test_a_model_server_without_a_model_is_named_without_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    found, port = look_local(monkeypatch, lm_studio("text-embedding-nomic-embed-text-v1.5"))
    says = f"LM Studio runs at http://127.0.0.1:{port}/v1, without a model that writes"
    assert (found.state, found.says, found.fix) == ("ok", says, "")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_a_model_server_that_is_the_endpoint_is_not_suggested_again(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    found, _ = look_local(monkeypatch, ollama("m"), base_url=f"http://{host}:PORT/v1", model="m")
    assert (found.state, found.says, found.fix) == ("ok", "Ollama is the policy's endpoint", "")


@pytest.mark.parametrize("base_url", ["http://gpu.lan:PORT/v1", "http://127.0.0.1:1/v1", "http://[bad"])
def test_beside_another_endpoint_a_model_server_is_suggested(monkeypatch: pytest.MonkeyPatch, base_url: str) -> None:
    found, _ = look_local(monkeypatch, ollama("m"), base_url=base_url, model="m")
    assert found.fix.endswith("--model m")


def test_without_a_model_server_on_this_machine_the_check_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = look_local(monkeypatch, {"*": text_reply("<html>Jenkins")})
    assert (found.state, found.fix) == ("skip", "")
    assert found.says.startswith("no Ollama, LM Studio, llama.cpp or vLLM answers")


def _said(message: dict[str, Any]) -> Route:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return json_reply({"id": "c", "object": "chat.completion", "choices": [choice]})


def test_what_the_model_offers_and_how_it_is_spoken_to_is_shown() -> None:
    routes = {"/v1/models": MODELS, "/v1/chat/completions": _said({"content": "I like films."})}
    found, requested = look_beside("model", routes, lambda base: CairnSettings(base_url=f"{base}/v1", model="qwen3:8b"))
    assert found.state == "ok"
    assert "function calls: no, JSON by a schema: no" in found.says
    assert "a context of 8,192 tokens" in found.says
    assert "on the rung plain (tools: it wrote neither a search nor an answer;" in found.says
    assert sum(one.path.endswith("/chat/completions") for one in requested) == 3 + 3


def test_a_model_elsewhere_is_prompted_only_on_request() -> None:
    found = look("model", base_url="https://models.example/v1", model="m")
    assert (found.state, "--probe" in found.says) == ("skip", True)


def test_an_endpoint_elsewhere_is_looked_at_through_the_proxy_as_questions_go_there(monkeypatch: pytest.MonkeyPatch):
    async def scene() -> tuple[CheckResult, list[str]]:
        async with ApiServer({"*": json_reply({"object": "list", "data": [{"id": "m"}]})}) as proxy:
            monkeypatch.setenv("http_proxy", proxy.base)
            for name in ("no_proxy", "NO_PROXY"):
                monkeypatch.delenv(name, raising=False)
            settings = CairnSettings(policy="openai", base_url="http://llm.test/v1", model="m")
            return await check_engine(settings), [request.target for request in proxy.requests]

    found, requested = asyncio.run(scene())
    assert found.state == "ok"
    assert requested == ["http://llm.test/v1/models"]
