"""A question that changes the one before it: "only the last two years", "and for Norway?", "check claim 2 again".

What is read here is a question that needs no turn before it, so that every policy can research it. Whatever is not
surely one of these stays as it was written, and the policy reads it with the earlier turns. Pure.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Final

from agent.plan import Filter
from agent.sources.filters import DAYS

_NUMBERS: Final = {
    word: number
    for number, words in enumerate(
        ("", "a an one", "two couple", "three few", "four", "five", "six", "seven", "eight", "nine", "ten")
    )
    for word in words.split()
}
_ORDINALS: Final = {
    word: number
    for number, word in enumerate("first second third fourth fifth sixth seventh eighth ninth tenth".split(), start=1)
}
_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        "january february march april may june july august september october november december".split(), start=1
    )
}
_MONTHS_OF_A_YEAR: Final = 12
_COUNT: Final = rf"(\d{{1,3}}|{'|'.join(_NUMBERS)})"
_DAY: Final = (
    rf"((?:(?:{'|'.join(_MONTHS)})\s+)?(?:19|20)\d\d(?!\d)"
    r"(?:-(?:0[1-9]|1[0-2])(?!\d)(?:-(?:0[1-9]|[12]\d|3[01])(?!\d))?)?(?!-\d\d?(?!\d)))"
)
_SEASON: Final = re.compile(r"\b(?:in\s+|of\s+|during\s+)?((?:19|20)\d\d)[-–/](\d\d)\b(?![-–/]?\d)", re.I)
_AGO: Final = re.compile(
    rf"(?:the\s+)?(?:last|past|newer\s+than|younger\s+than|recent)\s+(?:{_COUNT}\s+(?:of\s+)?)?(day|week|month|year)s?\b",
    re.I,
)
_THIS: Final = re.compile(r"\bthis\s+(day|week|month|year)\b|\b(today)\b", re.I)
_BETWEEN: Final = re.compile(
    rf"\b(?:between|from)\s+{_DAY}\s+(?:and|to|until|till|through)\s+{_DAY}|\b{_DAY}\s*[-–]\s*{_DAY}", re.I
)
_SINCE: Final = re.compile(rf"\b(?:since|after|from|newer\s+than|later\s+than)\s+{_DAY}(?:\s+on(?:wards?)?)?", re.I)
_BEFORE: Final = re.compile(rf"\b(?:before|until|till|up\s+to|older\s+than|earlier\s+than)\s+{_DAY}", re.I)
_IN: Final = re.compile(rf"\b(?:in\s+|of\s+|during\s+)?{_DAY}\b", re.I)
_FILLERS: Final = frozenset(
    "only just please now but and with within in for from of the a an results result sources source articles news "
    "papers documents show use take consider look at limit restrict narrow down it that this answer to same question "
    "again what how about me ones one years year on are is written published".split()
)
_POLITE: Final = frozenset(
    "can could would will you i we is be true right once more also too then there whether".split()
)
"""Words around "check the second claim" that say nothing else."""
_WORD: Final = re.compile(r"[^\W\d_][\w'-]*")
_CHECK: Final = re.compile(
    rf"\b(?:re-?check|double-?check|check|verify|confirm)\b.{{0,40}}?\b(?:the\s+)?"
    rf"(?:(?P<word>{'|'.join(_ORDINALS)}|last)\s+|(?P<nth>\d{{1,2}})(?:st|nd|rd|th)\s+)?"
    rf"(?:claim|statement|sentence|point)s?\b(?:\s*(?:no\.?|number|\#)?\s*(?P<after>\d{{1,2}}))?",
    re.I | re.S,
)
_SWAP: Final = re.compile(
    r"\s*(?:and|also|now)?\s*(?:(?:what|how)\s+about|(?:and|same|the\s+same)(?:\s+question)?(?=\s)|and)\s+"
    r"(?:(?P<where>in|for|of|at|by|with|from|about)\s+)?(?P<name>.{1,80}?)\s*[?.!]*\s*",
    re.I | re.S,
)
_NAME: Final = re.compile(r"[A-Z\d][\w.'’&-]*(?:\s+(?:(?:of|the|de|la|von|van|and)\s+)*[A-Z][\w.'’&-]*|\s+\d{1,3}\b)*")
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_THING: Final = re.compile(r"the\s+(?!\w+est$)[a-z][\w'-]*(?:\s+[a-z][\w'-]*){0,3}")
_PAST: Final = r"(?:\w{2,}ed|built|made|held|written|wrote|led|won|sold|found|drawn|drew|lit|kept|paid|owns|runs|leads)"
_OF_A_THING: Final = re.compile(
    rf"(?:who|what|which|where|when|how(?:\s+\w+)?)\s+(?:is|are|was|were|{_PAST})\s+"
    rf"(?P<thing>the\s+[a-z][\w'-]*(?:\s+[a-z][\w'-]*){{0,3}}?)"
    rf"(?P<rest>(?:\s+(?:of|in|at|on|for|from|to|by|with|about|{_PAST})\b.*)?\s*\?*)",
    re.I | re.S,
)
"""A question about one thing: "Who designed the dam of Lake Ormen?", "When was the dam opened?"."""
_FIRST_WORDS: Final = frozenset(
    "Who What When Where Which Why How Whose Whom Is Are Was Were Did Does Do Has Have Had Can Could In On At The A An "
    "Of For To By Name List Give Tell Find I".split()
)
_MOST_CHARS: Final = 200
"""A longer text is a question of its own."""


@dataclass(frozen=True)
class FollowUp:
    """What a text makes of the question before it."""

    question: str
    """To be researched, by itself."""
    filters: tuple[Filter, ...] = ()
    claim: int | None = None
    """The number of a claim of the answer before, from 1, that is to be checked again."""


def resolved(text: str, history: Sequence[tuple[str, str]], *, today: date) -> FollowUp | None:
    """What a text means after the turns before it, each of which may have changed the one before; None: what it says.

    Args:
        text: of the user.
        history: earlier turns as (question, answer), oldest first.
        today: what "the last two years" counts from.
    """
    if not history:
        return None
    last = FollowUp(history[0][0])
    for question, _ in history[1:]:
        last = _next(question, last, today=today) or FollowUp(question)
    return _next(text, last, today=today)


def _next(text: str, before: FollowUp, *, today: date) -> FollowUp | None:
    read = read_follow_up(text, before=before.question, today=today)
    if read is None or read.claim is not None:
        return read
    names = {condition.name for condition in read.filters}
    kept = (condition for condition in before.filters if condition.name not in names)
    return replace(read, filters=(*kept, *read.filters))


def read_follow_up(text: str, *, before: str, today: date) -> FollowUp | None:
    """What a text makes of the question before it; None where it is not surely a change of it."""
    if len(text) > _MOST_CHARS:
        return None
    if (claim := _claim(text)) is not None:
        return FollowUp(before, claim=claim)
    if year := _swapped(text, before, years=True):
        return FollowUp(year)
    filters, rest = _period(text, today)
    if filters and not _content(rest):
        return FollowUp(before, filters=filters)
    question = _swapped(text, before) or _swapped_thing(text, before)
    return FollowUp(question) if question else None


def _claim(text: str) -> int | None:
    """The number of the claim that is to be checked; the last one is 0, and so is one without a number."""
    found = _CHECK.search(text)
    if not found or not (found["word"] or found["nth"] or found["after"]):
        return None
    if [word for word in _content(f"{text[: found.start()]} {text[found.end() :]}") if word not in _POLITE]:
        return None
    if found["word"]:
        return _ORDINALS.get(found["word"].lower(), 0)
    return int(found["nth"] or found["after"])


def _period(text: str, today: date) -> tuple[tuple[Filter, ...], str]:
    """The conditions on dates in a text, and the text without them."""
    for pattern, read in (
        (_AGO, _ago),
        (_THIS, _this),
        (_SEASON, _season),
        (_BETWEEN, _between),
        (_SINCE, _since),
        (_BEFORE, _until),
        (_IN, _within),
    ):
        if found := pattern.search(text):
            said = read(found, today)
            if not said:
                continue
            if not all(_is_date(value) for _, value in said):
                return (), text
            filters = tuple(Filter(name=name, value=value) for name, value in said)
            return filters, f"{text[: found.start()]} {text[found.end() :]}"
    return (), text


def _ago(found: re.Match[str], today: date) -> list[tuple[str, str]]:
    said = (found[1] or "1").lower()
    count = int(said) if said.isdigit() else _NUMBERS.get(said)
    if count is None:  # letters of other alphabets match without regard to case: fıve
        return []
    return [("after", (today - timedelta(days=count * DAYS[found[2].lower()])).isoformat())]


def _this(found: re.Match[str], today: date) -> list[tuple[str, str]]:
    first = {"year": today.replace(month=1, day=1), "month": today.replace(day=1)}
    unit = (found[1] or "day").lower()
    return [("after", first.get(unit, today - timedelta(days=DAYS[unit] - 1)).isoformat())]


def _season(found: re.Match[str], _: date) -> list[tuple[str, str]]:
    """2023-24; 2011-12 is a month."""
    first, last = int(found[1]), int(found[2])
    if last != (first + 1) % 100 or 1 <= last <= _MONTHS_OF_A_YEAR:
        return []
    return [("after", f"{first}"), ("before", f"{first + 1}")]


def _is_date(said: str) -> bool:
    try:
        date.fromisoformat(f"{said}-01-01"[:10])
    except ValueError:
        return False
    return True


def _between(found: re.Match[str], _: date) -> list[tuple[str, str]]:
    first, last = found[1] or found[3], found[2] or found[4]
    return [("after", _iso(first)), ("before", _iso(last))]


def _since(found: re.Match[str], _: date) -> list[tuple[str, str]]:
    return [("after", _iso(found[1]))]


def _until(found: re.Match[str], _: date) -> list[tuple[str, str]]:
    return [("before", _iso(found[1]))]


def _within(found: re.Match[str], _: date) -> list[tuple[str, str]]:
    return [("after", _iso(found[1])), ("before", _iso(found[1]))]


def _iso(said: str) -> str:
    """2020, 2020-03 or 2020-03-02; March 2020 is 2020-03; what is no month is no date, either."""
    month, _, year = said.strip().rpartition(" ")
    return f"{year}-{_MONTHS.get(month.strip().lower(), 0):02}" if month else said.strip()


def _content(rest: str) -> list[str]:
    """The words of a text that say more than that something is to be narrowed."""
    return [word for word in _WORD.findall(rest.lower()) if word not in _FILLERS]


def _swapped(text: str, before: str, *, years: bool = False) -> str:
    """The question before with another name, or year, in the place of its only one; empty where it is unsure."""
    found = _SWAP.fullmatch(text)
    if not found or not _NAME.fullmatch(found["name"]) or bool(_YEAR.fullmatch(found["name"])) != years:
        return ""
    spans = [year.span() for year in _YEAR.finditer(before)] if years else _names(before)
    where = (found["where"] or "").lower()
    if len(spans) > 1 and where:
        spans = [(start, end) for start, end in spans if before[:start].lower().endswith(f" {where} ")]
    if len(spans) != 1:
        return ""
    ((start, end),) = spans
    return f"{before[:start]}{found['name']}{before[end:]}"


def _swapped_thing(text: str, before: str) -> str:
    """The question before about another thing, "and the road?"; empty where it is unsure."""
    found, about = _SWAP.fullmatch(text), _OF_A_THING.fullmatch(before)
    if not found or found["where"] or not about or not _THING.fullmatch(found["name"]):
        return ""
    if re.search(r"\bthe\s+[a-z]", about["rest"]):  # of two things, which one?
        return ""
    return f"{before[: about.start('thing')]}{found['name']}{about['rest']}"


def _names(text: str) -> list[tuple[int, int]]:
    """Where a text has names: words with a capital, but for the one that begins the question."""
    spans: list[tuple[int, int]] = []
    for found in _NAME.finditer(text):
        start, end = found.span()
        first, _, rest = found[0].partition(" ")
        if start == 0 and first in _FIRST_WORDS:
            if not rest or not rest[0].isupper():
                continue
            start = end - len(rest)
        spans.append((start, end))
    return [span for span in spans if not text[slice(*span)].isdigit()]
