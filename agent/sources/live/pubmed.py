"""PubMed: NCBI's E-utilities find the ids of articles, then give these articles, as XML with their abstracts.

Both requests are forms, so that neither the key nor the query is in a URL.
"""

from collections.abc import Iterable
from typing import Any, Final
from xml.etree import ElementTree

from agent.errors import SourceError
from agent.sources.filters import ReadFilters
from agent.sources.limits import Limits
from agent.sources.live.reading import ResultRow, member, object_of, plain, texts, url_of
from agent.sources.live.standalone import StandaloneSource, paper_text

TOOL: Final = "cairn-search"
_KEEP: Final = 7 * 24 * 3600.0
_MONTHS: Final[tuple[str, ...]] = tuple("jan feb mar apr may jun jul aug sep oct nov dec".split())
_ARTICLE: Final = "MedlineCitation/Article"
Xml = ElementTree.Element


class PubMedSource(StandaloneSource):
    """Articles from PubMed. NCBI allows three requests a second without a key, ten with one; a search makes two."""

    name = "pubmed"
    BASE = "https://eutils.ncbi.nlm.nih.gov"
    LIMITS = Limits(concurrency=1, requests=1.0, per_seconds=1.0, timeout_seconds=12.0, keep_seconds=_KEEP)
    KEYED_LIMITS = Limits(concurrency=4, requests=4.0, per_seconds=1.0, timeout_seconds=12.0, keep_seconds=_KEEP)

    async def _rows(self, text: str, wanted: ReadFilters, limit: int) -> Iterable[ResultRow]:
        since, until = (day.replace("-", "/") for day in self._days(wanted))
        dates = {"datetype": "pdat", "mindate": since or "1800", "maxdate": until or "3000"} if since or until else {}
        form = {"term": text, "retmax": str(limit), "retmode": "json", "sort": "relevance", **dates}
        ids = self._ids(self._api.parse(await self._sent("esearch", form)))
        if not ids:
            return ()
        return read_articles((await self._sent("efetch", {"id": ",".join(ids[:limit]), "retmode": "xml"})).body)

    async def _sent(self, program: str, form: dict[str, str]) -> Any:
        form = {"db": "pubmed", "tool": TOOL, **form, **({"api_key": self._key} if self._key else {})}
        answer = await self._api.send("POST", f"/entrez/eutils/{program}.fcgi", form=form)
        if answer.status == 400 and "api key" in answer.text[:500].lower().replace("-", " "):
            raise SourceError("pubmed answered 400: it does not know this key", kind="auth")
        return self._api.checked(answer)

    def _ids(self, found: Any) -> list[str]:
        result = member(object_of(found, by=self.name), "esearchresult")
        if why := plain(result.get("ERROR")):
            raise SourceError(f"pubmed cannot search: {why[:160]}", kind="bad_query")
        ids = result.get("idlist")
        if not isinstance(ids, list):
            raise SourceError("pubmed sent an unexpected answer: there is no list 'idlist' in it", kind="parse")
        return [name for name in texts(ids) if name.isdigit()]  # pyright: ignore[reportUnknownArgumentType]


def read_articles(body: bytes) -> list[ResultRow]:
    """The articles of one answer, in its order.

    Raises:
        SourceError: it is no XML, or XML with entities of its own, which may grow without a bound.
    """
    try:
        text = body.decode("utf-8")
        if "<!ENTITY" in text:
            raise SourceError("pubmed sent XML that declares entities", kind="parse")
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise SourceError(f"pubmed sent XML that cannot be read: {error}", kind="parse") from error
    if root.tag != "PubmedArticleSet":
        raise SourceError(f"pubmed sent {root.tag[:80]!r} and no articles", kind="parse")
    return [_row(article) for article in root.iterfind("PubmedArticle")]


def _row(article: Xml) -> ResultRow:
    number = _text(article.find("MedlineCitation/PMID"))
    authors = [_author(one) for one in article.iterfind(f"{_ARTICLE}/AuthorList/Author")]
    parts = [_part(one) for one in article.iterfind(f"{_ARTICLE}/Abstract/AbstractText")]
    ids = article.iterfind("PubmedData/ArticleIdList/ArticleId")
    doi = next((f"doi:{_text(one)}" for one in ids if one.get("IdType") == "doi"), "")
    more = (_text(article.find(f"{_ARTICLE}/Journal/Title")), doi)
    return ResultRow(
        title=_text(article.find(f"{_ARTICLE}/ArticleTitle")).rstrip("."),
        text=paper_text("\n".join(filter(None, parts)), authors=[*filter(None, authors)], more=more),
        url=url_of(f"https://pubmed.ncbi.nlm.nih.gov/{number}/") if number.isdigit() else "",
        date=_date(article.find(f"{_ARTICLE}/ArticleDate"))
        or _date(article.find(f"{_ARTICLE}/Journal/JournalIssue/PubDate")),
    )


def _text(element: Xml | None) -> str:
    return plain(" ".join("".join(element.itertext()).split())) if element is not None else ""


def _part(element: Xml) -> str:
    """`Methods: …` of an abstract in parts."""
    label = plain(element.get("Label")).capitalize()
    return f"{label}: {_text(element)}" if label else _text(element)


def _author(author: Xml) -> str:
    names = (_text(author.find("ForeName")), _text(author.find("LastName")))
    return " ".join(filter(None, names)) or _text(author.find("CollectiveName"))


def _date(element: Xml | None) -> str:
    """`2024-01-05`, `2024-01` or `2024`; "" where a date is in words, such as "2024 Spring"."""
    if element is None:
        return ""
    year, month, day = (_text(element.find(name)) for name in ("Year", "Month", "Day"))
    if month[:3].lower() in _MONTHS:
        month = str(_MONTHS.index(month[:3].lower()) + 1)
    known = [part for part in (year, month, day) if part.isdigit() and part.isascii()]
    if not known or known[0] != year or len(year) != len("2024"):
        return ""
    return "-".join([year, *(part.zfill(2)[:2] for part in known[1:] if month.isdigit())])
