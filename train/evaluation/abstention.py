"""Whether an answer says that it has none. An empty answer says nothing: it is no abstention, it is only wrong.

An answer abstains where all of it is one of `LABELS` ("unknown", "n/a"), or where it opens with one of `OPENINGS`
("I do not know", "there is not enough information"), is short, and does not go on to answer after all (`TURNS`: "but").
"""

import re
from typing import Final

from train.evaluation.normalisations import triviaqa

LABELS: Final = (
    "unknown",
    "not known",
    "unanswerable",
    "not answerable",
    "no answer",
    "noanswer",
    "no answer found",
    "no answer can be given",
    "cannot answer",
    "not stated",
    "not specified",
    "not mentioned",
    "not available",
    "not enough information",
    "not sure",
    "insufficient information",
    "information not found",
    "not found",
    "undetermined",
    "indeterminate",
    "n/a",
    "n.a",
    "idk",
)
"""Whole answers, without punctuation and articles."""

_CANNOT: Final = r"(cannot|can not|can t|could not|couldn t)"
_NOT: Final = r"((do|did|does|is|are|was|were) not|(don|didn|doesn|isn|aren|wasn|weren) t)"
_STATE: Final = r"(answer|say|tell|find|determine|be sure|confirm|identify)"
_STATED: Final = (
    r"(answered|determined|found|said|told|known|stated|specified|mentioned|given|available|provided|identified)"
)
_UNKNOWN: Final = r"(unknown|not known|unclear|unanswerable|impossible to (know|say|tell|determine))"
_SHOWN: Final = (
    r"((these|those|given|provided|retrieved|available) )*"
    r"(passages?|documents?|sources?|search results|texts?|context|information)( provided| given| found| retrieved)?"
)

OPENINGS: Final = (
    rf"(sorry )?(i|we) {_NOT} (have )?(know|sure|certain|enough|sufficient|find|information)\b",
    rf"(sorry )?(i|we) ({_CANNOT}|(am|m|was|are|re|were) (not able|unable) to) {_STATE}\b",
    r"(sorry )?(i m|i am|we are) not (sure|certain)\b",
    r"(sorry )?i have no idea\b",
    r"there (is|was) (no|not enough|insufficient) (information|evidence|answer|data|way to (know|tell))\b",
    r"(nothing|no (information|evidence|passages?|answer|results?)) (was |were |is )?(found|available|given)\b",
    rf"(it|this|that|this question|question|answer) ({_CANNOT} be|{_NOT}) {_STATED}\b",
    rf"(it|this|answer) is {_UNKNOWN}\b",
    r"(it is )?impossible to (know|say|tell|determine|answer)\b",
    r"(this |question )?(cannot|can not|can t) be (answered|determined|known|told|found)\b",
    rf"{_SHOWN} {_NOT} (say|state|tell|mention|contain|specify|provide|give|include|answer)\b",
    rf"(\w+ ){{1,6}}{_NOT} (contain|provide|give|include|have) (this|that|any|enough|such) information\b",
    r"(not enough|insufficient) (information|evidence|data)\b",
    r"information (is|was) (not|un)",
)
"""Regular expressions over the answer without punctuation and articles, in lower case."""

TURNS: Final = (
    r"\b(but|however|although|though|best guess|i would guess|probably|likely)\b",
    rf"(?<!what )\banswer (is|would be)\b(?! ({_UNKNOWN}|not {_STATED})\b)",
)
"""After one of these, behind the opening, an answer follows."""

LONGEST: Final = 50
"""Words. A longer answer says something else as well."""

_OPENS: Final = re.compile("|".join(f"(?:{opening})" for opening in OPENINGS))
_TURNS: Final = re.compile("|".join(TURNS))


def abstains(answer: str) -> bool:
    """Whether the answer says explicitly that there is none."""
    plain = triviaqa(answer)
    if plain in LABELS or answer.strip(" .\n").lower() in LABELS:
        return True
    opening = _OPENS.match(plain) if len(plain.split()) <= LONGEST else None
    return opening is not None and not _TURNS.search(plain, opening.end())
