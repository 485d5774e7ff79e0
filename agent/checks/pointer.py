"""Claims in short: "The Straw Hat, director: Maurice Tourneur" and "Frédéric Chopin: 1829"."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from agent.checks.lexicon import SENSES
from agent.checks.tokens import fold, tokens, words_of
from agent.evidence import BETWEEN_TITLES

_RELATION: Final = re.compile(r"(?P<about>.+), (?P<relation>[a-z][a-z0-9' -]*)")
_BRACKETS: Final = re.compile(r"\s*\([^()]*\)")
_MOST: Final = 9
"""Words of what a pointer is about."""

_NAMED: Final[Mapping[str, tuple[str, ...]]] = {
    "work by": ("performer", "author", "director", "composer"), "parent": ("father", "mother"),
    "issuer": ("label", "publisher"), "label": ("label",), "party": ("party",), "network": ("network",),
    "nationality": ("citizenship",), "team": ("team",),
    "educated at": ("studied",), "founded by": ("founder",), "owned by": ("owner",),
    "created by": ("founder", "author"), "country of citizenship": ("citizenship",),
    "country of origin": ("citizenship", "country"), "publication date": ("released", "published"),
    "release date": ("released", "published"), "inception": ("founded",), "cast member": ("lead",),
    "record label": ("label",), "creator": ("founder", "author", "creator"),
    "headquarters location": ("headquarters",), "work location": ("residence", "employer"),
    "located in the administrative territorial entity": ("country", "location"),
    "location": ("location", "host", "country"), "award received": ("award", "winner"),
    "member of sports team": ("team", "employer"), "developer": ("developer",),
    "member of political party": ("party",), "military branch": ("branch",), "original network": ("network",),
    "production company": ("producer",), "performer": ("performer", "author"), "author": ("author",),
    "place of birth": ("birth",), "place of death": ("death",), "date of birth": ("birth",),
    "date of death": ("death",), "screenwriter": ("screenwriter", "author"), "manufacturer": ("maker",),
    "operator": ("operator",), "follows": ("after",), "followed by": ("before",),
    "mouth of the watercourse": ("mouth",), "language": ("language",), "official language": ("language",),
    "residence": ("residence",), "religion": ("religion",),
    "born": ("birth",), "born in": ("birth",), "born on": ("birth",), "died": ("death",), "died in": ("death",),
    "died on": ("death",), "studied": ("studied",), "studied at": ("studied",), "married to": ("spouse",),
    "directed by": ("director",), "produced by": ("producer",), "written by": ("author", "screenwriter"),
    "composed by": ("composer",), "performed by": ("performer",), "starring": ("lead",),
    "published by": ("publisher",), "developed by": ("developer",), "manufactured by": ("maker",),
    "located in": ("location", "country"), "based in": ("headquarters",), "founded in": ("founded",),
    "released": ("released",), "released in": ("released",), "published": ("published",),
}  # fmt: skip
"""Relation as knowledge graphs call it, or as a verb → senses of the lexicon, where it is none of their nouns."""
WHAT_IT_IS: Final = frozenset(("occupation", "profession", "instance of", "type", "kind"))
"""Relations to what something is: "is an engineer"."""


@dataclass(frozen=True, slots=True)
class Pointer:
    about: str
    relation: str
    """Empty: the value alone."""
    value: str

    @property
    def bare(self) -> str:
        """What it is about, without what distinguishes it from others of the same name."""
        return _BRACKETS.sub("", self.about) or self.about


def pointer(text: str, titles: Sequence[str]) -> Pointer | None:
    """A claim in short, or None where it is none.

    Args:
        text: of the claim.
        titles: of the pages that it cites.
    """
    known = {_plain(part) for title in titles for part in title.split(BETWEEN_TITLES)}
    for colon in re.finditer(r":\s+(?=\S)", text):
        about, value = text[: colon.start()].strip(), text[colon.end() :].strip(" .")
        if (match := _RELATION.fullmatch(about)) and len(match["relation"].split()) < _MOST:
            return Pointer(match["about"], match["relation"], value)
        if _plain(about) in known:
            return Pointer(about, "", value)
    about, colon, value = text.partition(": ")
    words = about.split()
    if colon and len(words) < _MOST and all(w[0].isupper() or len(w) < 4 or not w[0].isalpha() for w in words):
        return Pointer(about, "", value.strip(" ."))
    return None


_SAID: Final = (
    ("", r"[Tt]he (?P<r>[a-z][a-z ]*?) of (?P<s>.+?) (?:is|was|are|were) (?P<o>.+)"),
    ("country of citizenship", r"(?P<s>.+) (?:is|was) (?:an? )?(?P<o>[A-Z][\w-]*(?: [A-Z][\w-]*)?)"),
    ("location", r"(?P<s>.+?) (?:(?:is|was|are)(?: located| situated)?|lies?|stands) (?:in|at) (?:the )?(?P<o>.+)"),
    ("work by", r"(?P<s>.+) (?:is|was) by (?P<o>.+)"), ("sibling", r"(?P<s>.+) and (?P<o>.+) (?:are|were) siblings"),
    ("parent", r"(?P<s>.+) (?:is|was) an? (?:child|son|daughter) of (?P<o>.+)"),
    ("cast member", r"(?P<s>.+) features (?P<o>.+)"), ("cast member", r"(?P<o>.+) is an act(?:or|ress) in (?P<s>.+)"),
    ("record label", r"(?P<s>.+) was released on (?P<o>[A-Z].+)"), ("issuer", r"(?P<o>.+) released (?P<s>.+)"),
    ("original network", r"(?P<s>.+) (?:aired|was broadcast) on (?P<o>.+)"),
    ("member of sports team", r"(?P<s>.+) play(?:ed|s) for (?:the )?(?P<o>.+)"),
    ("military branch", r"(?P<s>.+) (?:served|was) in the (?P<o>.+)"),
    ("educated at", r"(?P<s>.+) (?:went to|attended|studied at|was educated at) (?:the )?(?P<o>.+)"),
    ("award received", r"(?P<s>.+) (?:won|received|was awarded) (?:the |an? )?(?P<o>[A-Z].+)"),
)  # fmt: skip
"""Relation → sentences that say no more than it; the first one names its relation itself."""


def said_short(text: str) -> tuple[Pointer, ...]:
    """The claims in short that a whole sentence comes to."""
    found = ((name, re.fullmatch(pattern, text.strip().rstrip("."))) for name, pattern in _SAID)
    return tuple(Pointer(m["s"], name or m["r"], m["o"]) for name, m in found if m)


def _plain(title: str) -> str:
    return " ".join(token.text for token in words_of(tokens(_BRACKETS.sub("", title) or title)))


def senses_of(relation: str) -> tuple[str, ...]:
    """The senses that a relation's name may have; none: the lexicon does not know it."""
    return _NAMED.get(relation, ()) or _by_noun().get(fold(relation), ())


@cache
def _by_noun() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for sense in SENSES.values():
        for noun in sense.nouns:
            found[noun] = (*found.get(noun, ()), sense.name)
    return found
