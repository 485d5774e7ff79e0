"""OpenAlex: 250 million works of all sciences. Its abstracts come as an index of words, and are put together again."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, cast

from agent.errors import SourceErrorKind
from agent.sources.filters import ReadFilters
from agent.sources.limits import Limits
from agent.sources.live.dates import iso_date
from agent.sources.live.reading import ResultRow, member, number, object_of, objects, plain, rows_of, url_of
from agent.sources.live.standalone import StandaloneSource, citations, doi_url, paper_text

SELECT: Final = (
    "id,doi,display_name,publication_date,abstract_inverted_index,authorships,primary_location,cited_by_count"
)
_SYNTAX: Final = str.maketrans(dict.fromkeys('*?~!|()[]{}^:\\"'))
"""Signs of its query language. It refuses wildcards."""
MAX_WORDS: Final = 3_000
"""Of one abstract."""


class OpenAlexSource(StandaloneSource):
    """Works from OpenAlex, with their abstracts. A free key allows 1,000 searches a day, no key about 100."""

    name = "openalex"
    BASE = "https://api.openalex.org"
    HONOURS = StandaloneSource.HONOURS | {"lang"}
    LIMITS = KEYED_LIMITS = Limits(concurrency=4, requests=5.0, per_seconds=1.0, keep_seconds=7 * 24 * 3600.0)
    KINDS: ClassVar[Mapping[int, SourceErrorKind]] = {403: "rate", 429: "quota"}

    def _unlogged(self) -> dict[str, str]:
        return {"api_key": self._key} if self._key else {}

    async def _rows(self, text: str, wanted: ReadFilters, limit: int) -> Iterable[ResultRow]:
        search = " ".join(text.translate(_SYNTAX).split())
        since, until = self._days(wanted)
        filters = {"from_publication_date": since, "to_publication_date": until, "language": wanted.lang}
        found = await self._api.get(
            "/works",
            search=search,
            filter=",".join(f"{name}:{value}" for name, value in filters.items() if value) or None,
            per_page=limit,
            select=SELECT,
        )
        return map(self._row, rows_of(object_of(found, by=self.name), "results", by=self.name, needed=True))

    def _row(self, work: dict[str, Any]) -> ResultRow:
        place = member(work, "primary_location")
        authors = [plain(member(one, "author").get("display_name")) for one in objects(work.get("authorships"))]
        more = (plain(member(place, "source").get("display_name")), citations(number(work.get("cited_by_count"))))
        return ResultRow(
            title=plain(work.get("display_name")),
            text=paper_text(
                abstract_of(work.get("abstract_inverted_index")), authors=[*filter(None, authors)], more=more
            ),
            url=url_of(doi_url(plain(work.get("doi"))))
            or url_of(place.get("landing_page_url"))
            or url_of(work.get("id")),
            date=iso_date(work.get("publication_date"), now=self._now()),
        )


def abstract_of(index: object) -> str:
    """The text whose words stand at these places: `{"A": [0, 2], "b": [1]}` is "A b A"."""
    places = cast(dict[str, Any], index) if isinstance(index, dict) else {}
    words = [
        (place, word)
        for word, at in places.items()
        if isinstance(at, list)
        for place in cast(list[Any], at)
        if isinstance(place, int)
    ]
    return plain(" ".join(word for _, word in sorted(words)[:MAX_WORDS]))
