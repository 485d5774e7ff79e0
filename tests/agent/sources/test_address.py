"""A name and a password in the address of an API: they reach the API, and nothing that is shown."""

import asyncio
from base64 import b64decode

import httpx2

from agent.sources.http import Api


def test_the_password_of_an_address_travels_in_a_header_alone():
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json={"title": "A"})

    async def main() -> str:
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
            api = Api(client, name="wiki", base="https://ann:pass-word-1@wiki.example/w/")
            assert await api.get("/api.php") == {"title": "A"}
            return api.base

    assert asyncio.run(main()) == "https://wiki.example/w"
    (request,) = seen
    assert str(request.url) == "https://wiki.example/w/api.php"
    kind, _, packed = request.headers["authorization"].partition(" ")
    assert (kind, b64decode(packed)) == ("Basic", b"ann:pass-word-1")
