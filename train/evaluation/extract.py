r"""The short answer in what a general agent writes: without its reasoning, and without the marks of its citations.

What is tried, in this order: the last `<answer>` block, the last `\boxed{}`, a last line that begins with "Answer:",
and otherwise the whole text.
"""

import re
from typing import Final

INSTRUCTION: Final = (
    "You are asked a question that you may have to search for. When you are done, write your answer as the last "
    "line, between <answer> and </answer>: only the name, date, number, word or letter that was asked for, as short "
    "as it can be and not as a sentence. Say above that line what the answer rests on, and cite the documents that "
    "you used: by their addresses in Markdown links, or by the ids that your search gave, in square brackets. If "
    "what you can find does not tell the answer, write <answer>unknown</answer>."
)
"""The system message of a measured agent; `plain` leaves it out."""

_REASONING: Final = re.compile(
    r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)|\A(?:(?!<think>).)*?</think>", re.DOTALL | re.IGNORECASE
)
_TAGGED: Final = re.compile(r"<answer>((?:(?!<answer>).)*?)(?:</answer>|\Z)", re.DOTALL | re.IGNORECASE)
_BOXED: Final = re.compile(r"\\boxed\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_TEXT: Final = re.compile(r"\\(?:text|mathrm|textbf)\s*\{([^{}]*)\}")
_LINE: Final = re.compile(
    r"^[\s*_#>]*(?:the\s+)?(?:final\s+|short\s+)?answer(?:\s+is)?[\s*_]*:[\s*_]*(\S.*)$", re.IGNORECASE
)
_LINK: Final = re.compile(r"\[([^\[\]]+)\]\((?:<[^<>]*>|[^()\s]*(?:\([^()]*\)[^()\s]*)*)(?:\s+\"[^\"]*\")?\)")
_MARK: Final = re.compile(r"\s*(?:\[\^?\d{1,3}(?:\s*[,–-]\s*\d{1,3})*\]|【[^【】]*】)")
_EMPHASIS: Final = re.compile(r"(\*\*|__|`)(.+?)\1")


def without_reasoning(text: str) -> str:
    """What is meant for the reader; a block of reasoning that never ends is no answer."""
    return _REASONING.sub("", text).strip()


def short_answer(said: str) -> str:
    """The answer alone. What says nothing beside its marks is empty."""
    return _plain(_marked(said))


def _marked(said: str) -> str:
    if tagged := _TAGGED.findall(said):
        return tagged[-1]
    if boxed := _BOXED.findall(said):
        return _TEXT.sub(r"\1", boxed[-1])
    lines = [line for line in said.splitlines() if line.strip()]
    if lines and (named := _LINE.match(lines[-1])):
        return named[1]
    return said


def _plain(text: str) -> str:
    """Without links, marks of citations and emphasis."""
    text = _LINK.sub(lambda link: "" if link[1].strip("^ ").isdigit() else link[1], text)
    text = _EMPHASIS.sub(r"\2", _MARK.sub("", text))
    return text.strip()
