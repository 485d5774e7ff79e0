"""arXiv: its Atom API over our own client, read by the `arxiv` package's parser, behind one polite queue.

That package's own client blocks its thread, knows no timeout and takes a refusal for an empty answer, so only its
parser is used; it is private there, which is why the version is pinned.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from html import unescape
from pathlib import Path
from typing import Any, Final

import httpx2

from agent.errors import SourceError
from agent.evidence import Passage
from agent.outbound.numbers import retry_after
from agent.sources.base import SearchRequest, SearchResult
from agent.sources.filters import ReadFilters, read_filters, unhonoured
from agent.sources.http import Api, ApiAnswer
from agent.sources.limits import Limits
from agent.sources.live.polite_queue import PoliteQueue
from agent.sources.live.queries import telling
from agent.sources.live.standalone import byline

BASE: Final = "https://export.arxiv.org"
LIMITS: Final = Limits(
    concurrency=1,
    requests=1.0,
    per_seconds=3.0,
    timeout_seconds=45.0,  # counts the wait in the queue; one request alone has 20 s
    wait_seconds=6.0,
    longest_wait_seconds=60.0,
    breaker_failures=3,
    breaker_seconds=120.0,
    keep_seconds=7 * 24 * 3600.0,
    stale_seconds=30 * 24 * 3600.0,
)
HONOURS: Final = frozenset({"after", "before", "recent"})
REQUEST_SECONDS: Final = 20.0
MAX_RESULTS: Final = 100

_ID: Final = r"(?:\d{4}\.\d{4,5}|[a-z]+(?:-[a-z]+)?(?:\.[A-Za-z-]+)?/\d{7})(?!\d)(?:v\d+)?"
_LINK: Final = r"(?:https?://)?(?:www\.|export\.)?arxiv\.org/(?:abs|pdf|html|format|src|e-print)/"
_NAMED_ID: Final = re.compile(rf"(?i:arxiv\s*:\s*|{_LINK}|10\.48550/arxiv\.)({_ID})")
_ONLY_IDS: Final = re.compile(rf"\s*{_ID}(?:(?:\s*[,;]\s*|\s+(?:and\s+)?){_ID})*\s*")
_PREFIX: Final = re.compile(r"(?<!\w)(?:ti|au|abs|co|jr|cat|rn|id|all|submittedDate|lastUpdatedDate):(?=\S)")
_OPERATOR: Final = re.compile(r"(\s+(?:AND|OR|ANDNOT|NOT)\s+)")
_SAYS_NOTHING: Final = frozenset(
    "arxiv paper papers article articles preprint preprints publication publications study studies literature "
    "author authors authored wrote written published proposed propose proposes introduced introduce introduces "
    "presented presents latest recent newest new first year work works research used using use "
    "came come out appeared released".split()
)
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_MUST: Final = 3
_WORDS: Final = 8
"""How many must be there at most, and how many are used at all."""
_ERROR_ENTRY: Final = re.compile(rb"<id>\s*https?://(?:export\.)?arxiv\.org/api/errors")
_SUMMARY: Final = re.compile(rb"<summary[^>]*>(.*?)</summary>", re.DOTALL)


QUEUE: Final = PoliteQueue(3.0, file=Path("~/.cache/cairn/arxiv.queue"))
"""The queue of all of a user's processes: arXiv asks each client for one connection and three seconds between requests,
"even when you control multiple machines"; queues of several machines don't know each other."""


class ArxivSource:
    """Papers by question, by arXiv's own query language, or by id."""

    name = "arxiv"
    HONOURS = HONOURS

    def __init__(
        self,
        client: httpx2.AsyncClient,
        *,
        base: str = BASE,
        limits: Limits = LIMITS,
        queue: PoliteQueue = QUEUE,
        request_seconds: float = REQUEST_SECONDS,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
    ) -> None:
        """Ask the API under `base`.

        Args:
            client: shared; who made it closes it.
            base: of the API, without /api/query.
            limits: for the guard around this source.
            queue: every request waits here for its turn, those of other objects too.
            request_seconds: for one request, without the wait for its turn.
            today: the day (GMT) that `recent` is counted from.
        """
        self._api = Api(client, name=self.name, base=base, kinds={403: "quota"})
        self.limits = limits
        self._queue = queue
        self._request_seconds = request_seconds
        self._today = today

    async def search(self, request: SearchRequest) -> SearchResult:
        """Give the abstracts of at most `limit` papers, in one request.

        Raises:
            SourceError: with its kind; the wait for one's turn is bounded by the caller.
        """
        notes = unhonoured(request.filters, honours=HONOURS, by=self.name)
        wanted = _parameters(request.query, read_filters(request.filters), today=self._today())
        if request.limit < 1 or not wanted:
            return SearchResult(backend=self.name, notes=notes)
        params = {
            **wanted,
            "start": 0,
            "max_results": min(request.limit, MAX_RESULTS),
            "sortBy": "relevance",
            "sortOrder": "descending",
        }
        async with self._queue.turn():
            answer = await self._get(params)
        return SearchResult(tuple(read_feed(answer.body)), backend=self.name, notes=notes)

    async def _get(self, params: Mapping[str, object]) -> ApiAnswer:
        try:
            async with asyncio.timeout(self._request_seconds):
                answer = await self._api.send("GET", "/api/query", params=params)
        except TimeoutError as error:
            raise SourceError(f"arxiv did not answer in {self._request_seconds:g} s", kind="timeout") from error
        if why := _error_entry(answer.body):
            raise SourceError(f"arxiv refuses the query: {why}", kind="bad_query")
        self._api.checked(answer)
        if b"<feed" not in answer.body[:2000]:
            if b"rate exceeded" in answer.body[:500].lower():
                raise SourceError("arxiv says: Rate exceeded", kind="rate", retry_after=retry_after(answer.headers))
            raise SourceError(f"arxiv sent no feed: {answer.text[:80]!r}", kind="parse")
        return answer


def read_feed(body: bytes) -> list[Passage]:
    """The passages of one Atom page, in its order.

    Raises:
        SourceError: the feed is broken (parse), or it says that there is more than it holds (upstream).
    """
    import arxiv._feed as feed_parser  # loads lxml and requests  # pyright: ignore[reportMissingTypeStubs]

    if not body.rstrip().endswith(b"</feed>"):  # the parser would repair it, and lose papers in silence
        raise SourceError("arxiv sent a feed that breaks off", kind="parse")
    try:
        feed: Any = feed_parser.parse(body)
    except ValueError as error:  # a date that is none
        raise SourceError(f"arxiv sent a feed that cannot be read: {error}", kind="parse") from error
    if feed.malformed:
        raise SourceError(f"arxiv sent a feed that cannot be read: {feed.error}", kind="parse")
    if not feed.results and feed.header.total_results > feed.header.start_index:
        raise SourceError(f"arxiv sent an empty page of {feed.header.total_results} papers", kind="upstream")
    return [_passage(result, rank=rank) for rank, result in enumerate(feed.results, start=1)]


def _passage(result: Any, *, rank: int) -> Passage:
    name = result.entry_id.split("/abs/")[-1]
    return Passage(
        id=f"arxiv:{name}",
        source="arxiv",
        title=_line(result.title),
        text=f"{_byline(result)}\n{_line(result.summary)}",
        url=f"https://arxiv.org/abs/{name}",
        date=result.published.date().isoformat(),
        score=1 / rank,
        rank=rank,
    )


def _byline(result: Any) -> str:
    """Who wrote it, where it belongs, where it was published: no abstract states these."""
    journal = [_line(result.journal_ref)] if result.journal_ref else []
    return byline([_line(author.name) for author in result.authors], [", ".join(result.categories), *journal])


def _line(text: str) -> str:
    return " ".join(text.split())


def _error_entry(body: bytes) -> str:
    """The sentence of an error that comes as an entry of a feed, with 200 or 400."""
    if not _ERROR_ENTRY.search(body):
        return ""
    summary = _SUMMARY.search(body)
    return _line(unescape(summary[1].decode("utf-8", errors="replace"))) if summary else "no reason given"


def _parameters(query: str, wanted: ReadFilters, *, today: date) -> dict[str, str]:
    """The parameters of a search; empty where the query holds no word."""
    dates = _submitted(wanted, today=today)
    if ids := _ids(query):
        return {"id_list": ",".join(ids)} | ({"search_query": dates} if dates else {})
    search = search_query(query)
    if not search:
        return {}
    return {"search_query": f"({search}) AND {dates}" if dates else search}


def _ids(query: str) -> list[str]:
    """Ids that the query consists of, or that it names as such; a bare number within a sentence is no id."""
    named = _NAMED_ID.findall(query)
    if not named and _ONLY_IDS.fullmatch(query):
        named = re.findall(_ID, query)
    return list(dict.fromkeys(named))


def _submitted(wanted: ReadFilters, *, today: date) -> str:
    since, until = wanted.since(today), wanted.before
    if since is None and until is None:
        return ""
    return f"submittedDate:[{since or date(1991, 1, 1):%Y%m%d}0000 TO {until or today:%Y%m%d}2359]"


def search_query(text: str) -> str:
    """Write a question in arXiv's query language, so that one request finds the most.

    * Who writes prefixes (`ti:`, `au:`, `cat:` …) is taken at their word. With operators but no prefix, each operand is
      read by the next rule.
    * Phrases and the three words that say the most (names, numbers and hyphens first, then the longest) must all be
      there; of up to five more, at least one. All words ANDed find nothing for a long question, all words ORed find
      hundreds of thousands of papers and rank them poorly. The text as a whole may also be a title:
      "Attention is all you need" has hardly a word that says anything.
    """
    text = _line(text)
    if _PREFIX.search(text):
        return text
    parts = _OPERATOR.split(text)
    if len(parts) == 1 or text.isupper():
        return _with_title(text)
    operands = [_wanted_words(part) for part in parts[::2]]
    if not all(operands):
        return _with_title(text)
    operators = [" ANDNOT " if "NOT" in part else part for part in (f" {part.strip()} " for part in parts[1::2])]
    joined = [f"({operand})" if " " in operand else operand for operand in operands]
    return joined[0] + "".join(operator + operand for operator, operand in zip(operators, joined[1:], strict=True))


def _with_title(text: str) -> str:
    words = re.findall(r"[^\W_]+", text)
    wanted = _wanted_words(text)
    if not 2 <= len(words) <= 20 or '"' in text:
        return wanted
    return f'ti:"{" ".join(words)}" OR ({wanted})'


def _wanted_words(text: str) -> str:
    found = telling(text, without=_SAYS_NOTHING)
    phrases = [part for phrase in found.phrases if (part := _all(phrase))]
    words = [word for word in found.words if not _YEAR.fullmatch(word)] or list(
        found.words
    )  # no abstract states its year
    # The longest and the most particular words say most; the order in the text decides between equals.
    ranked = sorted(words, key=_weight, reverse=True)[:_WORDS]
    must, may = ranked[:_MUST], ranked[_MUST:]
    clauses = phrases + [_all(word) for word in words if word in must]
    if may:
        clauses.append(f"({' OR '.join(_all(word) for word in words if word in may)})")
    return " AND ".join(clauses)


def _weight(word: str) -> tuple[bool, int]:
    particular = any(c.isdigit() or c == "-" for c in word) or not word[1:].islower() or word[0].isupper()
    return particular, len(word)


def _all(text: str) -> str:
    """One clause; whatever could be syntax goes."""
    words = re.findall(r"[^\W_]+", text)
    return "" if not words else f"all:{words[0]}" if len(words) == 1 else f'all:"{" ".join(words)}"'
