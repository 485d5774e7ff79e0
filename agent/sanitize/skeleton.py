"""Text as a reader might take it, with disguises undone: look-alikes, entities, accents, case, invisible characters."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

PLAIN_LEFT: Final = "<＜﹤&"
"""What a tokenizer or a browser takes for `<` itself; the other left brackets only look like it."""
_LEFT: Final = "<＜﹤‹〈⟨〈❬❮❰˂ᐸ≺⧼≮⋖⋜⩹⩻⩽⪡⪦⪻⊰⊲◁◀◂◃◄◅⏴⯇⦑⦓ᚲ𝈶⟪≪︿⫷"
_RIGHT: Final = ">＞﹥›〉⟩〉❭❯❱˃ᐳ≻⧽≯⋗⋝⩺⩼⩾⪢⪧⪼⊱⊳▷▶▸▹►▻⏵⯈⦒⦔𖼿𝈷⟫≫﹀⫸"
_SQUARE_LEFT: Final = "[［【〔⟦⦋⁅❲⟬〖〘〚⦍⦏⦗⹕⹗﹇﹝︹︻︗⎡⎣"
_SQUARE_RIGHT: Final = "]］】〕⟧⦌⁆❳⟭〗〙〛⦎⦐⦘⹖⹘﹈﹞︺︼︘⎤⎦"
_BARS: Final = "|｜∣ǀ│￨┃❘❙❚⏐⎮⎜⎟⎢⎥︱︳¦╎╏┆┇┊┋║‖∥׀।"
_SLASHES: Final = "／⁄∕⧸╱⟋＼\\᜵〳丿ノ⼃"
_LETTERS: Final = (  # Cyrillic, Greek, Armenian and Latin letters that look like another one
    "аa еe оo рp сc уy хx іi ѕs јj ԁd һh ԛq ԝw кk мm тt вb нh ӏl ոn սu օo αa εe οo ιi κk νv ρp τt υu χx ωw ϲc ɑa ɡg ıi"
)
_LOOKALIKES: Final[dict[str, str]] = (
    dict.fromkeys(_LEFT, "<")
    | dict.fromkeys(_RIGHT, ">")
    | dict.fromkeys(_SQUARE_LEFT, "[")
    | dict.fromkeys(_SQUARE_RIGHT, "]")
    | dict.fromkeys(_SLASHES, "/")
    | dict.fromkeys(_BARS, "|")
    | {pair[0]: pair[1] for pair in _LETTERS.split()}
    | {"▁": "_", "\u2800": ""}
)
_ENTITY: Final = re.compile(
    r"&(?:amp;)*(?:(?P<name>lt|gt|sol|vert|lsqb|rsqb|lbrack|rbrack)|#0*(?P<dec>\d{2,3})|#x0*(?P<hex>[0-9a-f]{2}));?",
    re.IGNORECASE,
)
_ENTITIES: Final = {
    "lt": "<", "gt": ">", "sol": "/", "vert": "|", "lsqb": "[", "rsqb": "]", "lbrack": "[", "rbrack": "]",
}  # fmt: skip

_JOINERS: Final = "\u200c\u200d"
"""They belong to Persian, Indic scripts and emoji; elsewhere they only hide something."""
_HIDDEN: Final = (
    "\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u0084\u0086-\u009f"  # controls, but tab and line breaks
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f"  # fillers, direction, zero width
    "\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"  # bidirectional controls, invisible operators
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # tag characters
)
_HIDDEN_CHARACTER: Final = re.compile(f"[{_HIDDEN}]")
_SUSPICIOUS: Final = re.compile(f"[&{_HIDDEN}{_JOINERS}{re.escape(_LEFT + _SQUARE_LEFT + _SQUARE_RIGHT)}]")


@dataclass(frozen=True)
class Skeleton:
    """A text in lower case, with each run of white space as one blank."""

    text: str
    places: tuple[int, ...]
    """Where each of its characters is in the original, and the original's length."""
    of: str
    """The original."""

    def plain(self, at: int) -> bool:
        """Whether what stands for `<` at a place is that character itself, and none that only looks like it."""
        return self.of[self.places[at]] in PLAIN_LEFT

    def capital(self, start: int, end: int) -> bool:
        """Whether every letter of a part is a capital one in the original."""
        letters = [c for c in self.of[self.places[start] : self.places[end]] if c.isalpha()]
        return bool(letters) and not any(c.islower() for c in letters)


def is_suspicious(text: str) -> bool:
    """Whether a text holds what may be a mark, or what cannot be seen."""
    return _SUSPICIOUS.search(text) is not None


def skeleton_of(text: str) -> Skeleton:
    skeleton: list[str] = []
    places: list[int] = []
    blank = False
    for at, character in _characters(text):
        for letter in character:
            if letter.isspace():
                if blank:
                    continue
                letter = " "
            blank = letter == " "
            skeleton.append(letter)
            places.append(at)
    return Skeleton("".join(skeleton), (*places, len(text)), text)


def _characters(text: str) -> Iterator[tuple[int, str]]:
    """Each character, an entity being one, and what it looks like."""
    at = 0
    while at < len(text):
        entity = read_entity(text, at) if text[at] == "&" else None
        end, plain = entity or (at + 1, fold(text[at]))
        yield at, plain
        at = end


def read_entity(text: str, at: int) -> tuple[int, str] | None:
    """Where the entity at a place ends, and the bracket, slash or bar that it stands for, if it stands for one."""
    match = _ENTITY.match(text, at)
    if match is None:
        return None
    if match["name"]:
        return match.end(), _ENTITIES[match["name"].lower()]
    character = chr(int(match["dec"]) if match["dec"] else int(match["hex"], 16))
    return (match.end(), character) if character in _ENTITIES.values() else None


@cache
def fold(character: str) -> str:
    """What a character looks like: compatibility forms, accents, case and look-alikes folded, hidden ones gone."""
    if character in _LOOKALIKES:
        return _LOOKALIKES[character]
    if character in _JOINERS or _HIDDEN_CHARACTER.match(character):
        return ""
    plain = (c for c in unicodedata.normalize("NFKD", character) if unicodedata.category(c) not in ("Mn", "Me", "Cf"))
    return "".join(_LOOKALIKES.get(c, c) for c in "".join(plain).casefold())


def is_hidden(text: str, at: int) -> bool:
    """Whether the character at a place says nothing, so that it only hides something."""
    if text[at] in _JOINERS:
        return not (at and at + 1 < len(text) and _joins(text[at - 1]) and _joins(text[at + 1]))
    return _HIDDEN_CHARACTER.match(text[at]) is not None


def _joins(character: str) -> bool:
    """Whether a joiner beside this character says something: it is of a script with joiners, or of an emoji."""
    joining = unicodedata.category(character) in ("Lo", "Mn", "Mc", "So", "Sk")
    return joining and character not in _LOOKALIKES and not _HIDDEN_CHARACTER.match(character)
