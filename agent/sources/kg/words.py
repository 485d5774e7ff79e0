"""Names and questions as words: folded, split, stemmed, and joined where two words ask for the same relation.

Pure, and for English where it stems; other languages are compared as they are written.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Final, Protocol, cast

_MARK: Final = re.compile(r"[\u0300-\u036f]+")
_LETTERS_APART: Final = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "ı": "i", "ŀ": "l", "ð": "d", "þ": "th", "æ": "ae",
                                       "œ": "oe", "ħ": "h"})  # fmt: skip
_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_HUMP: Final = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PIECE: Final = re.compile(r"[A-Za-z]+|\d|[^\W\d_]+|[^\w\s]|_")

STOP_WORDS: Final = frozenset(
    "a about all also am an and any are as at be been being but by can could did do does for from had has have he her "
    "hers him his how i if in into is it its just list many may me more most much my name named no not of on one only "
    "or other our out over please s same she should so some such tell than that the their them then there these they "
    "this those to too under up us was we were what when where which while who whom whose why will with would you your "
    "give given find show know called".split()
)
"""Words that are no name by themselves, and that say nothing of what the question wants."""

_SAME: Final = (
    "write wrote written writer author screenwriter scriptwriter screenplay script penned",
    "direct director directed directs direction filmmaker",
    "act actor actress acted star starred starring stars cast appear appeared appearing play played portray",
    "sing sang sung singer song perform performer performed performance vocalist",
    "compose composer composed music soundtrack score",
    "produce producer produced production",
    "publish publisher published publication publishing",
    "release released premiere premiered launch publication published",
    "date year day when time began",
    "place location located locate where situated city town headquarters based venue",
    "country nation nationality citizenship citizen state",
    "born birth birthplace birthday birthdate native",
    "die died death dead killed decease deceased dies",
    "bury buried burial grave cemetery interred",
    "spouse wife husband married marry marriage partner wed",
    "child children son daughter kid offspring",
    "father mother parent parents dad mom",
    "sibling brother sister",
    "found founder founded founding establish established inception start started creation",
    "create creator created invent inventor invented discover discoverer discovered develop developer developed",
    "own owner owned belong possess",
    "employ employer employed work worked works job",
    "job occupation profession career",
    "study studied educate educated education school university college alma graduate attended",
    "genre type kind sort category style classified instance",
    "language spoken speak speaks tongue",
    "tag describe described description word words keyword topic subject theme",
    "rate rating rated vote votes popularity popular famous",
    "win won winner winning award awarded prize received victor",
    "hold held position office role post",
    "member membership part party belong team",
    "lead led leader leads head president chief ceo chairman governor mayor ruler rule",
    "capital seat",
    "border borders neighbor neighbour neighboring neighbouring adjacent shares",
    "currency money",
    "religion faith religious denomination",
    "population inhabitants people populous",
    "name nickname alias title",
    "follow followed sequel successor next",
    "precede preceded prequel predecessor previous",
    "character fictional protagonist",
    "cause reason",
    "mouth flow flows outflow tributary",
    "height tall high elevation",
    "gender sex male female",
    "plays player team club",
    "label record",
    "influence influenced inspired based",
    "continent region",
)
"""Each line: words that ask for the same kind of relation; a word may be in several lines."""


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...


@cache
def _stemmer() -> _Stemmer:
    import Stemmer

    return cast("_Stemmer", Stemmer.Stemmer("english"))  # pyright: ignore[reportUnknownMemberType]


def fold(text: str) -> str:
    """A name as it is compared: no case, no accents, no double spaces. Folding twice changes nothing.

    A name of accents alone keeps them: nothing but white space is folded to nothing.
    """
    if text.isascii():
        return " ".join(text.lower().split())
    plain = text.casefold()
    folded = unicodedata.normalize("NFKD", plain).casefold().translate(_LETTERS_APART)
    return " ".join((_MARK.sub("", unicodedata.normalize("NFKD", folded)).strip() or plain).split())


def readable(relation: str) -> str:
    """`starred_actors` and `playsFor` as words."""
    if " " in relation:
        return relation
    return " ".join(_HUMP.sub(" ", relation.replace("_", " ").replace("/", " ").replace(".", " ")).split()).lower()


def split(text: str) -> list[str]:
    """The words of a text, folded; "Verne's" is "verne"."""
    words = (word.replace("’", "'") for word in _WORD.findall(fold(text)))
    return [word.removesuffix("'s").replace("'", "") for word in words]


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """One word without its ending."""
    return _stemmer().stemWord(word)


def stems(text: str) -> list[str]:
    """The stems of a text's words, those that say nothing left out."""
    return [stem(word) for word in split(text) if word not in STOP_WORDS]


@cache
def _kin() -> dict[str, frozenset[int]]:
    lines: dict[str, set[int]] = {}
    for number, line in enumerate(_SAME):
        for word in line.split():
            lines.setdefault(stem(word), set()).add(number)
    return {word: frozenset(numbers) for word, numbers in lines.items()}


def meanings(words: Iterable[str]) -> frozenset[int]:
    """What kinds of relation the stems ask for, as numbers to compare."""
    kin = _kin()
    return frozenset(number for word in words for number in kin.get(word, ()))


def asks(query: str) -> list[str]:
    """The stems of a question, with what "when" and "where" mean."""
    words = split(query)
    return [stem(word) for word in words if word not in STOP_WORDS or word in ("when", "where")]


def estimate_tokens(text: str) -> int:
    """About how many tokens a language model makes of a text; rather too many than too few."""
    return sum(_cost(piece) for piece in _PIECE.findall(text))


def _cost(piece: str) -> int:
    return 1 + (len(piece) - 1) // 7 if piece.isascii() else len(piece)


def is_relation_word(stemmed: str) -> bool:
    """Whether a stem asks for a kind of relation."""
    return stemmed in _kin()
