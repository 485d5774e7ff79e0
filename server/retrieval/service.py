"""`POST /retrieve` in the shape of Search-R1's retrieval server: its trainers and their forks can use it as it is.

Many queries in, for each one a list of documents. Requests share the slots in which searches run, so that the encoder
of a dense index has many queries to encode at once, whichever client sent them. Too much is refused at once and never
queued. It knows sources, and nothing of policies.
"""

import asyncio
import json
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from time import monotonic
from typing import Annotated, Final, Protocol

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import Receive, Scope, Send

from agent.errors import SourceError, SourceErrorKind, first_of
from agent.evidence import Passage
from agent.sanitize.strict import Chars
from agent.sanitize.text import whole
from agent.sources.base import SearchRequest, SearchResult, Source, ask, credits_of
from server.http.errors import ApiError, bad_request
from server.http.stream import Runs

TOPK: Final = 3
"""What Search-R1's own server gives where a request does not say."""
_STATUS: Final[Mapping[SourceErrorKind, HTTPStatus]] = {
    "auth": HTTPStatus.BAD_GATEWAY,
    "quota": HTTPStatus.TOO_MANY_REQUESTS,
    "rate": HTTPStatus.TOO_MANY_REQUESTS,
    "bad_query": HTTPStatus.BAD_REQUEST,
    "upstream": HTTPStatus.BAD_GATEWAY,
    "timeout": HTTPStatus.GATEWAY_TIMEOUT,
    "parse": HTTPStatus.BAD_GATEWAY,
}
_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_FEW_DOCUMENTS: Final = 300
"""How many are written at once, in a few milliseconds; more of them would hold up everybody's streams."""
_SMALL_BYTES: Final = 1024 * 1024
_PROBED_SECONDS: Final = 2.0
"""How long the answer to a probe holds: frequent probes cost nothing."""


class RetrieveRequest(BaseModel):
    """What a client sends; members that are not declared are accepted and mean nothing."""

    model_config = ConfigDict(extra="ignore")

    queries: Annotated[list[Annotated[str, Chars(1_000_000)]], Field(fail_fast=True, max_length=20_000)]
    topk: int | None = Field(default=None, ge=0)
    """Documents for each query; left out or 0: `TOPK`."""
    return_scores: bool = False
    source: Annotated[str, Chars(200)] | None = None
    """Ours: which source answers. Left out, it is the corpus, or `all` where there is none."""
    partial: bool = False
    """Ours: a query that fails has no documents and is in `errors`, instead of failing the request."""


@dataclass(frozen=True)
class RetrievalBounds:
    """How much a request may hold, and how much is done at once."""

    queries: int = 4096
    """Of one request: a whole training batch, several rollouts for each question."""
    topk: int = 100
    query_chars: int = 2000
    """The rest of a longer query is not read; encoders stop far earlier."""
    documents: int = 40_960
    """Of one answer: ten for each of its queries."""
    answer_bytes: int = 64 * 1024 * 1024
    """Of one answer. A repeated query is written again."""
    unread_bytes: int = 256 * 1024 * 1024
    """Of all answers that their clients have not read yet; one that is small is always given."""
    waiting: int = 8192
    """Queries of all requests that run or wait; a request that is alone is always taken."""
    at_once: int = 256
    """Searches of one source that run at the same time …"""
    at_once_each: int = 64
    """… and of one request, so that a large one leaves room to small ones."""
    seconds: float = 30.0
    """One search, from when it runs."""
    probe_seconds: float = 5.0
    """One search that only asks whether a source answers."""


class Meter(Protocol):
    """Knows what the caller may still search for, and counts it."""

    def may_search(self, searches: int) -> None:
        """Refuse `searches` where they are too many.

        Raises:
            ApiError: 429, with when to ask again.
        """
        ...

    def searched(self, searches: int, credits: float) -> None:
        """Count `searches` that were done, whether they found anything or not."""
        ...


@dataclass
class Retriever:
    """Sources behind `/retrieve`."""

    sources: Mapping[str, Source]
    bounds: RetrievalBounds = field(default_factory=RetrievalBounds)
    runs: Runs = field(default_factory=Runs)
    far: bool = False
    """The default source is reached over the network: whether the server is ready does not hang on it."""
    meter: Meter | None = None
    """Of the keys that clients have; without one no searches are counted."""
    _taken: int = field(default=0, init=False)
    _unread: int = field(default=0, init=False)
    _ready: tuple[float, SourceError | None] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._slots: defaultdict[int, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(self.bounds.at_once))

    @property
    def default(self) -> str:
        """The source that answers where a request names none."""
        return next((name for name in ("corpus", "all") if name in self.sources), next(iter(self.sources)))

    async def answer(self, request: RetrieveRequest) -> bytes:
        """The body of the response.

        Raises:
            ApiError: the request cannot be taken, there is too much to do, or a source failed.
        """
        source = self._source(request.source)
        topk = request.topk or TOPK
        self._check(request, topk)
        queries = [_clean(query, most_chars=self.bounds.query_chars) for query in request.queries]
        unique = [query for query in dict.fromkeys(queries) if query]
        if self.meter:
            self.meter.may_search(len(unique))
        with self._admitted(len(unique)):
            found = await self._search(source, unique, limit=topk, partial=request.partial)

            def body() -> bytes:
                most = self.bounds.answer_bytes
                return _body(queries, found, scores=request.return_scores, partial=request.partial, most=most)

            few = len(unique) * topk <= _FEW_DOCUMENTS
            return body() if few else await asyncio.to_thread(body)

    @contextmanager
    def unread(self, answer: bytes) -> Generator[None]:
        """Hold an answer until its client has read it.

        Raises:
            ApiError: there are too many already.
        """
        size = len(answer)
        if size > _SMALL_BYTES and self._unread + size > self.bounds.unread_bytes:
            raise ApiError(
                HTTPStatus.TOO_MANY_REQUESTS,
                "Too many responses are waiting for slow clients; try again in a few seconds.",
                code="server_busy",
                headers={"retry-after": "5"},
            )
        self._unread += size
        try:
            yield
        finally:
            self._unread -= size

    async def probe(self) -> None:
        """Ask for one passage: the default source, and where that fails the others. Far or paid ones are not searched.

        Raises:
            SourceError: none answers.
        """
        if self.far or credits_of(self.sources[self.default]):
            return
        if self._ready is None or monotonic() - self._ready[0] > _PROBED_SECONDS:
            failure = await self._failure()
            self._ready = monotonic(), failure
        if self._ready[1] is not None:
            raise self._ready[1]

    async def _failure(self) -> SourceError | None:
        """What the default source fails with; None where it, or another one, answers."""
        first = self.sources[self.default]
        failure: SourceError | None = None
        for source in {id(source): source for source in (first, *self.sources.values())}.values():
            if credits_of(source):
                continue
            try:
                await ask(source, SearchRequest("ready", limit=1, probe=True), seconds=self.bounds.probe_seconds)
            except SourceError as error:
                failure = failure or error
            else:
                return None
        return failure

    def _source(self, name: str | None) -> Source:
        found = self.sources.get(name or self.default)
        if found is None:
            there = ", ".join(self.sources)
            raise bad_request(f"There is no source {name!r} here; choose from: {there}.", param="source")
        return found

    def _check(self, request: RetrieveRequest, topk: int) -> None:
        if len(request.queries) > self.bounds.queries:
            raise bad_request(
                f"{len(request.queries):,} queries are too many; send at most {self.bounds.queries:,} in one request.",
                param="queries",
                code="too_many_queries",
            )
        if topk > self.bounds.topk:
            raise bad_request(f"'topk' is {topk}; at most {self.bounds.topk} documents are returned.", param="topk")
        if len(request.queries) * topk > self.bounds.documents:
            raise bad_request(
                f"{len(request.queries):,} queries with {topk} documents each are more than the "
                f"{self.bounds.documents:,} documents of one answer; send fewer queries, or request fewer documents.",
                param="topk",
                code="too_many_documents",
            )

    @contextmanager
    def _admitted(self, count: int) -> Generator[None]:
        if self._taken and self._taken + count > self.bounds.waiting:
            raise ApiError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"{self._taken:,} queries are in progress, of at most {self.bounds.waiting:,}; try again in a second.",
                code="server_busy",
                headers={"retry-after": "1"},
            )
        self._taken += count
        try:
            yield
        finally:
            self._taken -= count

    async def _search(
        self, source: Source, queries: Sequence[str], *, limit: int, partial: bool
    ) -> dict[str, SearchResult | SourceError]:
        slots = self._slots[id(source)]
        found: dict[str, SearchResult | SourceError] = {}

        async def search(query: str) -> None:
            async with slots:
                credits = 0.0
                try:
                    request = SearchRequest(query, limit=limit)
                    found[query] = result = await ask(source, request, seconds=self.bounds.seconds)
                except SourceError as error:
                    credits = error.credits
                    if not partial:
                        raise api_error(error, query=query) from error
                    found[query] = error
                else:
                    credits = result.credits or 0.0
                finally:
                    if self.meter:
                        self.meter.searched(1, credits)

        if len(queries) == 1:
            await search(queries[0])  # most requests: a group of tasks would cost more than the search itself
        else:
            await _for_each(queries, search, at_once=min(len(queries), self.bounds.at_once_each))
        return found


class Unread(Response):
    """An answer, which counts as unread until the client has taken it."""

    def __init__(self, answer: bytes, retriever: Retriever) -> None:
        super().__init__(answer, media_type="application/json")
        self._retriever = retriever

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._retriever.unread(bytes(self.body)):
            await super().__call__(scope, receive, send)


async def _for_each(queries: Iterable[str], search: Callable[[str], Awaitable[None]], *, at_once: int) -> None:
    """Search for all of them, a bounded number at the same time.

    Raises:
        ApiError: the first failure; the other searches are given up.
    """
    left = iter(queries)

    async def work() -> None:
        for query in left:
            await search(query)
            await asyncio.sleep(0)  # a source that never waits must not keep the others from their turn

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(work())
    except ExceptionGroup as errors:
        raise first_of(errors, ApiError) from None


def api_error(error: SourceError, *, query: str) -> ApiError:
    """A source's failure as the client reads it, with the kind of the failure in `code` and `kind`."""
    shown = query if len(query) <= 80 else f"{query[:79]}…"
    wait = None if error.retry_after is None else {"retry-after": str(max(1, math.ceil(error.retry_after)))}
    answer = ApiError(
        _STATUS[error.kind], f"The search for {shown!r} failed: {error}", code=f"source_{error.kind}", headers=wait
    )
    answer.body["error"] |= {"type": "source_error", "kind": error.kind}
    return answer


def _clean(query: str, *, most_chars: int) -> str:
    return whole(query.strip()[:most_chars])


def _body(
    queries: Sequence[str], found: Mapping[str, SearchResult | SourceError], *, scores: bool, partial: bool, most: int
) -> bytes:
    """One list for each query, equal ones written once; a query without words finds nothing.

    Raises:
        ApiError: it would have more than `most` bytes.
    """
    lists = {
        query: "[]" if isinstance(result, SourceError) else _list(result.passages, scores)
        for query, result in found.items()
    }
    if sum(len(lists.get(query, "")) for query in queries) > most:
        raise bad_request(
            f"The documents have more than {most:,} bytes; send fewer queries, or request fewer documents.",
            param="topk",
            code="answer_too_large",
        )
    body = f'{{"result":[{",".join(lists.get(query, "[]") for query in queries)}]'
    if partial:
        errors = [
            {"query": place, "kind": failure.kind, "message": str(failure)}
            for place, query in enumerate(queries)
            if isinstance(failure := found.get(query), SourceError)
        ]
        body += f',"errors":{_json(errors)}'
    return f"{body}}}".encode("utf-8", "replace")


def _list(passages: Sequence[Passage], scores: bool) -> str:
    if scores:
        return _json([{"document": document(passage), "score": passage.score} for passage in passages])
    return _json([document(passage) for passage in passages])


def document(passage: Passage) -> dict[str, str]:
    """A passage as Search-R1 writes it: `contents` is the title in quotes, a line break, and the text."""
    title = " ".join(passage.title.split())
    made = {"id": passage.id, "contents": f'"{title}"\n{passage.text}'}
    more = {"url": passage.url, "date": passage.date}
    return made | {name: value for name, value in more.items() if value}
