"""Whatever JSON an API sends, a backend gives clean passages or a `SourceError`, and nothing else."""

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.errors import SourceError
from agent.sources.base import SearchRequest, SearchResult
from tests.agent.sources.live.backend_cases import BACKEND_CASES, NAMES, filters, recorded

SCALARS = st.none() | st.booleans() | st.integers(-9, 10**400) | st.floats() | st.text(max_size=8)
DATES = st.sampled_from(["2026-11-03", "2 weeks ago", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
URLS = st.sampled_from(["https://a.org/x", "http://b.org", "http://[", "javascript:x", "https://a.org:99999/"])
MEMBERS = (
    "results articles organic news web answers infoboxes answerBox knowledgeGraph attributes urls usage credits title "
    "content snippet description extra_snippets url link score date year publishedDate published_date publishedAt age "
    "page_age unresponsive_engines answer infobox label value id"
)


def objects(values: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    return st.dictionaries(st.sampled_from(MEMBERS.split()), values, max_size=8)


ANSWERS = objects(
    st.recursive(
        SCALARS | DATES | URLS,
        lambda inner: st.lists(inner, max_size=3) | objects(inner) | st.lists(objects(inner), max_size=3),
    )
)
CONDITIONS: tuple[Mapping[str, str], ...] = ({}, {"site": "a.org", "lang": "de"}, {"not": "b.org", "kind": "science"})


def read(name: str, answer: object, where: Mapping[str, str]) -> SearchResult | SourceError:
    """What the backend makes of an answer, without a server: hundreds of answers a test."""

    async def test() -> SearchResult | SourceError:
        body = json.dumps(answer).encode()
        transport = httpx2.MockTransport(lambda _: httpx2.Response(200, content=body))
        async with asyncio.timeout(10), httpx2.AsyncClient(transport=transport) as client:
            source = BACKEND_CASES[name].make(client, "http://127.0.0.1:1")
            try:
                found = await source.search(SearchRequest("aurora", limit=4, filters=tuple(filters(where))))
            except SourceError as error:
                return error
        return found

    return asyncio.run(test())


def is_sound(name: str, found: SearchResult | SourceError) -> bool:
    if isinstance(found, SourceError):
        return found.kind == "parse" or (name == "searxng" and found.kind == "upstream")
    found_json = json.dumps([hit.model_dump() for hit in found.passages], ensure_ascii=False)
    return (
        bool(found_json.encode())
        and len(found.passages) <= 4
        and [hit.rank for hit in found.passages] == list(range(1, len(found.passages) + 1))
        and len({hit.id for hit in found.passages}) == len(found.passages)
        and all(not hit.url or hit.url.startswith("http") for hit in found.passages)
        and all(hit.title or hit.text for hit in found.passages)
        and (found.credits or 0.0) >= 0
    )


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20)
@given(answer=ANSWERS, where=st.sampled_from(CONDITIONS))
def test_any_object_is_read_or_refused(name: str, answer: dict[str, object], where: Mapping[str, str]):
    assert is_sound(name, read(name, answer, where))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20)
@given(data=st.data())
def test_a_fixture_with_one_member_replaced_is_read_or_refused(name: str, data: st.DataObject):
    members = list(paths(recorded(BACKEND_CASES[name].fixture)))
    path = data.draw(st.sampled_from(members))
    value = data.draw(SCALARS | DATES | URLS | st.lists(SCALARS, max_size=2) | objects(SCALARS))
    assert is_sound(name, read(name, replaced(recorded(BACKEND_CASES[name].fixture), path, value), {}))


def paths(value: Any) -> Iterator[tuple[Any, ...]]:
    """Where each member of a JSON value is."""
    inner: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        inner = cast(dict[str, Any], value).items()
    elif isinstance(value, list):
        inner = enumerate(cast(list[Any], value))
    for key, member in inner:
        yield (key,)
        yield from ((key, *rest) for rest in paths(member))


def replaced(value: Any, path: tuple[Any, ...], by: object) -> Any:
    place = value
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = by
    return value
