"""How a page says a relation of its own subject, as patterns around the value. They ask less of a sentence than facts do.

A line is drawn as a row of words in which `@` is the value, `S` the subject, `N` another name, `D` a date and `#` a
number: "S ( born D ) is an N actor from @". A pattern is what stands before the value, or what comes after it.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from agent.checks.mentions import Mention, same
from agent.checks.page import Line, Page
from agent.checks.places import demonyms
from agent.checks.words import FUNCTION

_LIST: Final = (
    r"(?:(?:the|a|an|his|her|its|their|[a-z]+) ){0,4}"
    r"(?:(?:N|#)(?: 's)? (?:\( [^()]* \) )?(?:(?:, and|, |and|&|or) ?)?"
    r"(?:(?!by |to |[a-z]+ed |written |born |sung )[a-z]+ ){0,3})*"
)
"""What may stand between a word that leads to names and one of them: other names of the same list, and what they are."""
_MORE: Final = r"(?: (?:,|and|co|by|[a-z]+(?:ed|ten|en|ung)))*(?: (?:in|on|at|for) (?:D|N|#|the|[a-z]+))*"
"""Other verbs beside one, and when and where: "directed, produced and written in 1943 by"."""


def _by(verbs: str, *, lead: str = "by") -> str:
    return rf"\b(?:{verbs}){_MORE} (?:{lead}) {_LIST}"


_SMALL: Final = (
    r"(?:the|city|town|village|state|province|county|district|region|municipality|island|borough|parish|part|suburbs?"
    r"|capital|neighbou?rhood|area|coast|north\w*|south\w*|east\w*|west\w*|central|upper|lower|present|day|modern|now|then"
    r"|of|in|near|&|and)"
)
_IN: Final = rf"(?:in|at|near|within|throughout) (?:{_SMALL} )*(?:(?:a|an|[a-z]+) )?(?:N (?:{_SMALL} |, )+)*"
"""Where something is: "in Mediaș, Transylvania", "in the state of Montana"."""
_NO_CLAUSE: Final = r" (?:(?!born |buried |lived |where |who |which |and )[^.;() ]+ )*?"
_LIFE: Final = r"(?:D|#|,|in|on|c|ca|circa|about|the)"
_KIN: Final = r"(?:of|to|with|,) "

BEFORE: Final[Mapping[str, tuple[str, ...]]] = {
    "director": (_by("directed|helmed|film|movie|documentary|comedy|drama|made"), rf"\bdirectors? (?:was )?{_LIST}"),
    "producer": (_by("produced"), rf"\bproducers? {_LIST}"),
    "screenwriter": (_by("written|scripted|penned|screenplay|script"),),
    "author": (_by("written|authored|penned|novel|book|poem|play|story|work|essay|treatise"),),
    "composer": (_by("composed|scored|music|score|soundtrack|song|lyrics"), rf"\bcomposers? {_LIST}"),
    "performer": (
        _by("performed|sung|recorded|released|song|single|album|track|ep|covered|voiced|played"),
        rf"\b(?:song|single|album|track|ep|record) (?:from|of) {_LIST}", rf"\b(?:band|singer|rapper|group|duo|artist) {_LIST}",
    ),
    "publisher": (_by("published|issued|released", lead="by|through"), rf"\bpublisher {_LIST}"),
    "developer": (_by("developed|created|designed|made|built|games?|applications?|apps?|software|system|engine"), rf"\bdevelopers? {_LIST}"),
    "creator": (_by("created|developed|devised|invented|conceived|drawn"), rf"\bcreators? {_LIST}"),
    "founder": (
        _by("founded|established|created|started|formed|begun|set up|launched|organized|incorporated"), rf"\bfounders? {_LIST}"
    ),
    "founded": (
        r"\b(?:founded|established|created|formed|incorporated|organized|founding|formation|began broadcasting)"
        r"(?: (?:and|or) [a-z]+| as (?:[a-z]+ )*N?| by (?:N(?: , | and )?)+| [a-z]+ly| (?:in|at) N)* (?:in|on|around|,)"
        r" (?:[a-z]+ )?", r"\bexisted since ",
    ),
    "label": (
        _by("released|issued|signed|recorded|distributed|out|label|contract|deal", lead="by|on|through|via|under|to|with|for"),
        rf"\b(?:label|labels) {_LIST}",
    ),
    "network": (_by("aired|broadcast|premiered|shown|televised|series|program|ran|debuted|channel", lead="on|by|for"),),
    "maker": (_by("manufactured|made|built|produced|constructed|marketed|sold"),),
    "operator": (_by("operated|run|managed|flown|owned|maintained|used"),),
    "owner": (_by("owned|acquired|bought|purchased|held"), rf"\b(?:subsidiary|division|part|unit|brand) of {_LIST}"),
    "lead": (
        rf"\b(?:starring|stars|stared|starred|featuring|features|cast(?: of| includes)?) (?:[^.;]* )?",
        _by("played|portrayed|performed|voiced"),
    ),
    "birth": (
        rf"\bborn (?:[a-z]+ |N )?(?:{_LIFE} )*(?:{_IN})?(?:{_LIFE} )*",
        rf"^(?:\S+ ){{1,8}}\( (?:(?:(?!died )[^()–—-])*[,;:] )?(?:né|née|born|b)? ?(?:{_LIFE} )*(?:{_IN}|(?:N , )+)?",
        r"\bnative of (?:the )?(?:N , )*",
    ),
    "death": (
        rf"\b(?:died|killed|murdered|executed|assassinated|perished|drowned|death){_NO_CLAUSE}(?:{_LIFE} )*(?:{_IN})?(?:{_LIFE} )*",
        rf"^(?:\S+ ){{1,8}}\( [^()]*[–—-] (?:died |d )?(?:{_LIFE} )*(?:{_IN}|(?:N , )+)?",
    ),
    "death_cause": (rf"\b(?:died|dies|death|succumbed|killed)(?:{_NO_CLAUSE}| )(?:of|from|to|by|in|after|due to) (?:a |an |the |his |her |[a-z]+ )*",),
    "spouse": (
        rf"\b(?:married|wife|husband|spouse|wed|widow|marriage)(?: (?:of|to|with|is|was|,))? {_LIST}",
    ),
    "father": (
        rf"\b(?:son|daughter|child|children|heir)s?(?: (?:of|to)) {_LIST}", rf"\bfathe?r(?: (?:,|is|was|named))? {_LIST}", rf"\bborn to {_LIST}",
        rf"\b(?:son|daughter|child) (?:of|to) [^.;]*\band {_LIST}",
    ),
    "mother": (
        rf"\bmother(?: (?:,|is|was|named))? {_LIST}", rf"\b(?:son|daughter|child|children) (?:of|to) (?:[^.;]* (?:and|by|with) )?{_LIST}", rf"\bborn to {_LIST}",
    ),
    "sibling": (rf"\b(?:brother|sister|sibling|siblings|brothers|sisters|twin)(?: (?:of|,|is|was|to|named|were))? {_LIST}",),
    "child": (rf"\b(?:father|mother|parent|parents|children|sons?|daughters?)(?: (?:of|,|is|was|to|named|were))? {_LIST}",),
    "studied": (
        rf"\b(?:studied|educated|attended|graduated|graduate|graduating|degree|degrees|alumnus|enrolled|student|school"
        rf"|university|college|education|doctorate|phd|training|trained|studies|studying|bachelor|master|diploma)\b[^.;]*? "
        rf"(?:(?:at|in|from|of|to|the|and|,) ){{0,3}}",
    ),
    "employer": (rf"\b(?:professor|worked|works|working|taught|teaches|employed|served|staff|joined|lecturer)\b[^.;]*? (?:at|for|of|by|in|with) {_LIST}",),
    "award": (rf"\b(?:awarded|received|receiving|won|winning|winner|recipient|recognized|honou?red|earned|laureate|prizes?|medal|nominated)\b[^.;]* ",),
    "team": (rf"\b(?:played|plays|playing|signed|joined|joining|career|footballer|midfielder|defender|forward|goalkeeper|striker|seasons?|drafted|captain|transferred|loan|debut)\b[^.;]* (?:for|with|to|by|at|of|in) {_LIST}", r"\bjoin(?:ed|ing)? "),
    "party": (rf"\b(?:member|politician|candidate|leader|represent(?:ed|ing|ative)|elected|party|joined|ran|senator|mp)\b[^.;]* ", r"\b(?:a|an|the) "),
    "branch": (rf"\b(?:served|serving|officer|joined|enlisted|commissioned|soldier|general|admiral|colonel|commander|pilot|career|rank|member|captain|major)\b[^.;]* (?:in|of|with|into|the) (?:the )?", r"\b(?:a|an|the) (?:[a-z]+ ){0,2}"),
    "headquarters": (rf"\b(?:headquartered|headquarters|based|located|offices?|seat)(?: (?:is|are|were|was))?(?: located)? {_IN}", rf"\b(?:company|firm|organi[sz]ation|network|agency|bank|label) {_IN}"),
    "country": (rf"\b{_IN}",),
    "location": (rf"\b{_IN}",),
    "host": (rf"\b(?:held|hosted|place|contested|played|staged)\b[^.;]* {_IN}",),
    "residence": (rf"\b(?:lives|lived|living|resides|resided|residing|home|settled|moved|based)\b[^.;]* {_IN}",),
    "capital": (r"\bcapital(?: and [a-z]+ [a-z]+)?(?: (?:city|town))?(?: of S)?(?: (?:is|was|,|at))? ",),
    "released": (
        r"\b(?:released|premiered|premiere|release|out|debuted|screened|aired|distributed|issued)\b(?: (?:by|in|on|at|,|and|the|for|as|[a-z]+|N|\(|\)))*? (?:(?:in|on|,) )?",
        r"\b(?:is|was) (?:a|an|the)(?: [a-z]+)? ", r"\( (?:[a-z]+ )?", r"\bpublished (?:[a-z]+ )?(?:by N )?(?:in|on) ",
    ),
    "published": (
        r"\b(?:published|released|issued|publication|print)\b(?: (?:by|in|on|at|,|and|the|for|as|[a-z]+|N))*? (?:in|on) ",
        r"\b(?:is|was) (?:a|an|the)(?: [a-z]+)? ", r"\( (?:[a-z]+ )?",
    ),
    "before": (rf"\b(?:followed|succeeded)(?: up)?(?: [a-z]+)* by {_LIST}", rf"\b(?:sequel|follow up|successor|next album|next single)\b(?: (?:,|is|was|titled|called|to S))* {_LIST}"),
    "after": (rf"\b(?:follows|following|succeeded|sequel to|follow up to|after|replacing|successor to) {_LIST}",),
    "mouth": (rf"\b(?:flows|empties|drains|runs|joins|tributary|feeds|discharges)\b[^.;]*? (?:into|of|to|in|with)? ?(?:the )?",),
    "language": (rf"\b(?:languages?(?: of S)?(?: (?:is|are|was|were|:))?|spoken(?: language)?) {_LIST}", r"\bS is (?:a|an) "),
    "religion": (rf"\b(?:religion|faith|converted to|member of|practices|adherent|follower)\b[^.;]* ", r"\b(?:a|an|the|is) "),
}  # fmt: skip
"""Sense → what stands right before the value."""
AFTER: Final[Mapping[str, tuple[str, ...]]] = {
    "director": (r" 's (?:[a-z]+ ){0,4}(?:film|movie|comedy|drama)", r" (?:directed|directs|helmed)\b"),
    "producer": (r" produced\b",), "screenwriter": (r" (?:wrote|scripted)\b",), "author": (r" (?:wrote|'s (?:[a-z]+ ){0,3}(?:novel|book|poem|play))\b",),
    "performer": (r" 's (?:[a-z]+ ){0,4}(?:song|single|album|ep|debut|track)\b", r" (?:recorded|released|performed|covered)\b"),
    "composer": (r" (?:composed|wrote|scored)\b",), "founder": (r" (?:and [^.;]* )?(?:founded|established|created|started|formed)\b",),
    "publisher": (r" published\b",), "developer": (r" (?:developed|created)\b",), "creator": (r" (?:created|'s)",),
    "label": (r" (?:records |recordings )?(?:label|released|issued)\b",), "maker": (r" (?:built|made|manufactured|produced)\b",),
    "owner": (r" (?:owns|bought|acquired|purchased)\b",), "operator": (r" (?:operates|runs|manages)\b",), "network": (r" (?:aired|broadcast|series|show|sitcom|drama|program|television)\b",),
    "lead": (r" (?:\( [^()]* \) )?(?:as|stars?|starred|plays?|played|portrays|in the (?:lead|title|main))\b",),
    "spouse": (r" (?:married|and S (?:married|were))\b",), "language": (r" (?:language|is (?:the|an) official language)\b",),
    "capital": (r" (?:, (?:the|its) capital|is the capital)\b",), "award": (r" (?:winner|recipient|winning|laureate|for)\b",),
    "party": (r" (?:member|party|politician|candidate|mp|senator)\b",), "branch": (r" (?:officer|soldier|general|colonel|admiral|captain|commander|pilot|submarine)\b",),
    "team": (r" (?:player|midfielder|defender|goalkeeper|striker|drafted|signed)\b",), "citizenship": (r" ",),
    "before": (r" (?:followed|succeeded)\b",), "religion": (r" ",),
}  # fmt: skip
"""Sense → what comes right after the value."""


@cache
def _patterns(sense: str) -> tuple[tuple[re.Pattern[str], ...], tuple[re.Pattern[str], ...]]:
    before = tuple(re.compile(f"(?:{text})$") for text in BEFORE.get(sense, ()))
    return before, tuple(re.compile(text) for text in AFTER.get(sense, ()))


def told_by(sense: str, holder: Mention, value: Mention, page: Page) -> Iterator[int]:
    """The lines that say of the page's subject, or of a holder whom they name, that it has this value."""
    own = _is_topic(holder, page)
    if value.kind == "name" and _is_topic(value, page):  # another's child is no father of whom the page is about
        return
    for at, line in enumerate(page.lines):
        if line.start < 0:
            continue
        for place in _places(value, line, page, sense):
            row, here = _row(line, page, holder, place)
            if _about(row, own, line, page, holder) and _fits(sense, row, here):
                yield at


def _is_topic(holder: Mention, page: Page) -> bool:
    return any(page.knows(holder, m) for m in page.topics)


def _about(row: list[str], own: bool, line: Line, page: Page, holder: Mention) -> bool:
    """Whether a line speaks of the holder: it names it, or is about the page's subject and names nobody before."""
    if "S" in row:
        return True
    return own


def _fits(sense: str, row: list[str], here: int) -> bool:
    if sense == "citizenship":
        return _nationality(row, here)
    if sense == "birth" and row[here + 1 : here + 2] == [")"] and not {"born", "b"} & set(row):
        return False  # "(2010)" is no birthday
    before, after = " ".join(row[:here]) + " ", " " + " ".join(row[here + 1 :]) + " "
    lefts, rights = _patterns(sense)
    return any(p.search(before) for p in lefts) or any(p.match(after) for p in rights)


def _nationality(row: list[str], here: int) -> bool:
    """ "was an @ actor", "a German - born @ actor", "citizen of @"."""
    before = " ".join(row[max(0, here - 6) : here])
    if re.search(r"\b(?:citizen|national|citizenship|nationality)(?: [a-z]+)*$", before):
        return True
    return bool(
        re.search(r"(?:\b(?:is|was|became|were|are)|,) (?:a|an|the|one)?(?: (?:[a-z]+|N|and|born|,))*$", before)
    ) and here + 1 < len(row)


def _places(value: Mention, line: Line, page: Page, sense: str) -> Iterator[tuple[int, int]]:
    """Where a line names the value: as a name, a date, a number, or in its words."""
    found = False
    for m in line.reading.mentions:
        hit = page.knows(value, m) if value.kind == m.kind == "name" else same(value, m)
        if hit:
            found = True
            yield m.first, m.last
    alike = demonyms(" ".join(value.words)) if sense in ("citizenship", "country", "language", "religion") else ()
    if (found and not alike) or not value.words:
        return
    texts = [t.text for t in line.reading.tokens]
    many = len(value.words)
    for at in range(len(texts) - many + 1):
        if tuple(texts[at : at + many]) == value.words:
            yield at, at + many - 1
            found = True
    for other in alike:
        words = other.split()
        for at in range(len(texts) - len(words) + 1):
            if texts[at : at + len(words)] == words:
                yield at, at + len(words) - 1


def _row(line: Line, page: Page, holder: Mention, value: tuple[int, int]) -> tuple[list[str], int]:
    """The words of a line with signs for its mentions, and the place of the value among them."""
    row: list[str] = []
    here = 0
    at = {m.first: m for m in line.reading.mentions}
    place = 0
    tokens = line.reading.tokens
    while place < len(tokens):
        if place == value[0]:
            here = len(row)
            row.append("@")
            place = value[1] + 1
            continue
        mention = at.get(place)
        if mention is not None and not (mention.first <= value[0] <= mention.last):
            holds = mention.kind == "name" and page.knows(holder, mention)
            row.append("S" if holds else {"name": "N", "date": "D", "number": "#"}[mention.kind])
            place = mention.last + 1
            continue
        row.append(tokens[place].text)
        place += 1
    return row, here
