"""Letters of every script: marks that a reader may leave out, and characters that are words of their own."""

import re
import unicodedata
from typing import Final

MARKS: Final = (
    "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
    "\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
)
"""Accents, and the vowels that Hebrew and Arabic may leave out. Like the others, part of a pattern in brackets."""
ALONE: Final = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Chinese, Japanese, Thai, Lao, Burmese and Khmer have no spaces; a Korean word has endings."""
SIGNS: Final = "\u0900-\u0963\u0966-\u0dff"
"""Of the scripts of India, whose vowels are signs behind a letter and no letters for Python."""
_MARK: Final = re.compile(f"[{MARKS}]")


def without_marks(text: str) -> str:
    """Accents and look-alike forms do not matter: "Łódź" is "Łodz", "ﬁlm" is "film".

    Marks without which a letter is another one stay: "バ" is not "ハ".
    """
    return unicodedata.normalize("NFC", _MARK.sub("", unicodedata.normalize("NFKD", text)))
