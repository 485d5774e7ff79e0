"""What an answer cites, in any of the forms that agents use, as one list.

`citations` (a list of addresses, as Perplexity gives it), `annotations` with url_citation (OpenAI's), `search_results`,
and where there is none of them the text itself: Markdown links, and names of passages in square brackets.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlencode

from agent.outbound.urls import split_url
from train.evaluation.answer import Citation

_LINK: Final = re.compile(
    r"\[([^\[\]]*)\]\(<?((?:https?|urn):[^\s<>()]*(?:\([^\s()]*\)[^\s<>()]*)*)>?(?:\s+\"[^\"]*\")?\)"
)
_BARE: Final = re.compile(r"(?<!\]\()(?<!\]\(<)(?<![\w\"])https?://[^\s<>\"\])]+")
_BRACKETS: Final = re.compile(r"[\[【]\s*([^\[\]【】]{1,200}?)\s*[\]】]")
_NUMBER: Final = re.compile(r"\^?(\d{1,3})")
_OURS: Final = re.compile(r"urn:cairn:[^:]*:(.+)")
_TRACKING: Final = ("utm_", "ref_src", "fbclid", "gclid")


def address(url: str) -> str:
    """An address without what does not change the page, to compare by: scheme, www., fragment, tracking, last slash."""
    parts = split_url(url.strip())
    if not parts.netloc:
        return url.strip()
    query = urlencode([(k, v) for k, v in parse_qsl(parts.query) if not k.lower().startswith(_TRACKING)])
    host = parts.netloc.lower().removeprefix("www.")
    return f"{host}{parts.path.rstrip('/')}{'?' + query if query else ''}"


class Passages:
    """The passages that could be cited, known by their ids and addresses."""

    def __init__(self, addresses: Mapping[str, str], ids: Iterable[str] = ()) -> None:
        """Take what is known: `addresses` are id → URL, `ids` those of passages without a known address."""
        self._by_address = {address(url): id for id, url in addresses.items() if url}
        self._ids = frozenset(addresses) | frozenset(ids)

    def id_of(self, url: str, *, said: str = "") -> str:
        """The passage's id: by its address, by the name in a URN of ours, or as the agent said."""
        if known := self._by_address.get(address(url)) if url else None:
            return known
        if ours := _OURS.fullmatch(url):
            return unquote(ours[1])
        return url if url in self._ids else said

    def __contains__(self, name: str) -> bool:
        return name in self._ids


def read_citations(
    text: str,
    *,
    citations: Sequence[Any] = (),
    annotations: Sequence[Any] = (),
    search_results: Sequence[Any] = (),
    passages: Passages,
) -> tuple[Citation, ...]:
    """Everything that the answer cites, each once, in the order of its numbers.

    Args:
        text: what the agent wrote, without reasoning.
        citations: addresses, or objects with one; an answer's `[n]` is the n-th.
        annotations: OpenAI's, of which url_citation counts, in either of its two shapes.
        search_results: what the agent saw; used alone, only what `[n]` names or is marked as cited counts.
        passages: what could be cited.
    """
    results = [made for entry in search_results if (made := _entry(entry))]
    given = [made for entry in citations if (made := _entry(entry))]
    given += [made for entry in annotations if (made := _annotation(entry))]
    if not given:
        given = _of_results(text, search_results) or _of_text(text, passages)
    known = {address(result.url): result for result in results if result.url}
    found: dict[str, Citation] = {}
    for entry in given:
        more = known.get(address(entry.url)) if entry.url else None
        id = passages.id_of(entry.url, said=entry.id or (more.id if more else ""))
        full = Citation(
            id=id,
            url=entry.url,
            title=entry.title or (more.title if more else ""),
            text=entry.text or (more.text if more else ""),
        )
        found.setdefault(id or address(entry.url) or full.name, full)
    return tuple(found.values())


def _entry(entry: Any) -> Citation | None:
    """One of `citations` or `search_results`: an address, or an object that has one or an id."""
    if isinstance(entry, str):
        return Citation(url=entry) if entry.strip() else None
    if not isinstance(entry, Mapping):
        return None
    made = Citation(
        id=_text(entry, "id"),
        url=_text(entry, "url", "link"),
        title=_text(entry, "title"),
        text=_text(entry, "snippet", "content", "text", "quote"),
    )
    return made if made.id or made.url else None


def _annotation(entry: Any) -> Citation | None:
    if not isinstance(entry, Mapping) or entry.get("type") != "url_citation":
        return None
    inner = entry.get("url_citation")
    return _entry({**(inner if isinstance(inner, Mapping) else entry), "id": ""})


def _of_results(text: str, results: Sequence[Any]) -> list[Citation]:
    """Of the results, what the text numbers, or what is marked as cited."""
    numbers = {int(number[1]) for inner in _BRACKETS.findall(text) for number in _NUMBER.finditer(inner)}
    chosen = [
        _entry(result)
        for place, result in enumerate(results, start=1)
        if place in numbers or (isinstance(result, Mapping) and result.get("cited") is True)
    ]
    return [made for made in chosen if made]


def _of_text(text: str, passages: Passages) -> list[Citation]:
    """Links and addresses in the text, and ids of passages in brackets, in their order."""
    found: list[tuple[int, Citation]] = [
        (link.start(), Citation(url=link[2], title="" if link[1].isdigit() else link[1]))
        for link in _LINK.finditer(text)
    ]
    found += [(bare.start(), Citation(url=bare[0].rstrip(".,;:!?'*_"))) for bare in _BARE.finditer(text)]
    for bracket in _BRACKETS.finditer(text):
        names = (name.strip() for name in re.split(r"[,;]", bracket[1]))
        found += [(bracket.start(), Citation(id=name)) for name in names if name in passages]
    return [citation for _, citation in sorted(found, key=lambda pair: pair[0])]


def _text(entry: Mapping[Any, Any], *names: str) -> str:
    return next((value for name in names if isinstance(value := entry.get(name), str) and value), "")
