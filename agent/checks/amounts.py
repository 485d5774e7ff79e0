"""What stands beside a number and makes it another one: a sign, a currency, "million", "BC", "pm", "fewer than"."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from agent.checks.tokens import Token, tokens

_BEFORE: Final = re.compile(
    r"(?:\b(?:(?P<more>over|above|exceeding|(?:more|greater|older|larger|longer|higher) than|at least)"
    r"|(?P<less>under|below|(?:less|fewer|smaller|younger|shorter|lower) than|at most|up to))\s+(?:an?\s+|the\s+)?)?"
    r"(?P<sign>(?:(?<=[\s(])|^)[-−])?(?P<money>[$€£])?\s?$",
    re.I,
)
_AFTER: Final = re.compile(
    r"(?:[\s-]?(?P<times>thousand|million|billion|trillion)\b)?(?:\s?(?P<half>[ap])\.?m\b)?(?:\s?(?P<era>b\.?c)(?:\.?e)?\b)?",
    re.I,
)
_REACH: Final = 24
"""Characters before a number in which such words may stand."""


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
    """Whether a number of a claim is in what is shown, but everywhere as another amount."""
    there = [(token.text, amount) for text in shown for token, amount in _amounts(text)]
    for token, amount in _amounts(claim):
        same = [other for text, other in there if text == token.text]
        if same and all(amount.differs(other) for other in same):
            return True
    return False


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
