"""From the text of a block to claims, and from the numbers that they cite to the passages that were shown."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from agent.checks import check_claims
from agent.checks.imitation import numbers_of
from agent.checks.tokens import sentence_spans
from agent.evidence import Passage
from agent.trace import Claim, Evidenced, Gathered, Merged, Reflected, Step, Trace

_CITES: Final = re.compile(
    r"(?:(?<!\s)\s+)?[\[［【]\s{0,9}(\d{1,6}(?:\s{0,9}[,，;–-]\s{0,9}\d{1,6}){0,99})\s{0,9}[\]］】]"
)
_MARK: Final = re.compile(r"(?:[-*•‣]|\d{1,2}[.)](?=\s))\s*")
_BULLET: Final = re.compile(r"\s*[-*•‣]\s")
_SEMICOLON: Final = re.compile(r"(?<=;)\s+(?!\[)")
_MISSING: Final = re.compile(
    r"(?:still |nothing (?:is |else is )?|what is )?(?:missing|needed|unknown)\b"
    r"|(?:i|we|let|now|next|so|therefore|thus)\b|.*\?$",
    re.IGNORECASE | re.DOTALL,
)
"""How a merge begins what it says of the search, not of the world."""


def read_claims(text: str) -> tuple[Claim, ...]:
    """One claim a line, as in "- Lina Orr was born in Trieste. [1][3]"; cites may stand anywhere in the line."""
    lines = (line.strip() for line in text.splitlines())
    claims = (_claim(line[mark.end() :] if (mark := _MARK.match(line)) else line) for line in lines)
    return tuple(claim for claim in claims if claim.text)


def derived_claims(text: str) -> tuple[Claim, ...]:
    """The sentences of a merge or a reflection that cite something: they claim where no evidence block does.

    A line of a list is one claim, whatever stops it has in it ("- Dr. No, director: Terence Young [1]"). Where none
    cites, as in protocols that never do, each sentence about the world is a claim.
    """
    parts = (part for line in text.splitlines() for part in _parts(line))
    claims = read_claims("\n".join(parts))
    citing = tuple(claim for claim in claims if claim.cites)
    kept = citing or tuple(claim for claim in claims if not _MISSING.match(claim.text))
    return tuple(claim.model_copy(update={"derived": True}) for claim in kept)


def _parts(line: str) -> list[str]:
    """The sentences of a line, and what a semicolon divides; numbers behind a full stop belong to what is before it."""
    if _BULLET.match(line):
        return [line]
    parts: list[str] = []
    for clause in _SEMICOLON.split(line):
        starts = [start for start, _ in sentence_spans(clause) if not start or not _CITES.match(clause, start)]
        parts += (clause[start:end].strip() for start, end in pairwise([*starts, len(clause)]))
    return parts


def checked(claims: Iterable[Claim], steps: Sequence[Step], *, numbered: bool = True) -> tuple[Claim, ...]:
    """The claims, checked against what was shown until now.

    A claim that cites nothing is looked for in all of it, and cites where it was found, if it is derived or if the
    protocol shows its passages without numbers: a number that it was never shown means nothing. A number that a
    passage imitates is cited only where its own passage says so.
    """
    shown = shown_under(steps)
    everything = tuple(shown)
    doubtful = imitated_in(steps)
    found: list[Claim] = []
    for claim in claims:
        anywhere = not numbered or (claim.derived and not claim.cites)
        (judged,) = check_claims([claim.model_copy(update={"cites": everything}) if anywhere else claim], shown)
        quoted = tuple(dict.fromkeys(quote.number for quote in judged.quotes))
        ambiguous = () if anywhere else tuple(n for n in claim.cites if n in doubtful and n not in quoted)
        cites = quoted if anywhere else tuple(n for n in claim.cites if n not in ambiguous)
        # What a claim does not cite cannot contradict it: it may be about another one.
        check = "not_found" if judged.check == "contradicted" and not cites else judged.check
        found.append(judged.model_copy(update={"check": check, "cites": cites, "ambiguous": ambiguous}))
    return tuple(found)


def imitated_in(steps: Iterable[Step]) -> frozenset[int]:
    """The numbers that passages imitated until now: what was shown stays in the context."""
    return frozenset(number for step in steps if isinstance(step, Gathered) for number in step.imitated)


def shown_under(steps: Iterable[Step]) -> Mapping[int, tuple[Passage, ...]]:
    """Number → the passages that it means now. Where numbers begin again, they mean what was shown last."""
    shown: dict[int, tuple[Passage, ...]] = {}
    for step in steps:
        if not isinstance(step, Gathered) or not step.passages:
            continue
        latest: dict[int, tuple[Passage, ...]] = {}
        for passage in step.passages:
            latest[passage.number] = (*latest.get(passage.number, ()), passage)
        shown = latest if shown.keys() & latest.keys() else shown | latest
    return shown


def claims_of(trace: Trace) -> tuple[tuple[Claim, ...], Mapping[int, tuple[Passage, ...]]]:
    """What carries a run's answer, and the passages under their numbers as they were when it was written."""
    wanted = trace.claims
    at = len(trace.steps)
    for place, step in enumerate(trace.steps):
        if isinstance(step, Evidenced | Merged | Reflected) and step.claims == wanted:
            at = place
    return wanted, shown_under(trace.steps[:at])


def cited_by(claim: Claim, shown: Mapping[int, tuple[Passage, ...]]) -> list[Passage]:
    """What a claim cites. Where a number means several passages, its quotes say which."""
    cited: list[Passage] = []
    for number in claim.cites:
        meant = shown.get(number, ())
        cited += [passage for passage in meant if any(quote.is_of(passage) for quote in claim.quotes)] or meant
    return cited


def _claim(line: str) -> Claim:
    numbers = (number for group in _CITES.findall(line) for number in numbers_of(group))
    return Claim(text=_CITES.sub("", line).strip(), cites=tuple(dict.fromkeys(numbers)))
