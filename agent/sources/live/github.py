"""GitHub: repositories by what they are about, and issues by what they say.

Code is not searched: GitHub gives fragments without what stands around them, and only to those with a key.
"""

from collections.abc import Iterable
from itertools import chain, zip_longest
from typing import Any, Final

from agent.errors import SourceError
from agent.outbound.numbers import retry_after
from agent.sources.filters import ReadFilters
from agent.sources.http import ApiAnswer, sentence_of
from agent.sources.limits import Limits
from agent.sources.live.dates import iso_date
from agent.sources.live.queries import cut
from agent.sources.live.reading import ResultRow, member, number, object_of, plain, rows_of, texts, url_of
from agent.sources.live.standalone import StandaloneSource, byline

MAX_BODY: Final = 2_000
"""Characters of an issue: a log that was pasted into it has no end."""
PAUSE_SECONDS: Final = 60.0
"""After a limit that names no time."""


class GitHubSource(StandaloneSource):
    """Repositories and issues, in turns. Ten requests a minute without a key, 30 with one; a search makes two."""

    name = "github"
    BASE = "https://api.github.com"
    SCIENCE = False
    LIMITS = Limits(concurrency=1, requests=5.0, per_seconds=60.0)
    KEYED_LIMITS = Limits(concurrency=2, requests=15.0, per_seconds=60.0)
    MAX_RESULTS = 100

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        return headers | ({"Authorization": f"Bearer {self._key}"} if self._key else {})

    async def _rows(self, text: str, wanted: ReadFilters, limit: int) -> Iterable[ResultRow]:
        since, until = self._days(wanted)
        days = f"{since or '*'}..{until or '*'}" if since or until else ""
        repositories = await self._found("repositories", f"{text} pushed:{days}" if days else text, limit)
        issues = await self._found("issues", f"{text} is:issue updated:{days}" if days else f"{text} is:issue", limit)
        pairs = zip_longest(map(self._repository, repositories), map(self._issue, issues))
        return filter(None, chain.from_iterable(pairs))

    async def _found(self, what: str, query: str, limit: int) -> list[dict[str, Any]]:
        answer = await self._api.send("GET", f"/search/{what}", params={"q": query, "per_page": limit})
        data = object_of(self._api.parse(self._api.checked(self._limited(answer))), by=self.name)
        return rows_of(data, "items", by=self.name, needed=True)

    def _limited(self, answer: ApiAnswer) -> ApiAnswer:
        """GitHub answers 403 for its limits, too; which one it is, headers and words say.

        Raises:
            SourceError: a limit was reached.
        """
        spent = answer.headers.get("x-ratelimit-remaining") == "0"
        if answer.status not in {403, 429} or not (
            spent or answer.status == 429 or "rate limit" in answer.text.lower()
        ):
            return answer
        reset = answer.headers.get("x-ratelimit-reset", "")
        left = (
            float(reset) - self._now().timestamp() if spent and reset.isdecimal() and len(reset) < 12 else PAUSE_SECONDS
        )
        stated = retry_after(answer.headers)
        why = f"{self.name} answered {answer.status}: {sentence_of(answer)}"
        raise SourceError(why, kind="rate", retry_after=max(0.0, left) if stated is None else stated)

    def _repository(self, row: dict[str, Any]) -> ResultRow:
        stars = number(row.get("stargazers_count"))
        facts = (
            plain(row.get("language")),
            "" if stars is None else f"{stars:,.0f} stars",
            plain(member(row, "license").get("spdx_id")).replace("NOASSERTION", ""),
            ", ".join(texts(row.get("topics"))),
        )
        return ResultRow(
            title=plain(row.get("full_name")),
            text="\n".join(filter(None, (byline([], ["repository", *facts]), plain(row.get("description"))))),
            url=url_of(row.get("html_url")),
            date=iso_date(row.get("pushed_at"), now=self._now()),
        )

    def _issue(self, row: dict[str, Any]) -> ResultRow:
        comments = number(row.get("comments"))
        of = "/".join(plain(row.get("repository_url")).split("/")[-2:])
        facts = (of, plain(row.get("state")), "" if comments is None else f"{comments:,.0f} comments")
        body = plain(row.get("body"))
        return ResultRow(
            title=plain(row.get("title")),
            text="\n".join(
                (byline([], ["issue", *facts]), body if len(body) <= MAX_BODY else cut(body, MAX_BODY) + "…")
            ),
            url=url_of(row.get("html_url")),
            date=iso_date(row.get("updated_at"), now=self._now()),
        )
