"""Where the answer is in an answer block: the block's whole text, or what a box in it holds."""

import re
from typing import Final

from agent.protocols.base import TextProtocol

_BOX: Final = "\\boxed{"
_MARKS: Final = re.compile(r"\\boxed\{|\\(?!\\boxed\{).|[{}]", re.DOTALL)


def answer_in(text: str, protocol: TextProtocol) -> str | None:
    """The answer in the text of an answer block; empty where the policy gave an empty one.

    Where a protocol wants a box, its last box counts. Text on one line without any box is taken as it is: it is the
    answer, not put into its box. Longer text without a box, or with one that is not closed, holds no answer: None.
    """
    text = text.strip()
    if protocol.answer_in == "text":
        return text
    held = _last_box(text)
    if held is not None:
        return held.strip()
    return text if _BOX not in text and "\n" not in text else None


def _last_box(text: str) -> str | None:
    """What the last closed box holds; braces inside of it must match, those behind a backslash are only characters.

    One pass from the left, however many boxes and braces are open.
    """
    open_braces: list[int | None] = []
    """Where the text of a box begins; None for another brace."""
    last: tuple[int, int] | None = None
    for mark in _MARKS.finditer(text):
        match mark[0]:
            case "}":
                begin = open_braces.pop() if open_braces else None
                if begin is not None and (last is None or begin > last[0]):
                    last = begin, mark.start()
            case "{":
                open_braces.append(None)
            case said if said == _BOX:
                open_braces.append(mark.end())
            case _:
                pass  # a backslash and what it escapes
    return text[slice(*last)] if last else None
