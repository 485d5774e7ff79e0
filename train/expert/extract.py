"""Relations read off the first sentences of articles, by patterns: who directed a film, when and where one was born.

Introductions of encyclopedias are written so much alike that a few patterns read some relation from most of them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from agent.checks.tokens import sentences
from train.expert.nations import COUNTRIES, NATIONALITIES
from train.expert.plan import Gold
from train.expert.relations import DocumentWithRelations, StatedRelation
from train.expert.text import names_in, plain_title

_MOST_SENTENCES: Final = 6
"""At the beginning of an article, in which relations are looked for."""
_MONTH: Final = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE: Final = rf"(?:\d{{1,2}} {_MONTH} \d{{3,4}}|{_MONTH} \d{{1,2}}, \d{{3,4}})"
_WORD: Final = r"[A-ZÀ-ÖØ-ÞĀ-Ž][\w’'.-]*"
_BETWEEN: Final = "de|da|di|del|van|von|der|al|bin|ibn|la|le|du|dos"
"""Small words inside of names."""
_NATION: Final = "|".join(sorted(map(re.escape, NATIONALITIES), key=len, reverse=True))
_COUNTRY: Final = "|".join(sorted(map(re.escape, COUNTRIES), key=len, reverse=True))
_PERSON: Final = rf"(?!(?:{_NATION})\b){_WORD}(?:(?: (?:{_BETWEEN}))* {_WORD}){{1,4}}"
_NAME: Final = rf"{_WORD}(?:(?: (?:{_BETWEEN}|of|the|y|e|and the))* {_WORD}){{0,5}}"
_PLACE: Final = rf"(?!{_MONTH}\b){_WORD}(?:(?: (?:de|del|upon|on|am|of|the))* {_WORD}){{0,3}}"
_PEOPLE: Final = (
    "actor|actress|director|footballer|player|politician|singer|songwriter|musician|composer|writer|author|novelist|poet|"
    "painter|artist|sculptor|architect|scientist|physicist|chemist|mathematician|historian|philosopher|economist|"
    "journalist|lawyer|judge|soldier|officer|general|admiral|businessman|businesswoman|entrepreneur|engineer|swimmer|"
    "cyclist|runner|athlete|wrestler|boxer|skier|skater|driver|racer|coach|manager|producer|screenwriter|comedian|"
    "model|dancer|choreographer|conductor|pianist|guitarist|drummer|rapper|bishop|priest|theologian|missionary|"
    "diplomat|activist|explorer|physician|surgeon|astronomer|biologist|botanist|geologist|rower|gymnast|golfer|sprinter"
)
_PLACES: Final = (
    "village|town|city|municipality|commune|river|lake|mountain|airport|island|school|university|college|hospital|"
    "museum|stadium|station|church|castle|bridge|district|parish|park|dam|peak|suburb|settlement|hamlet|company|club"
)
_IS: Final = r"\b(?:is|was|are|were) (?:an?|the) "
_FILM: Final = r"[^.]{0,80}?\b(?:film|movie)\b"
_BY: Final = r"(?:[A-Z]?[a-z&-]+ )"
"""What a person is called before the name: "American singer-songwriter "."""
_BORN: Final = rf"(?:(?:on|in) (?:{_DATE}|\d{{4}}),? )?(?:in|at) ({_PLACE})"
_OF_PARENTS: Final = r"(?<!a )\b(?:son|daughter|child) of (?:(?!act|moth)[a-z]+,? )*"
_FIRST: Final[dict[str, str]] = {
    "date of birth": rf"\([^()]*?(?:\bborn )?(?:on )?({_DATE})[^()]*?\)(?= (?:is|was)\b)",
    "date of death": rf"\([^()]*?{_DATE}[^()]*? [–-] ({_DATE})[^()]*\)",
    "place of birth": rf"\([^()]*?\bborn (?:on )?{_DATE},? in ({_PLACE})",
    "country of citizenship": rf"\) (?:is|was) an? (?:[a-z-]+ )?({_NATION})\b(?!-)[^.]*\b(?:{_PEOPLE})\b",
    "country of origin": rf"{_IS}(?:\d{{4}} )?({_NATION})\b{_FILM}",
    "publication date": rf"{_IS}(\d{{4}})\b{_FILM}",
    "director": rf"{_FILM}[^.]*?\bdirected by ({_PERSON})",
    "composer": rf"\b(?:music|score|soundtrack)[^.]{{0,50}}\b(?:composed )?by ({_PERSON})",
    "producer": rf"{_FILM}[^.]*?[^-]\bproduced by ({_PERSON})",
    "performer": rf"{_IS}[^.]{{0,50}}?\b(?:song|single|album)\b[^.]{{0,50}}?(?<!written) by {_BY}{{0,6}}?({_PERSON})"
    r"(?=[,.]| from| released| and| featuring)",
    "author": rf"{_IS}[^.]{{0,50}}?\b(?:novel|book|play|poem)\b[^.]{{0,30}}? (?:written )?by (?:the )?{_BY}{{0,4}}?"
    rf"({_PERSON})(?=[,.]| published| first)",
    "country": rf"{_IS}[^.]{{0,60}}?\b(?:{_PLACES})\b[^.]*?\b(?:in|of) (?:[^.]*, )?(?:the )?({_COUNTRY})\b",
    "inception": rf"\b(?:formed|founded|established)(?: [^.,]{{0,30}})? in (?:{_MONTH} )?(\d{{4}})\b",
    "founded by": rf"\bfounded (?:[^.,]{{0,30}} )?by ({_PERSON})(?=[,.]| in\b)",
    "headquarters location": rf"\bheadquartered in ({_PLACE})",
}
"""Relation → what the first sentence says of it; the object is the group."""
_ANYWHERE: Final[dict[str, str]] = {
    "place of birth": rf"\b(?:was )?born {_BORN}",
    "place of death": rf"\bdied {_BORN}",
    "father": rf"{_OF_PARENTS}({_PERSON})",
    "mother": rf"{_OF_PARENTS}{_PERSON},? and (?:[a-z]+,? )*({_PERSON})",
    "spouse": rf"\b(?:married (?:to )?|wife of |husband of )(?:[a-z]+ )?({_PERSON})",
    "sibling": rf"\b(?:brother|sister) of (?:[a-z, ]+ )?({_PERSON})",
    "educated at": rf"\b(?:studied|educated|graduated)(?: [a-z]+){{0,3}} (?:at|from) (?:the )?({_NAME})",
    "director": rf"\bfilm (?:was|is) directed by ({_PERSON})",
    "capital": rf"\bcapital (?:city )?(?:is|was) ({_PLACE})",
}
"""What any sentence says of it."""
_PATTERNS: Final = [
    *((name, re.compile(text), True) for name, text in _FIRST.items()),
    *((name, re.compile(text), False) for name, text in _ANYWHERE.items()),
]
_NO_PERSON: Final = r"(?!film|movie|song|album|novel|book|play\b|series|single|by\b)"
_PERSON_IS: Final = re.compile(
    rf"\(.*\bborn [^)]*\d{{4}}|\b(?:is|was) an? (?:{_NO_PERSON}[\w-]+ ){{0,5}}?(?:film )?(?:{_PEOPLE})\b"
)
_OF_PEOPLE: Final = frozenset(
    "date of birth|date of death|place of birth|place of death|father|mother|spouse|sibling|educated at".split("|")
)
_OF_FILMS: Final = frozenset("country of origin|publication date|director|composer".split("|"))
_LEAST_NAME: Final = 3


def described(documents: Iterable[Gold]) -> Iterator[DocumentWithRelations]:
    """The documents of which a relation can be read; those whose title several have are left out."""
    known = list(documents)
    titles = Counter(names_in(plain_title(one.title)) for one in known)
    for document in known:
        title = plain_title(document.title)
        if titles[names_in(title)] == 1 and len(title) >= _LEAST_NAME:
            parts = [document.text[s.start : s.end] for s in sentences(document.text)][:_MOST_SENTENCES]
            if relations := tuple(_relations(title, parts)):
                yield DocumentWithRelations(
                    id=document.id, title=title, text=document.text, sentences=tuple(parts), relations=relations
                )


def _relations(title: str, parts: list[str]) -> Iterator[StatedRelation]:
    """Relations of what an article is about, each once."""
    if not parts or not set(names_in(parts[0]).split()) & set(names_in(title).split()):
        return
    said: set[str] = set()
    person = bool(_PERSON_IS.search(parts[0]))
    for at, text in enumerate(parts):
        for relation, pattern, first in _PATTERNS:
            other = _OF_FILMS if person else _OF_PEOPLE
            if relation in said or relation in other or (first and at):
                continue
            found = pattern.search(text)
            value = found[1].rstrip(".,'’-") if found else ""
            if value and names_in(value) != names_in(title):
                said.add(relation)
                yield StatedRelation(subject=title, relation=relation, object=value, sentences=(at,))
