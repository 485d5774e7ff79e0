"""How an answer's text is made comparable, under names: each is one function from text to text.

"F1" and "EM" are only defined together with one of these. Words are what white space divides afterwards.
"""

import re
import string
import unicodedata
from collections.abc import Callable, Mapping
from typing import Final

Normalise = Callable[[str], str]

_ASCII_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)
_TRIVIAQA_PUNCTUATION: Final = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))
_ARTICLE: Final = re.compile(r"\b(a|an|the)\b")
_UNSPACED: Final = re.compile("([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])")
"""Characters of scripts that put no space between words: each counts as one."""


class _Plain(dict[int, str]):
    """Nothing for an accent, a space for punctuation, anything else as it is; each looked up once."""

    def __missing__(self, code: int) -> str:
        category = unicodedata.category(chr(code))
        between = " " if category[0] == "P" or category == "Sk" else chr(code)
        self[code] = "" if 0x300 <= code <= 0x36F else between
        return self[code]


_PLAIN: Final = _Plain()


def squad(text: str) -> str:
    """SQuAD 1.1, also HotpotQA's, 2WikiMultiHopQA's and MuSiQue's: lower case, no ASCII punctuation, no articles.

    One departure: articles stay where nothing else is left. "A" is an answer to a choice, "The The" a band.
    """
    return _without_articles(text.lower().translate(_ASCII_PUNCTUATION))


def triviaqa(text: str) -> str:
    """TriviaQA: as SQuAD's, but punctuation and the underscore become spaces, also ‘ ’ ´ `; "Jay-Z" is "Jay Z"."""
    return _without_articles(text.lower().translate(_TRIVIAQA_PUNCTUATION))


def unicode(text: str) -> str:
    """For any script: compatibility forms, case and accents folded, punctuation of every script to spaces.

    Articles go as in SQuAD's; a character of a script without spaces (Chinese, Japanese) is a word of its own.
    """
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    plain = unicodedata.normalize("NFC", folded.translate(_PLAIN))
    return _without_articles(_UNSPACED.sub(r" \1 ", plain))


def none(text: str) -> str:
    """Nothing but white space folded: the answer to the letter."""
    return " ".join(text.split())


NORMALISATIONS: Final[Mapping[str, Normalise]] = {
    "squad": squad,
    "triviaqa": triviaqa,
    "unicode": unicode,
    "none": none,
}
DEFAULT: Final = "squad"
"""What a figure without a name is under."""


def _without_articles(text: str) -> str:
    plain = " ".join(text.split())
    return " ".join(_ARTICLE.sub(" ", plain).split()) or plain
