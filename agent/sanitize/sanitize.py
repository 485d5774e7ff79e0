"""Text that was written by strangers cannot speak for the policy, the protocol or the chat template.

Only control marks are changed: their brackets become round ones, and invisible characters go. All else stays as it is.
What is a mark is said by its shape, as tokenizers and chat templates spell their special tokens; it is read in a
skeleton (see `agent.sanitize.skeleton`). All patterns look at a bounded window, so the time that it takes is in
proportion to the text, whatever the text is.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from agent.sanitize.skeleton import Skeleton, is_hidden, is_suspicious, read_entity, skeleton_of

INDENT: Final = "  "
"""Begins each line of a stranger's text but its first: a line that begins with anything else is the loop's."""
_BLANKS: Final = re.compile(r"\s+")
_BREAKS: Final = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
_BRACKETS: Final = frozenset("<>[]|{}◁▷")
_ALWAYS: Final = (
    "think", "tool_call", "tool_response", "tools", "tool_calls", "sys", "function", "function_call", "function_calls",
    "invoke", "parameter",
)  # fmt: skip
"""Tags that are control marks for many models, whatever the protocol."""
_TOKENS: Final = (
    "s|bos|eos|pad|unk|sep|cls|mask|start_of_turn|end_of_turn|start_of_image|end_of_image|begin_of_text|end_of_text"
    r"|endoftext|im_start|im_end|extra_id_\d+|0x[0-9a-f]{2}"
)
_BRACKETED: Final = (
    "inst|tool_calls|tool_results|available_tools|system_prompt|cls|sep|pad|unk|mask|bos|eos|gmask|smask|think|call_id"
    r"|(?:unused|control|reserved|special|extra_id|token)_?\d+"
)
_HTML: Final = frozenset(
    "a abbr address article aside b base bdi bdo big blockquote body br button canvas caption center cite code col"
    " colgroup data datalist dd del details dfn dialog dir div dl dt em embed fieldset figcaption figure font footer"
    " form h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe img input ins kbd label legend li link main map mark"
    " math menu meta meter nav noscript object ol optgroup option output p picture pre progress q rp rt ruby samp"
    " script section select slot small span strike strong style sub summary sup svg table tbody td template textarea"
    " tfoot th thead time title tr tt u ul var wbr".split()
)
"""Elements of HTML that no model uses as a special token: they stay, unless they are long and in capitals."""
_LABELS: Final = frozenset(
    "pdf doc docx odt ppt pptx xls xlsx csv txt rtf xml html htm epub ps zip url isbn doi".split()
)
"""How search engines and lists of references label what they name: `[PDF] Annual report`."""
_SCHEMES: Final = frozenset("http https ftp file mailto urn doi tel news isbn arxiv".split())
"""`<https://example.org>` is an address, and no name with a prefix."""
_TAG: Final = re.compile(
    r" ?/? ?(?P<name>[a-z_][a-z0-9_.-]{0,80})(?:(?P<bare> ?/? ?>)|(?P<joined>[=:]\S)|(?P<attribute> [\w:.-]{1,40} ?=))"
)
"""What stands behind `<`: a name alone, a name that goes on after `=` or `:`, or an attribute."""
_WORD: Final = re.compile(r" ?/? ?(?P<word>[a-z][a-z0-9_]{2,60}) ?\]")
_CLOSING: Final = re.compile(r"[^<>]{0,200}>")
_BRACKET: Final = re.compile(r"[<>\[\]|{}]")


@dataclass(frozen=True)
class Sanitized:
    """Text that is safe to show, with the way back to the original."""

    text: str
    starts: tuple[int, ...] | None = None
    """Where each character of `text` is in the original, and the original's length; None if nothing changed."""

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Where `text[start:end]` is in the original."""
        return (start, end) if self.starts is None else (self.starts[start], self.starts[end])

    def shown(self, start: int, end: int) -> tuple[int, int]:
        """Where the original's `[start:end]` is in `text`."""
        return (start, end) if self.starts is None else (bisect_left(self.starts, start), bisect_left(self.starts, end))

    def behind(self, first: "Sanitized") -> "Sanitized":
        """This text as what became of the original of `first`, whose text it was made of."""
        if self.starts is None or first.starts is None:
            return Sanitized(self.text, self.starts or first.starts)
        return Sanitized(self.text, tuple(first.starts[at] for at in self.starts))


def sanitize(text: str, tags: Collection[str]) -> str:
    """Make the control marks in `text` harmless: `tags`, what chat templates use, and both in disguise.

    Args:
        text: a stranger's.
        tags: names of the protocol's tags, and whole tokens of a tokenizer (see `unusual_tokens`).
    """
    return sanitized(text, tags).text


def sanitized(text: str, tags: Collection[str]) -> Sanitized:
    """The same as `sanitize`, with a map to the original."""
    if not is_suspicious(text):
        return Sanitized(text)
    skeleton = skeleton_of(text)
    marks = {skeleton.places[at]: "(" if left else ")" for at, left in _find_marks(skeleton, frozenset(tags))}
    characters: list[str] = []
    starts: list[int] = []
    at = 0
    while at < len(text):
        written = marks.get(at) or ("" if is_hidden(text, at) else text[at])
        if written:
            characters.append(written)
            starts.append(at)
        entity = read_entity(text, at) if at in marks and text[at] == "&" else None
        at = entity[0] if entity else at + 1
    if len(characters) == len(text) and not marks:
        return Sanitized(text)
    return Sanitized("".join(characters), (*starts, len(text)))


def indented(text: str, indent: str = INDENT) -> Sanitized:
    """The text with white space that holds a line break as one line break and `indent`, and none at its ends."""
    return _laid_out(text, "\n" + indent)


def on_one_line(text: str) -> Sanitized:
    """The text with white space that holds a line break as one blank, and none at its ends."""
    return _laid_out(text, " ")


def _laid_out(text: str, instead: str) -> Sanitized:
    runs = [run for run in _BLANKS.finditer(text) if not _BREAKS.isdisjoint(run[0])]
    if not runs:
        return Sanitized(text)
    parts: list[str] = []
    starts: list[int] = []
    at = 0
    for run in runs:
        inner = run.start() > 0 and run.end() < len(text)
        parts += [text[at : run.start()], instead if inner else ""]
        starts += [*range(at, run.start()), *([run.start()] * len(instead) if inner else [])]
        at = run.end()
    return Sanitized("".join([*parts, text[at:]]), (*starts, *range(at, len(text) + 1)))


def unusual_tokens(tokens: Iterable[str]) -> tuple[str, ...]:
    """Those of a tokenizer's special tokens that `sanitize` must be given, because their shape alone is harmless."""
    known = (token.strip() for token in dict.fromkeys(tokens))
    return tuple(token for token in known if not _BRACKETS.isdisjoint(token) and sanitize(token, ()) == token)


def _find_marks(skeleton: Skeleton, tags: frozenset[str]) -> Iterator[tuple[int, bool]]:
    """The place in the skeleton of each bracket of a control mark, and whether it stands at the mark's left.

    Args:
        skeleton: of a text.
        tags: names of tags that are marks, and whole tokens.
    """
    known, literal = _patterns(tags)
    for match in known.finditer(skeleton.text):
        if match["maybe"]:
            yield from (_tag if match["maybe"] == "<" else _word)(skeleton, match.start())
            continue
        for group in match.re.groupindex:
            if match[group]:
                yield match.start(group), group.startswith("left")
    for match in literal.finditer(skeleton.text) if literal else ():
        brackets = [match.start() + bracket.start() for bracket in _BRACKET.finditer(match[0])]
        yield brackets[0], True
        yield brackets[-1], len(brackets) == 1


def _tag(skeleton: Skeleton, at: int) -> Iterator[tuple[int, bool]]:
    """A tag with an unknown name: a mark unless it is HTML, an address, or prose between comparisons."""
    match = _TAG.match(skeleton.text, at + 1)
    if match is None or not _is_control(match, skeleton, at):
        return
    yield at, True
    if closing := _CLOSING.match(skeleton.text, match.end("name")):
        yield closing.end() - 1, False


def _is_control(match: re.Match[str], skeleton: Skeleton, at: int) -> bool:
    name = match["name"]
    if match["joined"]:
        return name not in _SCHEMES
    if len(name) == 1 or (name in _HTML and not (len(name) > 2 and skeleton.capital(*match.span("name")))):
        return False
    return "_" in name or (skeleton.plain(at) and skeleton.text[at + 1] != " ")


def _word(skeleton: Skeleton, at: int) -> Iterator[tuple[int, bool]]:
    """One word of three capital letters or more in square brackets."""
    match = _WORD.match(skeleton.text, at + 1)
    if match is not None and match["word"] not in _LABELS and skeleton.capital(*match.span("word")):
        yield at, True
        yield match.end() - 1, False


@cache
def _patterns(tags: frozenset[str]) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
    """Every mark that needs no second look, and the tokens that have no common shape.

    The groups of the first are the brackets that make a mark. All but the first one is looked ahead at, so a mark
    inside another one is found too.
    """
    folded = {skeleton_of(tag).text.strip() for tag in tags}
    names = {tag for tag in folded if tag and not _BRACKET.search(tag)}
    tokens = sorted({tag for tag in folded if _BRACKET.search(tag)}, key=len, reverse=True)
    named = "|".join(sorted(map(re.escape, names | set(_ALWAYS))))
    known = re.compile(
        rf"(?P<left1><)(?= ?/? ?(?:{named})(?![\w-])[^<>]{{0,200}}(?P<right1>>))"
        rf"|(?P<left2><)(?=(?: ?/ ?)?(?:{named})(?![\w-]))"
        rf"|(?P<left3><)(?= ?/? ?(?:{_TOKENS}) ?/? ?(?P<right3>>))"
        r"|(?P<left4><)(?= ?\|[^>]{1,100}?(?P<right4>>))"
        r"|(?P<left5><)(?=\|\w)"
        rf"|(?P<left6>\[)(?= ?/? ?(?:{_BRACKETED}) ?(?P<right6>\]))"
        r"|(?P<left7>\[)(?= ?\|[^\]]{1,100}?\| ?(?P<right7>\]))"
        r"|(?P<left8>[\[\]])(?=[!a-z]{0,4}~[!a-z~]{0,4}(?P<right8>[\[\]]))"
        r"|(?P<left9>[\[\]])(?=[<>](?P<right9>[\[\]]))"
        r"|(?P<left10><)(?= ?\[[^\]]{1,100}\] ?(?P<right10>>))"
        r"|(?P<maybe>[<\[])"
    )
    return known, re.compile("|".join(map(re.escape, tokens))) if tokens else None
