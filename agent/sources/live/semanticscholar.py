"""Semantic Scholar: papers with abstracts and citations. Without a key everyone shares one pool, and 429 is usual."""

from collections.abc import Iterable
from typing import Any, Final

from agent.sources.filters import ReadFilters
from agent.sources.limits import Limits
from agent.sources.live.dates import iso_date
from agent.sources.live.reading import ResultRow, member, number, object_of, objects, plain, rows_of, url_of
from agent.sources.live.standalone import StandaloneSource, citations, doi_url, paper_text

FIELDS: Final = "title,abstract,tldr,url,venue,year,publicationDate,citationCount,externalIds,authors"
_KEEP: Final = 7 * 24 * 3600.0


class SemanticScholarSource(StandaloneSource):
    """Papers from the Academic Graph API."""

    name = "semanticscholar"
    BASE = "https://api.semanticscholar.org"
    LIMITS = Limits(concurrency=1, requests=1.0, per_seconds=3.0, timeout_seconds=12.0, keep_seconds=_KEEP)
    KEYED_LIMITS = Limits(concurrency=1, requests=1.0, per_seconds=1.1, timeout_seconds=12.0, keep_seconds=_KEEP)

    def _headers(self) -> dict[str, str]:
        return {"x-api-key": self._key} if self._key else {}

    async def _rows(self, text: str, wanted: ReadFilters, limit: int) -> Iterable[ResultRow]:
        since, until = self._days(wanted)
        found = await self._api.get(
            "/graph/v1/paper/search",
            query=text.replace("-", " ").replace('"', ""),  # a word with a hyphen matches nothing there
            limit=limit,
            fields=FIELDS,
            publicationDateOrYear=f"{since}:{until}" if since or until else None,
        )
        data = object_of(found, by=self.name)
        return map(self._row, rows_of(data, "data", by=self.name, needed=data.get("total") != 0))

    def _row(self, paper: dict[str, Any]) -> ResultRow:
        authors = [plain(author.get("name")) for author in objects(paper.get("authors"))]
        abstract = plain(paper.get("abstract")) or plain(member(paper, "tldr").get("text"))
        more = (plain(paper.get("venue")), citations(number(paper.get("citationCount"))))
        doi = plain(member(paper, "externalIds").get("DOI"))
        return ResultRow(
            title=plain(paper.get("title")),
            text=paper_text(abstract, authors=[*filter(None, authors)], more=more),
            url=url_of(doi_url(doi)) or url_of(paper.get("url")),
            date=iso_date(paper.get("publicationDate") or plain(paper.get("year")), now=self._now()),
        )
