"""What is a control mark: by its shape, as tokenizers and chat templates spell their special tokens.

A mark is read in a skeleton (see `agent.sanitize.skeleton`). All patterns look at a bounded window, so that finding
every mark takes time in proportion to the text.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from agent.sanitize.skeleton import Skeleton, skeleton_of

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


def find_marks(skeleton: Skeleton, tags: frozenset[str]) -> Iterator[tuple[int, bool]]:
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
