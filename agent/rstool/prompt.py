"""Evidence as text for another model. Nothing that a stranger wrote can leave its line, or end the block.

Every line of the sources' own words begins with "> ", and each line of a quotation but its first with more blanks, so
that no quotation can begin another one. The marks around the block carry a digest of what is between
them: who writes a page cannot know it, because the page is part of it.
"""

import hashlib
from typing import TYPE_CHECKING, Final

from agent.sanitize.sanitize import sanitize

if TYPE_CHECKING:
    from agent.rstool.bundle import Attempt, CitedSource, EvidenceBundle, EvidenceClaim

TAGS: Final = (
    "evidence", "quote", "claim", "source", "information", "observation", "result", "documents", "document", "search",
    "query", "answer", "merge", "reflect", "original_evidence", "fill", "parents", "system", "user", "assistant",
)  # fmt: skip
"""Names that would look like marks of ours or of a downstream model."""
_SAID: Final = {
    "verbatim": "stands in the source in these words",
    "close": "stands in the source in other words",
    "not_found": "NOT FOUND in what it cites: do not rely on it",
    "contradicted": "CONTRADICTED by what it cites: do not rely on it",
    "unchecked": "not checked",
}
_DIGITS: Final = 16


def prompt_of(bundle: "EvidenceBundle") -> str:
    """The text form; see `EvidenceBundle.to_prompt`."""
    body = "\n".join(_lines(bundle))
    key = hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
    return f"{bundle.notice}\n===== BEGIN EVIDENCE {key} =====\n{body}\n===== END EVIDENCE {key} ====="


def _lines(bundle: "EvidenceBundle") -> list[str]:
    if not bundle.claims:
        return _empty(bundle)
    lines: list[str] = []
    for number, claim in enumerate(bundle.claims, start=1):
        lines += [*_claim(number, claim), ""]
    lines += ["Sources:", *(f"[{source.number}] {_where(source)}" for source in bundle.sources)]
    if dropped := bundle.size.dropped_claims:
        lines.append(f"({dropped} more {'claim was' if dropped == 1 else 'claims were'} left out for want of room.)")
    return lines


def _claim(number: int, claim: "EvidenceClaim") -> list[str]:
    cites = "".join(f" [{source}]" for source in claim.sources)
    lines = [f"Claim {number}: {one_line(claim.text)}{cites} ({_SAID[claim.check]})"]
    for quote in claim.quotes:
        first, *more = safe(quote.text.strip()).splitlines() or [""]
        lines += [f"> [{quote.source}] {first}", *(f">    {line}" for line in more)]
    return lines


def _where(source: "CitedSource") -> str:
    return " · ".join(one_line(part) for part in (source.source, source.title, source.date, source.url) if part)


def _empty(bundle: "EvidenceBundle") -> list[str]:
    """Says that there is nothing, and what was tried. The last searches are left out where there are too many."""
    lines = [_NOTHING[bundle.outcome], *(["Searched:"] if bundle.tried else [])]
    size = bundle.size
    # A character takes one token at most.
    room = size.max_chars if size.max_tokens is None else min(size.max_chars, size.max_tokens)
    room -= _FRAME
    for attempt in bundle.tried:
        line = _tried(attempt)
        room -= len(line) + 1
        if room < 0:
            return [*lines, "(and more)"]
        lines.append(line)
    return lines


_FRAME: Final = 450
"""Characters around the searches of an empty bundle: label, marks, and what is said before."""
_NOTHING: Final = {
    "found": "There is evidence, but not one claim of it fits into the room that was allowed: ask for more room.",
    "empty": "Nothing was found.",
    "failed": "The search failed; nothing is known from it.",
}


def _tried(attempt: "Attempt") -> str:
    ended = f"{'failed: ' if attempt.failure else ''}{one_line(attempt.result)}"
    return f"> {one_line(attempt.query)[:200]} ({one_line(attempt.source)}; {ended[:200]})"


def safe(text: str) -> str:
    """A stranger's words without marks of any model's and without invisible characters; lines stay lines."""
    return sanitize(text, TAGS)


def one_line(text: str) -> str:
    """The same on one line."""
    return " ".join(safe(text).split())
