"""The obvious parts of a question: names, quotations, and whether it can be answered in a few words. Rules alone."""

import re
from typing import Final

_QUOTED: Final = re.compile(r"[\"“”]([^\"“”]{2,80})[\"“”]|(?<!\w)['‘]([^'’]{2,80})['’](?!\w)")
_WORD: Final = re.compile(r"[^\s,;:?!()\"“”]+|[,;:?!()\"“”]")
_JOINS: Final = frozenset(
    "of the and & de la le du des von van der den del di da al el bin ibn in on at for to a an".split()
)
_SIDES: Final = re.compile(r" (?:and|or|&) ")
_ASKS: Final = frozenset(
    "who whom whose what which when where why how is are was were do does did has have had can could will would should"
    " in on of at for from by to the a an and or if both between among name list tell give find".split()
)
_FIRST_VERBS: Final = frozenset(
    "is are was were do does did has have had can could will would should am isn't aren't wasn't weren't".split()
)
_OPEN: Final = re.compile(
    r"\b(why|explain|describe|compare|summari[sz]e|overview|how (do|does|did|can|to|is|are|should)|pros and cons|"
    r"write|list|discuss|difference|what happens|tell me about)\b",
    re.IGNORECASE,
)
YES_OR_NO: Final = ("yes", "no")
_BEHIND: Final = re.compile(
    r"\s(?:born|released|founded|built|die|died|come out|older|younger)(?: (?:first|later|earlier))?$"
)
"""What may stand behind a choice that a question ends with."""
_LONGEST_SIDE: Final = 12
"""Words of one side of a choice."""
_LONGEST_SHORT: Final = 45
"""Words of a question that can still want a short answer."""


def parts_of(question: str, *, most: int = 3) -> tuple[str, ...]:
    """The names and quotations in a question, in its order: what each of its parts could be looked up by."""
    found = [a or b for a, b in _QUOTED.findall(question)]
    for name in _names(question):
        found += _SIDES.split(name) if _compares(question) else [name]
    kept: list[str] = []
    for part in found:
        if not any(part.casefold() in other.casefold() for other in kept):
            kept = [other for other in kept if other.casefold() not in part.casefold()] + [part]
    return tuple(part for part in kept if len(part) > 2)[:most]


def _names(question: str) -> list[str]:
    """Runs of words with capitals or digits, with the small words that join them."""
    names: list[str] = []
    run: list[str] = []
    for at, word in enumerate([*_WORD.findall(question), "?"]):
        bare = word.strip("'’.")
        begins = bare[:1].isupper() or (bool(run) and bare[:1].isdigit())
        if begins and not (not run and at == 0 and bare.casefold() in _ASKS):
            run.append(word.rstrip(".").removesuffix("'s").removesuffix("’s"))
            if word.endswith(("'s", "’s")):
                names, run = _ended(names, run)
        elif run and bare.casefold() in _JOINS:
            run.append(word)
        else:
            names, run = _ended(names, run)
    return names


def _ended(names: list[str], run: list[str]) -> tuple[list[str], list[str]]:
    while run and run[-1].casefold() in _JOINS:
        run = run[:-1]
    while run and run[0].casefold() in _ASKS and len(run) > 1 and run[0].casefold() not in ("the", "a", "an"):
        run = run[1:]
    return ([*names, " ".join(run)] if run and " ".join(run).casefold() not in _ASKS else names), []


def _compares(question: str) -> bool:
    words = question.casefold().split()
    return wants_yes_or_no(question) or not {"both", "between", "or"}.isdisjoint(words)


def wants_yes_or_no(question: str) -> bool:
    """Whether the question begins as one that yes or no answers, and offers no choice."""
    words = question.casefold().split()
    return bool(words) and words[0] in _FIRST_VERBS and " or " not in question.casefold()


def choices_of(question: str) -> tuple[str, ...]:
    """The answers that a question offers: yes and no, or the two sides of its "or"; none where it offers none."""
    if wants_yes_or_no(question):
        return YES_OR_NO
    before, either, after = _BEHIND.sub("", question.rstrip("?. ")).rpartition(" or ")
    if not either or not 0 < len(after.split()) <= _LONGEST_SIDE:
        return ()
    last = re.split(r"[,:;]\s+", before)[-1].strip()
    if len(last) == len(before.strip()):  # no comma before the choice: the name that it ends with
        names = [name for name in _names(before) if before.rstrip().endswith(name)]
        last = names[-1] if names else ""
    return (last, after.strip()) if 0 < len(last.split()) <= _LONGEST_SIDE else ()


def wants_short(question: str) -> bool:
    """Whether a name, a date, a number, yes or no would answer it."""
    return not _OPEN.search(question) and len(question.split()) <= _LONGEST_SHORT
