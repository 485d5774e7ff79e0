"""RSTool over libraries: every form searches those that it names, and never one of another key."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from openai import AsyncOpenAI
from pydantic import SecretStr

from agent.errors import QuestionError
from agent.rstool import EvidenceBundle, call_tool, gather
from server.auth.keys import new_key
from server.auth.middleware import Rules
from server.evidence.service import EvidenceService
from tests.server.libraries.made import FALLS, client_of, fetched, library_of, use, with_libraries
from tests.server.live import make_service, serving
from tests.server.mcp.clients import text_of

PLAN = "<search>A: Lina Orr (web)</search>"
ANSWER = "<evidence>\n- It was directed by Lina Orr. [1]\n</evidence>\n<answer>Lina Orr</answer>"
QUESTION = "Who directed Aurora Falls?"
NONE = "vs_" + "0" * 24


def files_of(bundle: EvidenceBundle | dict[str, Any]) -> set[str]:
    """The documents of the sources: a library's file, or a web page."""
    return {source.id.partition("#")[0] for source in EvidenceBundle.model_validate(bundle).sources}


async def over_http(client: AsyncOpenAI, **body: Any) -> httpx2.Response:
    root, key = str(client.base_url), {"authorization": f"Bearer {client.api_key}"}
    async with httpx2.AsyncClient(base_url=root, trust_env=False, headers=key) as http:
        return await http.post("evidence", json={"question": QUESTION} | body)


def test_every_form_searches_the_libraries_that_it_names(tmp_path: Path):
    service = with_libraries(tmp_path, make_service((PLAN, ANSWER)))

    async def work(client: AsyncOpenAI) -> None:
        library = (await library_of(client, ("falls.md", FALLS))).id
        file = {one.id for one in (await client.files.list()).data}
        arguments: dict[str, Any] = {"question": QUESTION, "libraries": [library]}
        agents = EvidenceService.of(service).agents
        found = [
            await gather(QUESTION, agent=agents, libraries=[library]),
            await call_tool(arguments, agent=agents),
            (await over_http(client, libraries=[library])).json()["bundle"],
        ]
        async with Client(f"{str(client.base_url).removesuffix('/v1/')}/mcp") as mcp:
            found.append((await mcp.call_tool("search_evidence", arguments)).structured_content)
            started: Any = (await mcp.call_tool("search_evidence_start", arguments)).structured_content
            waiting = {"id": started["id"], "wait_seconds": 25}
            found.append((await mcp.call_tool("search_evidence_result", waiting)).structured_content)
            missing = await mcp.call_tool("search_evidence", arguments | {"libraries": [NONE]})
            assert missing.is_error
            assert "no library" in text_of(missing)
        assert [files_of(bundle) for bundle in found] == [file] * 5
        steps = (await over_http(client, libraries=["all"], sources=["web"], stream=True)).text
        assert "web:Lina Orr" in steps, "the server's own source, where it is named too"
        assert f"{file.pop()}#" in steps
        assert "file-" not in (await over_http(client, stream=True)).text
        run = await fetched(client, f"/api/runs/{started['id']}")
        assert run["trace"]["libraries"] == [library], "so that it is deleted with the library"
        listed = await fetched(client, "/v1/tools")
        assert "libraries" in listed["tools"][0]["function"]["parameters"]["properties"]

    use(work, service)


def test_a_library_of_another_key_is_never_searched(tmp_path: Path):
    service = with_libraries(tmp_path, make_service((PLAN, ANSWER)))
    (our_key, ours), (their_key, theirs) = new_key("ours"), new_key("theirs")

    async def run() -> None:
        assert service.run_manager
        for key in (ours, theirs):
            await service.run_manager.store.keys.add_key(key)
        async with client_of(service, Rules(key=SecretStr("server")), key=our_key.get_secret_value()) as client:
            library = (await library_of(client, ("falls.md", FALLS))).id
            other = client.with_options(api_key=their_key.get_secret_value())
            refused = await over_http(other, libraries=[library])
            assert (refused.status_code, refused.json()["error"]["code"]) == (404, "library_not_found")
            without = await over_http(other, libraries=["all"])
            assert (without.status_code, without.json()["error"]["param"]) == (400, "libraries")
            headers = {"authorization": f"Bearer {other.api_key}"}
            root = str(client.base_url).removesuffix("/v1/")
            async with (
                httpx2.AsyncClient(headers=headers, trust_env=False, timeout=30) as http,
                Client(streamable_http_client(f"{root}/mcp", http_client=http)) as mcp,
            ):
                for tool in ("search_evidence", "search_evidence_start"):
                    said = await mcp.call_tool(tool, {"question": QUESTION, "libraries": [library]})
                    assert said.is_error
                    assert "no library" in text_of(said)
            assert (await over_http(client, libraries=[library])).status_code == 200

    asyncio.run(run())


def test_where_there_are_no_libraries_one_that_is_named_is_refused():
    async def run() -> str:
        async with serving(make_service()) as address, httpx2.AsyncClient(trust_env=False) as http:
            body = {"question": QUESTION, "libraries": ["all"]}
            refused = await http.post(f"{address}/v1/evidence", json=body)
            assert refused.status_code == 400
            assert refused.json()["error"]["param"] == "libraries"
            return refused.json()["error"]["message"]

    assert "no libraries here" in asyncio.run(run())
    with pytest.raises(QuestionError, match="no libraries here"):
        asyncio.run(call_tool({"question": QUESTION, "libraries": ["all"]}, agent=make_service().agent))
