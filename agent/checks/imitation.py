"""Which passage numbers a stranger's text imitates: by a citation such as `[2]`, or by what heads passage 2.

A reader of such a text may cite the number for what that text says, and mean a passage that says nothing of it.
"""

import re
import string
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Final

from agent.evidence import Passage
from agent.protocols.base import TextProtocol
from agent.sanitize.skeleton import skeleton_of

MOST: Final = 999
"""No rollout shows more passages than this."""
CITATION: Final = re.compile(r"\[ ?(\d{1,6}(?: ?[,;–-] ?\d{1,6}){0,20}) ?\]")
_LETTERS: Final = re.compile(r"[a-z]{2}")
_DIGIT: Final = re.compile(r"\d")


def imitated(passages: Iterable[Passage], protocol: TextProtocol) -> tuple[int, ...]:
    """The numbers that passages imitate in what they say, without each passage's own number, in their order."""
    if not protocol.numbered:
        return ()
    heading = _heading(protocol.passage)
    numbers = {
        number
        for passage in passages
        for text in (passage.title, passage.text, passage.source, passage.date, passage.url)
        if _DIGIT.search(text)
        for number in _numbers_in(text, heading)
        if number != passage.number
    }
    return tuple(sorted(numbers))


def numbers_of(group: str) -> list[int]:
    """The numbers of "1, 3" and of "1-3"; a longer or backward range is its two ends."""
    numbers: list[int] = []
    for part in re.split(r"[,，;]", group):
        first, *last = (int(number) for number in re.findall(r"\d{1,6}", part)[:2])
        numbers += range(first, last[0] + 1) if last and first < last[0] < first + 20 else [first, *last]
    return numbers


@lru_cache(maxsize=2048)
def _numbers_in(text: str, heading: tuple[re.Pattern[str], re.Pattern[str]]) -> tuple[int, ...]:
    anywhere, at_the_start = heading
    skeleton = skeleton_of(text).text
    found = [number for group in CITATION.findall(skeleton) for number in numbers_of(group)]
    found += [int(number) for number in anywhere.findall(skeleton)]
    for line in text.splitlines():
        if match := at_the_start.match(skeleton_of(line[:200]).text):
            found.append(int(match[1]))
    return tuple(number for number in found if 0 < number <= MOST)


@cache
def _heading(template: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """How a template heads a passage by its number: anywhere in a text, and at the start of a line.

    Marks without a word, such as `(2)`, are a heading in the middle of a line only where no blank follows.
    """
    parts: Sequence[tuple[str, str | None]] = [(text, name) for text, name, _, _ in string.Formatter().parse(template)]
    at = next(at for at, (_, name) in enumerate(parts) if name == "number")
    before, after = parts[at][0], parts[at + 1][0] if at + 1 < len(parts) else ""
    before, after = (skeleton_of(text).text.strip().rstrip("\"'") for text in (before, after))
    spelled = rf"{_spaced(before)} ?(\d{{1,6}}) ?{_spaced(after)}"
    behind = "" if _LETTERS.search(before + after) else r"(?=\w)"
    return re.compile(rf"(?<!\w){spelled}{behind}"), re.compile(rf"[^\w(\[]{{0,8}}{spelled}")


def _spaced(text: str) -> str:
    """A literal in which blanks may be left out."""
    return " ?".join(map(re.escape, text.split(" "))) if text else ""
