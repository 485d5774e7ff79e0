"""From the text of an evidence block to claims with the numbers of the passages that they cite."""

import re
from typing import Final

from agent.trace import Claim

_CITES: Final = re.compile(r"\s*[\[［【]\s*(\d+(?:\s*[,，;–-]\s*\d+)*)\s*[\]］】]")
_MARK: Final = re.compile(r"(?:[-*•‣]|\d{1,2}[.)](?=\s))\s*")


def read_claims(text: str) -> tuple[Claim, ...]:
    """One claim a line, as in "- Lina Orr was born in Trieste. [1][3]"; cites may stand anywhere in the line."""
    lines = (line.strip() for line in text.splitlines())
    claims = (_claim(line[mark.end() :] if (mark := _MARK.match(line)) else line) for line in lines)
    return tuple(claim for claim in claims if claim.text)


def _claim(line: str) -> Claim:
    numbers = (number for group in _CITES.findall(line) for number in _numbers(group))
    return Claim(text=_CITES.sub("", line).strip(), cites=tuple(dict.fromkeys(numbers)))


def _numbers(group: str) -> list[int]:
    """The numbers of "1, 3" and of "1-3"."""
    numbers: list[int] = []
    for part in re.split(r"[,，;]", group):
        first, *last = (int(number) for number in re.findall(r"\d+", part))
        numbers += range(first, last[0] + 1) if last and first < last[0] < first + 20 else [first, *last]
    return numbers
