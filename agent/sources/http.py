"""One JSON or feed API over HTTP: bounded answers, and whatever goes wrong as a `SourceError` with its kind.

For endpoints that the operator set. Pages from the open web are fetched by `agent.sources.pages`, behind its guard.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import httpx2

from agent import __version__
from agent.errors import SourceError, SourceErrorKind
from agent.outbound.numbers import retry_after

MAX_BYTES: Final = 8 * 1024 * 1024
"""Of one answer, decoded: a search answer has some hundred kB, a gzip bomb has no end."""
USER_AGENT: Final = f"cairn-search/{__version__} (https://pypi.org/project/cairn-search/) httpx2/{httpx2.__version__}"
SHORTEST_SECRET: Final = 8
"""Anything shorter is no key, and may well be a part of what an answer says."""
KINDS: Final[Mapping[int, SourceErrorKind]] = {
    400: "bad_query",
    401: "auth",
    402: "quota",
    403: "auth",
    404: "bad_query",
    408: "timeout",
    422: "bad_query",
    429: "rate",
}


@dataclass(frozen=True)
class ApiAnswer:
    """A whole answer, decoded."""

    status: int
    headers: httpx2.Headers
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", errors="replace")


def make_client(*, proxies: bool = False) -> httpx2.AsyncClient:
    """The client for every operator-set endpoint: it follows no redirect.

    Args:
        proxies: whether requests go through the proxies that the environment names.

    Time is bounded around each try by the caller (`Limits.timeout_seconds`); the client's own bound is the last one.
    """
    return httpx2.AsyncClient(
        headers={"user-agent": USER_AGENT},
        timeout=httpx2.Timeout(60.0, connect=10.0),
        follow_redirects=False,
        trust_env=proxies,
    )


def _without_password(base: str) -> tuple[str, dict[str, str], str]:
    """An address as it may be shown, the header that carries its name and password, and the password."""
    if "@" not in base:
        return base, {}, ""
    url = httpx2.URL(base)
    packed = b64encode(f"{url.username}:{url.password}".encode()).decode()
    headers = {"Authorization": f"Basic {packed}"} if url.userinfo else {}
    return str(url.copy_with(username=None, password=None)).rstrip("/"), headers, url.password


class Api:
    """The endpoints under one base URL."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        *,
        name: str,
        base: str,
        headers: Mapping[str, str] | None = None,
        kinds: Mapping[int, SourceErrorKind] | None = None,
        secret: str = "",
        unlogged: Mapping[str, str] | None = None,
    ) -> None:
        """Describe an API.

        Args:
            client: shared by all; who made it closes it.
            name: of the backend, for sentences.
            base: URL, with or without a path, for example https://api.search.brave.com.
            headers: sent with each request; keys belong here, never into a URL.
            kinds: what a status means here, on top of `KINDS`; other 5xx are `upstream`.
            secret: the key, if there is one; where an answer repeats it, it is taken out.
            unlogged: parameters that are sent and are in no URL that a log or an error shows: the key of an API that
                takes it nowhere else.
        """
        self._client = client
        self.name = name
        self.base, own, password = _without_password(base.strip().rstrip("/"))
        self._headers = {**own, **(headers or {})}
        secret = secret or password
        self._kinds: dict[int, SourceErrorKind] = {**KINDS, **(kinds or {})}
        self._unlogged = urlencode(unlogged or {})
        self._secret = secret.encode() if len(secret) >= SHORTEST_SECRET else b""

    async def get(self, path: str, **params: object) -> Any:
        """GET as JSON; parameters that are None are left out."""
        return self.parse(self.checked(await self.send("GET", path, params=params)))

    async def post(self, path: str, body: Mapping[str, object]) -> Any:
        """POST JSON, get JSON; members that are None are left out."""
        return self.parse(self.checked(await self.send("POST", path, body=body)))

    async def send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ApiAnswer:
        """Send one request and read its answer, whatever its status.

        Raises:
            SourceError: no answer came, or one that is too long.
        """
        request = self._client.build_request(
            method,
            self.base + path,
            params={k: str(v) for k, v in (params or {}).items() if v is not None} or None,
            json=None if body is None else {k: v for k, v in body.items() if v is not None},
            data=form,
            headers={**self._headers, **(headers or {})},
        )
        if self._unlogged:
            and_ = b"&" if request.url.query else b"?"
            request.extensions["target"] = request.url.raw_path + and_ + self._unlogged.encode()
        return await self.exchange(request)

    async def exchange(self, request: httpx2.Request) -> ApiAnswer:
        """Send a request that other code built, for example a vendor's own library.

        Raises:
            SourceError: no answer came, or one that is too long.
        """
        try:
            response = await self._client.send(request, stream=True)
            try:
                return ApiAnswer(response.status_code, response.headers, await self._read(response))
            finally:
                await response.aclose()
        except httpx2.TimeoutException as error:
            raise SourceError(f"{self.name} did not answer in time ({type(error).__name__})", kind="timeout") from error
        except httpx2.DecodingError as error:
            raise SourceError(f"{self.name} sent data that cannot be decoded: {error}", kind="parse") from error
        except httpx2.TransportError as error:
            why = f"{self.name} cannot be reached or hung up ({type(error).__name__})"
            raise SourceError(why, kind="upstream") from error

    async def _read(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > MAX_BYTES:
                raise SourceError(f"{self.name} sent more than {MAX_BYTES >> 20} MB", kind="parse")
        return bytes(body).replace(self._secret, b"***") if self._secret else bytes(body)

    def checked(self, answer: ApiAnswer) -> ApiAnswer:
        """Give the answer back if its status is 200.

        Raises:
            SourceError: any other status, with its kind and Retry-After.
        """
        if answer.status == 200:
            return answer
        kind = self._kinds.get(answer.status, "upstream")
        why = f"{self.name} answered {answer.status}: {sentence_of(answer)}"
        raise SourceError(why, kind=kind, retry_after=retry_after(answer.headers))

    def parse(self, answer: ApiAnswer) -> Any:
        """Read JSON.

        Raises:
            SourceError: it is none.
        """
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise SourceError(f"{self.name} did not send JSON: {answer.text[:80]!r}", kind="parse") from error


def sentence_of(answer: ApiAnswer) -> str:
    """What an error's body says, shortened: the first of its members that usually hold the sentence."""
    try:
        found: Any = json.loads(answer.body)
    except (ValueError, RecursionError):
        found = answer.text
    for name in ("detail", "error", "errors", "message", "info"):
        if isinstance(found, dict) and found.get(name):  # pyright: ignore[reportUnknownMemberType]
            found = found[name]  # pyright: ignore[reportUnknownVariableType]
    return " ".join(str(found).split())[:160] or "no reason given"  # pyright: ignore[reportUnknownArgumentType]
