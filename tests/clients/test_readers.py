"""What Open WebUI and LibreChat make of our streams, by their own rules."""

import asyncio
from typing import Any

import pytest

from agent.errors import PolicyError
from agent.loop.agent import Agent
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import protocol_named
from server.chat.service import Service
from tests.clients.readers import librechat, links, open_webui, shown
from tests.server.live import ANSWER, QUESTION, SEARCH, FakeSource, in_memory, make_service

MARKED = ANSWER.replace("<answer> Trieste </answer>", "<answer>Trieste [2][1].</answer>")


def stream(service: Service, **said: Any) -> str:
    async def ask() -> str:
        body: dict[str, Any] = {"model": "cairn", "messages": QUESTION, "stream": True, **said}
        async with asyncio.timeout(20), in_memory(service) as client:
            return (await client.post("/v1/chat/completions", json=body)).text

    return asyncio.run(ask())


def on_the_web() -> Agent:
    """Every passage has an address."""
    sources = {name: FakeSource(name, url=f"https://{name}.example/a_(b)") for name in ("web", "kg", "all")}
    return Agent(policy=ScriptedPolicy((SEARCH, MARKED)), protocol=protocol_named("cairn"), sources=sources)


@pytest.mark.parametrize("profile", ["default", "openwebui"])
@pytest.mark.parametrize("usage", [None, {"include_usage": True}])
def test_open_webui_draws_one_thought_then_the_answer_and_its_sources_by_number(profile: str, usage: Any) -> None:
    seen = open_webui(stream(make_service(agent=on_the_web()), profile=profile, stream_options=usage))
    assert (seen.thoughts, seen.ended, seen.error) == (1, True, "")
    assert "I need the director." in seen.reasoning
    assert seen.answer == "Trieste [1][2]."
    assert seen.sources == ["https://kg.example/a_(b)", "https://web.example/a_(b)"]
    assert bool(seen.statuses) == (profile == "openwebui")


def test_open_webui_shows_searches_as_they_begin_and_end() -> None:
    first, last = open_webui(stream(make_service(agent=on_the_web()), profile="openwebui")).statuses
    assert (first["done"], first["queries"]) == (False, ["director of Aurora Falls", "Lina Orr"])
    assert (last["done"], len(last["items"])) == (True, 2)


def test_open_webui_reads_an_error_after_the_start() -> None:
    seen = open_webui(stream(make_service((SEARCH, PolicyError("the engine is out of memory")))))
    assert "out of memory" in seen.error
    assert seen.answer == ""


def test_librechat_gets_links_from_the_markdown_profile_alone() -> None:
    plain = librechat(stream(make_service(agent=on_the_web())))
    assert plain.sources == []
    seen = librechat(stream(make_service(agent=on_the_web()), profile="markdown-links"))
    assert seen.sources == ["https://kg.example/a_(b)", "https://web.example/a_(b)"]
    assert shown(seen.answer) == "Trieste 1 2."
    assert "I need the director." in seen.reasoning


def test_librechat_reads_the_name_of_what_has_no_address() -> None:
    seen = librechat(stream(make_service(), profile="markdown-links", answer_style="with_evidence"))
    assert seen.sources == ["https://example.org/falls"]
    assert "[1] Lina Orr (kg)" in shown(seen.answer)
    assert "https" not in shown(seen.answer)


def test_what_the_earlier_form_would_have_broken_is_seen_by_the_reader() -> None:
    touching = "Yes [1][2]\n\n[1]: <https://a.org>\n[2]: <https://b.org>"
    assert links(touching) == ["https://b.org"]
    assert links(touching.replace("][", "] [")) == ["https://a.org", "https://b.org"]


def test_what_librechat_sends_beside_the_messages_is_taken() -> None:
    said = {"user": "u1", "presence_penalty": 0, "frequency_penalty": 0, "top_p": 1, "stop": None, "temperature": 1}
    assert librechat(stream(make_service(), **said)).answer == "Trieste"
