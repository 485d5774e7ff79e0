"""The server that the backends are tested against does what its routes say."""

import asyncio

import httpx2
import pytest

from tests.agent.sources.live.apiserver import BOMB_BYTES, ApiRequest, ApiServer, Reply, gzip_bomb, json_reply, run


def test_it_answers_and_keeps_the_requests():
    async def test(server: ApiServer) -> None:
        server.routes["/a b"] = json_reply({"x": 1}, 429, retry_after="3")
        async with httpx2.AsyncClient(trust_env=False) as client:
            answer = await client.post(server.base + "/a%20b?q=d%C3%BCne&n=2", json={"k": "v"}, headers={"X-Key": "s"})
        assert (answer.status_code, answer.headers["retry-after"], answer.json()) == (429, "3", {"x": 1})
        (request,) = server.requests
        assert (request.method, request.path, request.params) == ("POST", "/a b", {"q": "düne", "n": "2"})
        assert (request.headers["x-key"], request.json) == ("s", {"k": "v"})

    run(test)


def test_a_route_may_be_a_function_of_the_request():
    def route(request: ApiRequest) -> Reply:
        return json_reply(request.params)

    async def test(server: ApiServer) -> None:
        server.routes["*"] = route
        async with httpx2.AsyncClient(trust_env=False) as client:
            assert (await client.get(server.base + "/any?a=1")).json() == {"a": "1"}

    run(test)


def test_it_resets_the_connection_in_the_middle_of_the_body():
    async def test(server: ApiServer) -> None:
        server.routes["/"] = Reply(b"x" * 1000, how="reset")
        async with httpx2.AsyncClient(trust_env=False) as client:
            with pytest.raises(httpx2.TransportError):
                await client.get(server.base)

    run(test)


def test_it_hangs_until_the_client_leaves():
    async def test(server: ApiServer) -> None:
        server.routes["/"] = Reply(how="hang")
        async with httpx2.AsyncClient(trust_env=False) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await client.get(server.base)

    run(test)


def test_the_bomb_is_small_on_the_wire_and_300_mb_unpacked():
    async def test(server: ApiServer) -> None:
        server.routes["/"] = gzip_bomb()
        size = 0
        async with httpx2.AsyncClient(trust_env=False) as client, client.stream("GET", server.base) as answer:
            async for chunk in answer.aiter_bytes():
                size += len(chunk)
        assert size == BOMB_BYTES

    run(test)
    assert len(gzip_bomb().body) < 400_000
