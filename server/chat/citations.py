"""Citations of an answer: the passages in the order in which the answer cites them, and the marks `[1]` in its text.

A rollout numbers passages as it shows them. A reader sees only the cited ones, so the answer numbers them again from 1.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, assert_never
from urllib.parse import quote

from agent.checks import check_claim
from agent.evidence import Passage
from agent.trace import DOUBTED, Claim, Quote

_MARK: Final = re.compile(r"\[(\d+(?:\s*,\s*\d+)*)\]")
_PENDING: Final = re.compile(r"(\[[\d,\s]*|(?<!\s)\s+)\Z")
_TOUCHING: Final = re.compile(r"\[\d+\](?=\[\d+\])")
_FIRST: Final = re.compile(r"\[\d+\]")
_LAST: Final = re.compile(r"\[\d+\]\Z")
_MARKUP: Final = re.compile(r"[\\`*_\[\]<>!#|~&]")
_SENTENCE_CHARS: Final = 2000
_CHECKS: Final = 200
"""Sentences that are compared with passages whose numbers are imitated; the marks of later ones are in doubt."""
_MARKS: Final = 2000
"""Marks of imitated numbers whose sentence is looked at."""
_ENDS: Final = (". ", "! ", "? ", "\n")
AMBIGUOUS: Final = "[?]"
"""Stands for a number that a passage imitates, where the passage that has it does not say what the answer says."""
NOT_FOUND: Final = "(not found in what it cites)"
CONTRADICTED: Final = "(contradicted by what it cites)"
UNCITED: Final = "(cites nothing)"


class Citations:
    """Which passages the answer cites. `cited` is in order of first mention."""

    def __init__(self, *, numbered: bool = True) -> None:
        """Know nothing yet; `numbered` says whether the policy is shown its passages with numbers."""
        self.cited: list[Passage] = []
        self._numbered = numbered
        self._imitated: set[int] = set()
        self.shown: Mapping[int, tuple[Passage, ...]] = {}
        """Number → the passages that it means now; several where each query numbers its own from 1. Never changed, but
        replaced where more is shown."""
        self._all: list[Passage] = []
        self._checked: dict[tuple[int, str], bool] = {}
        """Number and sentence → whether the passages of the number say it."""
        self._marks = 0
        """Marks of imitated numbers that were looked at."""

    def show(self, passages: Iterable[Passage], *, restarts: bool, imitated: Iterable[int] = ()) -> None:
        """Take note of passages that the policy was shown.

        Args:
            passages: with their numbers.
            restarts: whether numbers start again each round.
            imitated: numbers that a passage's text imitates (see `agent.checks.imitation`).
        """
        passages = tuple(passages)
        self._imitated.update(imitated)
        if not passages:
            return  # who is shown nothing still cites what was shown before
        self._checked.clear()
        self._all += [passage for passage in passages if passage not in self._all]
        shown: dict[int, tuple[Passage, ...]] = {}
        for passage in passages:
            shown[passage.number] = (*shown.get(passage.number, ()), passage)
        self.shown = shown if restarts else {**self.shown, **shown}

    def places(
        self,
        numbers: Iterable[int],
        quotes: Sequence[Quote] = (),
        *,
        shown: Mapping[int, tuple[Passage, ...]] | None = None,
    ) -> list[int]:
        """The reader's numbers for the policy's ones; none for what was not shown.

        Args:
            numbers: as the policy cites.
            quotes: of the claim that cites. Where a number means several passages, they say which one.
            shown: what numbers meant when it was cited, where that is not now.
        """
        shown = self.shown if shown is None else shown
        meant = [passage for number in numbers for passage in self._meant(shown.get(number, ()), quotes)]
        self.cited += [passage for passage in dict.fromkeys(meant) if passage not in self.cited]
        return list(dict.fromkeys(self.cited.index(passage) + 1 for passage in meant))

    def _meant(self, shown: Sequence[Passage], quotes: Sequence[Quote]) -> Sequence[Passage]:
        """What a number means: what is quoted under it, else what is cited already, else all that it may mean."""
        quoted = [passage for passage in shown if any(quote.is_of(passage) for quote in quotes)]
        return quoted or [passage for passage in shown if passage in self.cited] or shown

    def rewrite(self, text: str, *, before: str = "") -> str:
        """Text with the reader's marks instead of the policy's. What cites nothing that was shown stays as it is.

        Args:
            text: of an answer.
            before: what stands before it in the answer.
        """
        if not self._numbered:
            return text

        def mark(match: re.Match[str]) -> str:
            numbers = [int(number) for number in match[1].split(",") if len(number) < 9]
            imitated = not self._imitated.isdisjoint(numbers)
            self._marks += imitated
            said = _said(before, text, match.start()) if imitated and self._marks <= _MARKS else ""
            sure = [number for number in numbers if number not in self._imitated or self._says(number, said)]
            places = self.places(sure)
            written = [marks(places)] if places else []
            return " ".join([*written, *[AMBIGUOUS] * (len(sure) < len(numbers))]) or match[0]

        return _MARK.sub(mark, text)

    def _says(self, number: int, said: str) -> bool:
        """Whether the passages of a number say what the answer says before its mark."""
        known = self._checked.get((number, said))
        if known is None and said and len(self._checked) < _CHECKS:
            known = check_claim(Claim(text=said, cites=(number,)), self.shown).check not in DOUBTED
            self._checked[number, said] = known
        return bool(known)

    def annotations(self, content: str) -> list[dict[str, Any]]:
        """One `url_citation` for each cited passage: where its first mark stands, or else the whole answer."""
        found: list[dict[str, Any]] = []
        for place, passage in enumerate(self.cited, start=1):
            at = content.find(f"[{place}]")
            start, end = (at, at + len(f"[{place}]")) if at >= 0 else (0, len(content))
            citation = {"url": link(passage), "title": passage.title, "start_index": start, "end_index": end}
            found.append({"type": "url_citation", "url_citation": citation})
        return found

    def definitions(self, content: str) -> str:
        """What makes links of a text's marks in Markdown; before it, in words, what has no address on the web."""
        marked = [(place, p) for place, p in enumerate(self.cited, start=1) if f"[{place}]" in content]
        words = [f"- [{place}] {_words(p)}" for place, p in marked if not p.url]
        links = [_definition(place, p) for place, p in marked if p.url]
        return "".join("\n\n" + "\n".join(lines) for lines in (words, links) if lines)

    @property
    def urls(self) -> list[str]:
        return [link(passage) for passage in self.cited]

    @property
    def search_results(self) -> list[dict[str, Any]]:
        """Every passage that was shown, the cited ones first and in their order."""
        rest = [passage for passage in self._all if passage not in self.cited]
        return [
            {
                "title": passage.title,
                "url": link(passage),
                "date": passage.date or None,
                "snippet": passage.text,
                "source": passage.source,
                "id": passage.id,
                "cited": index < len(self.cited),
            }
            for index, passage in enumerate([*self.cited, *rest])
        ]


class AnswerText:
    """The answer on its way: trimmed, with the reader's marks. However it is cut, what comes out is the same."""

    def __init__(self, citations: Citations, *, spaced: bool = False) -> None:
        """Write an answer; `spaced` keeps marks from touching, which Markdown would take for one link."""
        self._citations = citations
        self._spaced = spaced
        self._after_mark = False
        self._held = ""
        self._sent = ""

    def feed(self, text: str) -> str:
        """What can be shown now. The start of a mark and white space at the end are held back."""
        self._held = self._held + text if self._sent else (self._held + text).lstrip()
        pending = _PENDING.search(self._held)
        return self._send(pending.start() if pending else len(self._held))

    def finish(self, answer: str) -> str:
        """The rest, when the whole answer is known."""
        answer = answer.strip()
        self._held = answer.removeprefix(self._sent) if answer.startswith(self._sent) else self._held.rstrip()
        return self._send(len(self._held))

    def _send(self, end: int) -> str:
        ready, self._held = self._held[:end], self._held[end:]
        self._sent += ready
        text = self._citations.rewrite(ready, before=self._sent[: len(self._sent) - len(ready)])
        return self._apart(text) if self._spaced and text else text

    def _apart(self, text: str) -> str:
        text = _TOUCHING.sub(r"\g<0> ", text)
        text = f" {text}" if self._after_mark and _FIRST.match(text) else text
        self._after_mark = _LAST.search(text) is not None
        return text


def _said(before: str, text: str, end: int) -> str:
    """The last sentence of `before` and of the text up to `end`, without the marks in it."""
    near = text[max(0, end - _SENTENCE_CHARS) : end]
    missing = _SENTENCE_CHARS - len(near)
    plain = _MARK.sub(" ", (before[-missing:] if missing else "") + near).strip()
    return plain[max(plain.rfind(end) for end in _ENDS) + 1 :].strip()


def marks(places: Sequence[int]) -> str:
    """`[1] [2]`: with a space, since Markdown reads `[1][2]` as one link."""
    return " ".join(f"[{place}]" for place in places)


def link(passage: Passage) -> str:
    """Where the passage stands; one without an address gets a name of its own."""
    return passage.url or f"urn:cairn:{quote(passage.source, safe='')}:{quote(passage.id, safe='')}"


def _definition(place: int, passage: Passage) -> str:
    """`[1]: <https://…> "Title"`; a title cannot end it, and an address cannot begin another line."""
    address = quote(passage.url, safe="!#$%&'()*+,/:;=?@[]~")
    title = " ".join(passage.title.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'[{place}]: <{address}> "{title}"' if title else f"[{place}]: <{address}>"


def _words(passage: Passage) -> str:
    title = " ".join(passage.title.split()) or passage.id
    return f"{_MARKUP.sub(_escaped, title)} ({passage.source})"


def _escaped(match: re.Match[str]) -> str:
    return f"\\{match[0]}"


def doubt(claim: Claim) -> str:
    """What a reader must know of a claim that no passage supports; empty where one does, or it was never checked."""
    match claim.check:
        case "contradicted":
            return CONTRADICTED
        case "not_found":
            return NOT_FOUND if claim.cites or claim.ambiguous else UNCITED
        case "unchecked" | "verbatim" | "close":
            return ""
        case _:
            assert_never(claim.check)
