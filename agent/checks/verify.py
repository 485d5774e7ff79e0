"""Whether the passages that a claim cites say it: verbatim, closely, not, or the contrary.

By rules alone: pure, fast, no model. It reads names, dates, numbers, negation, relations and who stands at which end of
them (docs/evidence.md says what it cannot see). In doubt it says not found.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from agent.checks.close import Support
from agent.checks.judge import State, judged
from agent.checks.page import ReadPage, page
from agent.checks.signs import signs_differ, stand_alike
from agent.checks.tokens import Token, tokens, words_of
from agent.checks.words import DENIALS, ORDINALS, UNTRUE
from agent.evidence import Passage
from agent.trace import DOUBTED, Check, Claim, Quote

_BEFORE: Final = re.compile(
    r"(?:\b(?:(?P<more>over|above|exceeding|(?:more|greater|older|larger|longer|higher) than|at least|after)"
    r"|(?P<less>under|below|(?:less|fewer|smaller|younger|shorter|lower) than|at most|up to|before))"
    r"\s+(?:an?\s+|the\s+)?)?"
    r"(?P<sign>(?:(?<=[\s(])|^)[-−])?(?P<money>[$€£])?\s?$",
    re.I,
)
_AFTER: Final = re.compile(
    r"(?:[\s-]?(?P<times>thousand|million|billion|trillion)\b)?(?:\s?(?P<half>[ap])\.?m\b)?(?:\s?(?P<era>b\.?c)(?:\.?e)?\b)?",
    re.I,
)
_REACH: Final = 24
"""Characters before a number in which such words may stand."""

Shown = Mapping[int, Sequence[Passage]]
"""Number → the passages that were shown under it; more than one where each query starts the numbers again."""


def check_claims(claims: Iterable[Claim], shown: Shown) -> tuple[Claim, ...]:
    return tuple(check_claim(claim, shown) for claim in claims)


def check_claim(claim: Claim, shown: Shown) -> Claim:
    """The claim with what its cited passages say of it, and where.

    A claim that cites nothing, or only numbers that were never shown, is not found.
    """
    cited = [(number, passage) for number in claim.cites for passage in shown.get(number, ())]
    pages = [(number, page(passage.title, passage.text)) for number, passage in cited]
    for number, read in pages:
        if (place := _verbatim(claim.text, read)) is not None:
            return claim.model_copy(update={"check": "verbatim", "quotes": (_quote(number, read, *place),)})
    found = judged(claim.text, [read for _, read in pages])
    lines = tuple(_lines(pages, found.lines))
    if found.state != "supported" or disagree(claim.text, lines) or signs_differ(claim.text, lines):
        check: Check = "contradicted" if found.state == "contradicted" else "not_found"
        return claim.model_copy(update={"check": check, "quotes": ()})
    return claim.model_copy(update={"check": "close", "quotes": tuple(_quotes(pages, found.lines))})


def state_of(claim: Claim, shown: Shown) -> State:
    """What the cited passages say of a claim, in three states."""
    check = check_claim(claim, shown).check
    return "contradicted" if check == "contradicted" else "not_verified" if check in DOUBTED else "supported"


def _lines(pages: Sequence[tuple[int, ReadPage]], support: Iterable[Support]) -> Iterator[str]:
    """The words of the supporting sentences."""
    for place, at in support:
        read = pages[place][1]
        line = read.lines[at]
        yield read.text[line.start : line.end] if line.start >= 0 else ""


def _quotes(pages: Sequence[tuple[int, ReadPage]], support: Iterable[Support]) -> Iterator[Quote]:
    """The supporting sentences, each once, in the order of the passages."""
    lines = sorted({(place, line) for place, line in support})
    for place, at in lines:
        number, read = pages[place]
        line = read.lines[at]
        if line.start >= 0:
            yield _quote(number, read, line.start, line.end)


def _quote(number: int, read: ReadPage, start: int, end: int) -> Quote:
    return Quote(number=number, start=start, end=end, text=read.text[start:end])


def _verbatim(text: str, read: ReadPage) -> tuple[int, int] | None:
    """Where the claim's words stand one after the other; a sentence that takes them back does not count."""
    words = words_of(tokens(text))
    said = [token.text for token in words]
    if not said:
        return None
    there = [token.text for token in read.words]
    for at in range(len(there) - len(said) + 1):
        if there[at] == said[0] and there[at : at + len(said)] == said:
            if not stand_alike(text, words, read.text, read.words, at):
                continue
            start, end = read.words[at].start, read.words[at + len(said) - 1].end
            if not (_taken_back(read, start, end) or _goes_on(read, at + len(said)) or _as_another(text, read, end)):
                return start, end
    return None


def _goes_on(read: ReadPage, after: int) -> bool:
    """Whether a name goes on behind the words: "Columbia" is not Columbia Pictures."""
    if after >= len(read.words):
        return False
    last, following = read.words[after - 1], read.words[after]
    return last.capital and following.capital and read.text[last.end : following.start] == " "


def _as_another(text: str, read: ReadPage, end: int) -> bool:
    """Whether a number of the words is another one in the sentence where they end: a sign, a currency, "million"."""
    return any(
        line.start < end <= line.end and disagree(text, [read.text[line.start : line.end]]) for line in read.lines
    )


def _taken_back(read: ReadPage, start: int, end: int) -> bool:
    """Whether the sentence around the words negates them or doubts them."""
    for line in read.lines:
        if line.start <= start < line.end:
            return any(
                line.reading.clauses.is_negation(place) or token.text in DENIALS or token.text in UNTRUE
                for place, token in enumerate(line.reading.tokens)
                if not start <= token.start < end
            )
    return False


@dataclass(frozen=True, slots=True)
class _Amount:
    sign: bool
    money: str
    bound: str
    times: str
    half: str
    era: str

    def differs(self, other: "_Amount") -> bool:
        """Whether both cannot be meant. A currency, a bound and a half of the day may be left out."""
        if (self.sign, self.times, self.era) != (other.sign, other.times, other.era):
            return True
        optional = ((self.money, other.money), (self.bound, other.bound), (self.half, other.half))
        return any(one and another and one != another for one, another in optional)


def disagree(claim: str, shown: Iterable[str]) -> bool:
    """Whether a number of a claim is in what is shown, but everywhere as another amount: or "first" as "second"."""
    shown = tuple(shown)
    there = [(token.text, amount) for text in shown for token, amount in _amounts(text)]
    for token, amount in _amounts(claim):
        same = [other for text, other in there if text == token.text]
        if same and all(amount.differs(other) for other in same):
            return True
    counted = {pair for text in shown for pair in _ordinals(text)}
    nouns = {noun for noun, _ in counted}
    return any(pair not in counted and pair[0] in nouns for pair in _ordinals(claim))


def _ordinals(text: str) -> Iterator[tuple[str, int]]:
    """What is counted, and its place: "the third edition"."""
    for token, following in pairwise(tokens(text)):
        place = 1 if token.text == "first" else ORDINALS.get(token.text)
        if place and not following.mark:
            yield following.stem, place


def _amounts(text: str) -> Iterator[tuple[Token, _Amount]]:
    for token in tokens(text):
        if token.number:
            yield token, _amount(text, token)


def _amount(text: str, token: Token) -> _Amount:
    before = _BEFORE.search(text, max(0, token.start - _REACH), token.start)
    after = _AFTER.match(text, token.end)
    assert before
    assert after
    bound = "more" if before["more"] else "less" if before["less"] else ""
    times, half, era = ((after[name] or "").lower() for name in ("times", "half", "era"))
    return _Amount(bool(before["sign"]), before["money"] or "", bound, times, half, era.replace(".", ""))
