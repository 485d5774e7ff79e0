"""Text that was written by strangers cannot speak for the policy, the protocol or the chat template.

Only control marks are changed: their brackets become round ones, and invisible characters go. All else stays as it is.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Final

_ALWAYS: Final = ("think", "tool_call", "tool_response", "tools", "tool_calls", "sys")
"""Tags that are control marks for many models, whatever the protocol."""
_TOKENS: Final = (
    "s|bos|eos|pad|unk|sep|cls|mask|start_of_turn|end_of_turn|start_of_image|end_of_image|begin_of_text|end_of_text"
    r"|endoftext|im_start|im_end|extra_id_\d+|0x[0-9a-f]{2}"
)
_BRACKETED: Final = "inst|tool_calls|tool_results|available_tools|system_prompt|cls|sep|pad|unk|mask|bos|eos"

_LEFT: Final = "<＜﹤‹〈⟨〈❬❮❰˂ᐸ≺⧼≮"
_RIGHT: Final = ">＞﹥›〉⟩〉❭❯❱˃ᐳ≻⧽≯"
_SQUARE: Final = "[［【〔⟦⦋"
_LETTERS: Final = (  # Cyrillic, Greek, Armenian and Latin letters that look like another one
    "аa еe оo рp сc уy хx іi ѕs јj ԁd һh ԛq ԝw кk мm тt вb нh ӏl ոn սu օo αa εe οo ιi κk νv ρp τt υu χx ωw ϲc ɑa ɡg ıi"
)
_LOOKALIKES: Final[dict[str, str]] = (
    dict.fromkeys(_LEFT, "<")
    | dict.fromkeys(_RIGHT, ">")
    | dict.fromkeys(_SQUARE, "[")
    | dict.fromkeys("]］】〕⟧⦌", "]")
    | dict.fromkeys("／⁄∕⧸╱⟋＼\\", "/")
    | dict.fromkeys("｜∣ǀ│￨", "|")
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
_SUSPICIOUS: Final = re.compile(f"[&{_HIDDEN}{_JOINERS}{re.escape(_LEFT + _SQUARE)}]")


@dataclass(frozen=True)
class Defused:
    """Text that is safe to show, with the way back to the original."""

    text: str
    starts: tuple[int, ...] | None = None
    """Where each character of `text` stands in the original, and the original's length; None if nothing changed."""

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Where `text[start:end]` stands in the original."""
        return (start, end) if self.starts is None else (self.starts[start], self.starts[end])

    def shown(self, start: int, end: int) -> tuple[int, int]:
        """Where the original's `[start:end]` stands in `text`."""
        return (start, end) if self.starts is None else (bisect_left(self.starts, start), bisect_left(self.starts, end))


def defuse(text: str, tags: Collection[str]) -> str:
    """Make the control marks in `text` harmless: `tags`, what chat templates use, and both in disguise."""
    return defused(text, tags).text


def defused(text: str, tags: Collection[str]) -> Defused:
    """The same as `defuse`, with a map to the original."""
    if not _SUSPICIOUS.search(text):
        return Defused(text)
    skeleton, places = _skeleton(text)
    marks: dict[int, str] = {}
    for match in _marks(frozenset(tags)).finditer(skeleton):
        for group, at in ((name, match.start(name)) for name in match.re.groupindex if match[name]):
            marks[places[at]] = "(" if group.startswith("left") else ")"
    characters: list[str] = []
    starts: list[int] = []
    at = 0
    while at < len(text):
        written = marks.get(at) or ("" if _is_hidden(text, at) else text[at])
        if written:
            characters.append(written)
            starts.append(at)
        at = _after(text, at) if at in marks else at + 1
    if len(characters) == len(text) and not marks:
        return Defused(text)
    return Defused("".join(characters), (*starts, len(text)))


@cache
def _marks(tags: frozenset[str]) -> re.Pattern[str]:
    """Every control mark as it looks in a skeleton. The groups are the brackets that make it one.

    All but the first bracket is looked ahead at, so a mark inside another one is found too.
    """
    names = "|".join(sorted({re.escape("".join(map(_fold, tag))) for tag in (*tags, *_ALWAYS)}))
    return re.compile(
        rf"(?P<left1><)(?=\s*/?\s*(?:{names})(?![\w-])[^<>]{{0,200}}(?P<right1>>))"
        rf"|(?P<left2><)(?=(?:\s*/\s*)?(?:{names})(?![\w-]))"
        rf"|(?P<left3><)(?=\s*/?\s*(?:{_TOKENS})\s*/?\s*(?P<right3>>))"
        r"|(?P<left4><)(?=\s*\|[^<>]{1,100}?(?P<right4>>))"
        r"|(?P<left5><)(?=\|\w)"
        rf"|(?P<left6>\[)(?=\s*/?\s*(?:{_BRACKETED})\s*(?P<right6>\]))"
    )


def _skeleton(text: str) -> tuple[str, list[int]]:
    """The text as a reader might take it, disguises undone; and where each of its characters stands in `text`."""
    skeleton: list[str] = []
    places: list[int] = []
    at = 0
    while at < len(text):
        after = _after(text, at)
        plain = _fold(text[at]) if after == at + 1 else _entity(text, at)
        skeleton.append(plain)
        places.extend([at] * len(plain))
        at = after
    return "".join(skeleton), places


def _after(text: str, at: int) -> int:
    """Where the next character begins: a character entity is one character."""
    entity = _ENTITY.match(text, at) if text[at] == "&" else None
    return entity.end() if entity and _entity(text, at) else at + 1


def _entity(text: str, at: int) -> str:
    """The bracket, slash or bar that an entity stands for; empty if it stands for something else."""
    match = _ENTITY.match(text, at)
    assert match is not None, text[at:]
    if match["name"]:
        return _ENTITIES[match["name"].lower()]
    character = chr(int(match["dec"]) if match["dec"] else int(match["hex"], 16))
    return character if character in _ENTITIES.values() else ""


@cache
def _fold(character: str) -> str:
    """What a character looks like: compatibility forms, accents, case and look-alikes folded, hidden ones gone."""
    if character in _LOOKALIKES:
        return _LOOKALIKES[character]
    if character in _JOINERS or _HIDDEN_CHARACTER.match(character):
        return ""
    plain = (c for c in unicodedata.normalize("NFKD", character) if unicodedata.category(c) not in ("Mn", "Me", "Cf"))
    return "".join(_LOOKALIKES.get(c, c) for c in "".join(plain).casefold())


def _is_hidden(text: str, at: int) -> bool:
    if text[at] in _JOINERS:
        return not (at and at + 1 < len(text) and _joins(text[at - 1]) and _joins(text[at + 1]))
    return _HIDDEN_CHARACTER.match(text[at]) is not None


def _joins(character: str) -> bool:
    """Whether a joiner beside this character says something: it is of a script with joiners, or of an emoji."""
    joining = unicodedata.category(character) in ("Lo", "Mn", "Mc", "So", "Sk")
    return joining and character not in _LOOKALIKES and not _HIDDEN_CHARACTER.match(character)
