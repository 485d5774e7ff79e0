"""Long texts as pieces of the length of a passage, each known by its offsets. The text itself is never changed."""

import re
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Final, cast

from agent.sources.titles import BETWEEN_TITLES

PASSAGE_CHARS: Final = 1000
"""Aim for the pieces of a file: about the 100–150 words that retrievers are usually given."""

_CLOSING = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_HEADING = re.compile(r"(#{1,6})[ \t](.*)")
_UNDERLINE = re.compile(r"[ ]{0,3}(={2,}|-{2,})[ \t]*")
_ABOVE = re.compile(r"[ ]{0,3}(?![ \t>|<#]|[-*+][ \t]|\d{1,9}[.)][ \t])(?=.*\w).{1,200}")
"""A line that may be a heading over such a one: no list, quotation, table, tag or code, and no long paragraph."""
_FRONT = re.compile(r"---[ \t]*\n(?=[A-Za-z_][\w -]*:)(.{0,20000}?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_STATED = re.compile(
    r"""^([A-Za-z_][\w-]*):[ \t]+("[^"\n]*"|'[^'\n]*'|[^\s>|\[{&*!"'].{0,1000}?)(?:[ \t]+#.*)?[ \t]*$""", re.MULTILINE
)
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")
_SPACES = re.compile(r"\s*")
_TABLE = re.compile(r"(?<=\n\n)(?=\| )")
_BETWEEN_WORDS = re.compile(r"\s+")
_SENTENCE_END = re.compile(r"[.!?]['\")\]]*\s+|[。！？]|\n")


def front_matter(text: str) -> tuple[dict[str, str], int]:
    """What a file of Markdown says of itself in YAML before it begins, by key, and where that ends.

    Only lines of one key and its text are read; what is no such block is left in the text.
    """
    found = _FRONT.match(text)
    stated = _STATED.findall(found[1]) if found else []
    return {key.lower(): value.strip("\"' \t") for key, value in stated}, found.end() if found and stated else 0


def split_markdown(text: str, name: str, *, start: int = 0, underlined: bool = True) -> Iterator[tuple[str, int, int]]:
    """Give (title, start, end) of what stands under each heading; the title is the path of headings down to it.

    A heading with nothing under it, no deeper heading either, is what it says itself.

    Args:
        text: a whole file.
        name: the title of what stands under no heading.
        start: what is before it is left out.
        underlined: whether a line above `===` or `---` is a heading, as in files that people write.
    """
    path: list[tuple[int, str]] = []
    own = start
    for level, title, at, below in _headings(text, start, underlined=underlined):
        deeper = bool(path) and level > path[-1][0]
        yield _title(path, name), start if deeper or _says(path, text[start:at]) else own, at
        path = [*((depth, above) for depth, above in path if depth < level), (level, title)]
        own, start = at, below
    yield _title(path, name), start if _says(path, text[start:]) else own, len(text)


def _headings(text: str, start: int, *, underlined: bool) -> Iterator[tuple[int, str, int, int]]:
    """Level, title, start and end of each heading."""
    at, fence, above, alone = start, "", "", True
    for line in StringIO(text[start:], newline=""):  # splitlines() would end a line at U+2028, too
        bare = line.rstrip("\r\n")
        mark = _FENCE.match(line)
        if mark and not fence and mark[1][0] == "`" and "`" in line[mark.end() :]:
            mark = None  # code inside of a line
        if mark and (not fence or (mark[1].startswith(fence) and not line[mark.end() :].strip())):
            fence = "" if fence else mark[1]
        heading = None if fence else _HEADING.fullmatch(bare)
        under = None if fence else _UNDERLINE.fullmatch(bare)
        if heading:
            yield len(heading[1]), _CLOSING.sub("", heading[2]).strip(" \t"), at, at + len(line)
        elif under and above:
            yield 1 if "=" in bare else 2, above.strip(), at - len(above), at + len(line)
        apart = bool(fence or mark or heading or under) or not bare.strip()
        above = line if underlined and alone and not apart and _ABOVE.fullmatch(bare) else ""
        alone = apart
        at += len(line)


def _says(path: Sequence[tuple[int, str]], section: str) -> bool:
    """Whether text stands under a heading; true also where there is no heading, or an empty one, to show instead."""
    return bool(section.strip()) or not path or not path[-1][1]


def _title(path: Sequence[tuple[int, str]], name: str) -> str:
    return BETWEEN_TITLES.join(title for _, title in path if title) or name


def split_page(text: str, title: str, *, start: int = 0, underlined: bool = False) -> Iterator[tuple[str, int, int]]:
    """As `split_markdown`, of a page that has a title beside its headings: it comes first, unless they repeat it."""
    for path, at, end in split_markdown(text, title, start=start, underlined=underlined):
        first, *below = path.split(BETWEEN_TITLES)
        longer = title if first in title else first if title in first else ""
        yield BETWEEN_TITLES.join([longer, *below] if longer else [title, path]), at, end


def split_tables(text: str, sections: Iterator[tuple[str, int, int]]) -> Iterator[tuple[str, int, int]]:
    """Cut sections that are longer than a passage where a table begins, so that a passage shows its header."""
    for title, start, end in sections:
        if end - start > PASSAGE_CHARS:
            for table in _TABLE.finditer(text, start, end):
                yield title, start, table.start()
                start = table.start()
        yield title, start, end


def split_text(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Cut text[start:end] into pieces of at most `PASSAGE_CHARS`.

    It cuts after a paragraph where it can, else after a sentence, else between words; no piece is only white space
    or has any at its ends.
    """
    pieces: list[tuple[int, int]] = []
    while (start := cast(re.Match[str], _SPACES.match(text, start, end)).end()) < end:
        stop = end if end - start <= PASSAGE_CHARS else _last_break(text, start)
        piece = text[start:stop].rstrip()
        pieces.append((start, start + len(piece)))
        start = stop
    return pieces


def _last_break(text: str, start: int) -> int:
    """Where the piece that begins at `start` ends: at the best kind of break in its second half."""
    middle, limit = start + PASSAGE_CHARS // 2, start + PASSAGE_CHARS
    for ends in (_PARAGRAPH_END, _SENTENCE_END, _BETWEEN_WORDS):
        if found := [match.end() for match in ends.finditer(text, middle, limit)]:
            return found[-1]
    return limit
