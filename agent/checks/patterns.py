"""How a page says a relation of its own subject: patterns around the value. They need less of a sentence than facts do.

A line is drawn as a row of words in which `@` is the value, `S` the subject, `N` another name, `D` a date and `#` a
number: "S ( born D ) is an N actor from @". A pattern is what stands before the value, or what comes after it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from agent.checks.mentions import Mention, same
from agent.checks.page import PageLine, ReadPage

_PAIRS: Final = """
america: american | united states: american | u.s: american | usa: american | united kingdom: british
britain: british | uk: british | england: english | scotland: scottish | wales: welsh | ireland: irish
france: french | germany: german | spain: spanish | italy: italian | portugal: portuguese | netherlands: dutch
belgium: belgian | switzerland: swiss | austria: austrian | denmark: danish | sweden: swedish
norway: norwegian | finland: finnish | iceland: icelandic | poland: polish | russia: russian
ukraine: ukrainian | hungary: hungarian | czech republic: czech | slovakia: slovak | romania: romanian
bulgaria: bulgarian | greece: greek | turkey: turkish | serbia: serbian | croatia: croatian
slovenia: slovenian | bosnia: bosnian | albania: albanian | estonia: estonian | latvia: latvian
lithuania: lithuanian | georgia: georgian | armenia: armenian | azerbaijan: azerbaijani | israel: israeli
lebanon: lebanese | syria: syrian | iraq: iraqi | iran: iranian | saudi arabia: saudi | egypt: egyptian
morocco: moroccan | algeria: algerian | tunisia: tunisian | libya: libyan | sudan: sudanese
ethiopia: ethiopian | somalia: somali | kenya: kenyan | uganda: ugandan | tanzania: tanzanian
nigeria: nigerian | ghana: ghanaian | senegal: senegalese | benin: beninese | cameroon: cameroonian
congo: congolese | angola: angolan | zambia: zambian | zimbabwe: zimbabwean | south africa: south african
namibia: namibian | madagascar: malagasy | india: indian | pakistan: pakistani | bangladesh: bangladeshi
sri lanka: sri lankan | nepal: nepalese | china: chinese | taiwan: taiwanese | japan: japanese | korea: korean
south korea: south korean | north korea: north korean | vietnam: vietnamese | thailand: thai
cambodia: cambodian | laos: laotian | malaysia: malaysian | singapore: singaporean | indonesia: indonesian
philippines: filipino | philippines: philippine | mongolia: mongolian | afghanistan: afghan | kazakhstan: kazakh
uzbekistan: uzbek | australia: australian | new zealand: new zealand | canada: canadian | mexico: mexican
cuba: cuban | jamaica: jamaican | haiti: haitian | dominican republic: dominican | puerto rico: puerto rican
guatemala: guatemalan | honduras: honduran | nicaragua: nicaraguan | costa rica: costa rican
panama: panamanian | colombia: colombian | venezuela: venezuelan | ecuador: ecuadorian | peru: peruvian
bolivia: bolivian | chile: chilean | argentina: argentine | argentina: argentinian | uruguay: uruguayan
paraguay: paraguayan | brazil: brazilian | soviet union: soviet | europe: european | asia: asian
africa: african
"""

_LIST: Final = (
    r"(?:(?:the|a|an|his|her|its|their|[a-z]+) ){0,4}"
    r"(?:(?:N|#)(?: 's)? (?:\( [^()]* \) )?(?:(?:, and|, |and|&|or) ?)?"
    r"(?:(?!by |to |[a-z]+ed |written |born |sung )[a-z]+ ){0,3})*"
)
"""What may stand between a word that leads to names and one of them: other names of the list, and what they are."""
_MORE: Final = r"(?: (?:,|and|co|by|[a-z]+(?:ed|ten|en|ung)))*(?: (?:in|on|at|for) (?:D|N|#|the|[a-z]+))*"
"""Other verbs beside one, and when and where: "directed, produced and written in 1943 by"."""
_SMALL: Final = (
    r"(?:the|city|town|village|state|province|county|district|region|municipality|island|borough|parish|part|suburbs?"
    r"|capital|neighbou?rhood|area|coast|north\w*|south\w*|east\w*|west\w*|central|upper|lower|present|day|modern|now|then"
    r"|of|in|near|&|and)"
)
_IN: Final = rf"(?:in|at|near|within|throughout) (?:{_SMALL} )*(?:(?:a|an|[a-z]+) )?(?:N (?:{_SMALL} |, )+)*"
"""Where something is: "in Mediaș, Transylvania", "in the state of Montana"."""
_CLAUSE: Final = r" (?:(?!born |buried |lived |where |who |which |and )[^.;() ]+ )*?"
"""Words of one clause."""
_WHEN: Final = r"(?:(?:D|#|,|in|on|c|ca|circa|about|the) )*"
_OPENING: Final = r"^(?:\S+ ){1,8}\( "
"""The bracket behind the first name of a sentence."""


def _by(verbs: str, lead: str = "by") -> str:
    """Give the pattern of "directed by @", "released in 1990 on @", "starring A, B and @"."""
    return rf"\b(?:{verbs}){_MORE} (?:{lead}) {_LIST}"


def _noun(nouns: str, lead: str = ",|is|was|named|were") -> str:
    """Give the pattern of "director @", "his wife was the singer @"."""
    return rf"\b(?:{nouns})(?: (?:{lead}))? {_LIST}"


def _after(words: str, lead: str) -> str:
    """Give the pattern of one of some words and, further on in the sentence, what leads to the value."""
    return rf"\b(?:{words})\b[^.;]*? (?:{lead})"


BEFORE: Final[Mapping[str, tuple[str, ...]]] = {
    "director": (_by("directed|helmed|film|movie|documentary|comedy|drama|made"), _noun("directors?")),
    "producer": (_by("produced"), _noun("producers?")),
    "screenwriter": (_by("written|scripted|penned|screenplay|script"),),
    "author": (_by("written|authored|penned|novel|book|poem|play|story|work|essay|treatise"),),
    "composer": (_by("composed|scored|music|score|soundtrack|song|lyrics"), _noun("composers?")),
    "performer": (
        _by("performed|sung|recorded|released|song|single|album|track|ep|covered|voiced|played"),
        _noun("song|single|album|track|ep|record", "from|of"),
        _noun("band|singer|rapper|group|duo|artist"),
    ),
    "publisher": (_by("published|issued|released", "by|through"), _noun("publisher")),
    "developer": (
        _by("developed|created|designed|made|built|games?|applications?|apps?|software|system|engine"),
        _noun("developers?"),
    ),
    "creator": (_by("created|developed|devised|invented|conceived|drawn"), _noun("creators?")),
    "founder": (
        _by("founded|established|created|started|formed|begun|set up|launched|organized|incorporated"),
        _noun("founders?"),
    ),
    "founded": (
        r"\b(?:founded|established|created|formed|incorporated|organized|founding|formation|began broadcasting)"
        r"(?: (?:and|or) [a-z]+| as (?:[a-z]+ )*N?| by (?:N(?: [a-z]+){0,2}(?: , | and )?)+| [a-z]+ly| (?:in|at) N)*"
        r" (?:in|on|around|,)"
        r" (?:[a-z]+ )?",
        r"\bexisted since ",
    ),
    "label": (
        _by("released|issued|signed|recorded|distributed|out|label|contract", "by|on|through|via|under|to|with|for"),
        _noun("labels?"),
    ),
    "network": (_by("aired|broadcast|premiered|shown|televised|series|program|ran|debuted|channel", "on|by|for"),),
    "maker": (_by("manufactured|made|built|produced|constructed|marketed|sold"),),
    "operator": (_by("operated|run|managed|flown|owned|maintained|used"),),
    "owner": (_by("owned|acquired|bought|purchased|held"), _noun("subsidiary|division|part|unit|brand", "of")),
    "lead": (
        r"\b(?:starring|stars|stared|starred|featuring|features|cast(?: of| includes)?) (?:[^.;]* )?",
        _by("played|portrayed|performed|voiced"),
    ),
    "birth": (
        rf"\bborn (?:[a-z]+ |N )?{_WHEN}(?:{_IN})?{_WHEN}",
        rf"{_OPENING}(?:(?:(?!died )[^()–—-])*[,;:] )?(?:né|née|born|b)? ?{_WHEN}(?:{_IN}|(?:N , )+)?",
        r"\bnative of (?:the )?(?:N , )*",
    ),
    "death": (
        rf"\b(?:died|killed|murdered|executed|assassinated|perished|drowned|death){_CLAUSE}{_WHEN}(?:{_IN})?{_WHEN}",
        rf"{_OPENING}[^()]*[–—-] (?:died |d )?{_WHEN}(?:{_IN}|(?:N , )+)?",
    ),
    "death_cause": (
        rf"\b(?:died|dies|death|succumbed|killed)(?:{_CLAUSE}| )(?:of|from|to|by|in|after|due to) (?:[a-z]+ )*",
    ),
    "spouse": (_noun("married|wife|husband|spouse|wed|widow|marriage", "of|to|with|is|was|,"),),
    "father": (
        _noun("son|daughter|child|children|heirs?", "of|to"), _noun("father"), _noun("born", "to"),
        rf"\b(?:son|daughter|child) (?:of|to) [^.;]*\band {_LIST}",
    ),
    "mother": (
        _noun("mother"), _noun("born", "to"),
        rf"\b(?:son|daughter|child|children) (?:of|to) (?:[^.;]* (?:and|by|with) )?{_LIST}",
    ),
    "sibling": (_noun("brothers?|sisters?|siblings?|twin", "of|,|is|was|to|named|were"),),
    "child": (_noun("father|mother|parents?|children|sons?|daughters?", "of|,|is|was|to|named|were"),),
    "studied": (
        _after(
            "studied|educated|attended|graduated|graduate|graduating|degrees?|alumnus|enrolled|student|school|university"
            "|college|education|doctorate|phd|training|trained|studies|studying|bachelor|master|diploma",
            "(?:(?:at|in|from|of|to|the|and|,) ){1,3}",
        ),
        r"\battended (?:the )?",
    ),
    "employer": (
        _after("professor|work(?:ed|s|ing)|taught|teaches|employed|served|staff|joined|lecturer", "at|for|of|by|in")
        + f" {_LIST}",
    ),
    "award": (
        _after("awarded|receiv(?:ed|ing)|won|winning|winner|recipient|recognized|honou?red|earned|laureate|prizes?", "")
        + "(?:[^.;]* )?",
        _after("medal|nominated", ""),
    ),
    "team": (
        _after(
            "play(?:ed|s|ing)|signed|join(?:ed|ing)|career|footballer|midfielder|defender|forward|goalkeeper|striker"
            "|seasons?|drafted|captain|transferred|loan|debut", "for|with|to|by|at|of|in",
        ) + f" {_LIST}",
        r"\bjoin(?:ed|ing) ",
    ),
    "party": (
        r"\b(?:member|politician|candidate|leader|represent(?:ed|ing)|elected|party|joined|ran|senator|mp)\b[^.;]* ",
        r"\b(?:a|an|the) ",
    ),
    "branch": (
        _after(
            "serv(?:ed|ing)|officer|joined|enlisted|commissioned|soldier|general|admiral|colonel|commander|pilot|career"
            "|rank|member|captain|major", "in|of|with|into|the",
        ) + " (?:the )?",
        r"\b(?:a|an|the) (?:[a-z]+ ){0,2}",
    ),
    "headquarters": (
        rf"\b(?:headquartered|headquarters|based|located|offices?|seat)(?: (?:is|are|were|was))?(?: located)? {_IN}",
        rf"\b(?:company|firm|organi[sz]ation|network|agency|bank|label) {_IN}",
    ),
    "country": (rf"\b{_IN}",),
    "location": (rf"\b{_IN}",),
    "host": (_after("held|hosted|place|contested|played|staged", _IN),),
    "residence": (_after("live[sd]|living|reside[sd]|residing|home|settled|moved|based", _IN),),
    "capital": (r"\bcapital(?: and [a-z]+ [a-z]+)?(?: (?:city|town))?(?: of S)?(?: (?:is|was|,|at))? ",),
    "released": (
        r"\b(?:released|premiered|premiere|release|out|debuted|screened|aired|distributed|issued)\b"
        r"(?: (?:by|in|on|at|,|and|the|for|as|[a-z]+|N|\(|\)))*? (?:(?:in|on|,) )?",
        r"\b(?:is|was) (?:a|an|the)(?: [a-z]+)? ", r"\( (?:[a-z]+ )?", r"\bpublished (?:[a-z]+ )?(?:by N )?(?:in|on) ",
    ),
    "published": (
        r"\b(?:published|released|issued|publication|print)\b(?: (?:,|[a-z]+|N))*? (?:in|on) ",
        r"\b(?:is|was) (?:a|an|the)(?: [a-z]+)? ", r"\( (?:[a-z]+ )?",
    ),
    "before": (
        rf"\b(?:followed|succeeded)(?: up)?(?: [a-z]+)* by {_LIST}",
        _noun("sequel|follow up|successor|next album|next single", ",|is|was|titled|called|to S"),
    ),
    "after": (_noun("follows|following|succeeded|after|replacing"), _noun("sequel|follow up|successor", "to")),
    "mouth": (
        r"\b(?:flows|empties|drains|runs|joins|tributary|feeds|discharges)\b[^.;]*? (?:into|of|to|in|with)? ?(?:the )?",
    ),
    "language": (rf"\b(?:languages?(?: of S)?(?: (?:is|are|was|were|:))?|spoken) {_LIST}", r"\bS is an? "),
    "religion": (
        r"\b(?:religion|faith|converted to|member of|practices|adherent|follower)\b[^.;]* ", r"\b(?:a|an|the|is) ",
    ),
}  # fmt: skip
"""Sense → what stands right before the value."""
AFTER: Final[Mapping[str, str]] = {
    "director": r" (?:'s (?:[a-z]+ ){0,4}(?:film|movie|comedy|drama)|directed|directs|helmed)\b",
    "producer": r" produced\b",
    "screenwriter": r" (?:wrote|scripted)\b",
    "author": r" (?:wrote|'s (?:[a-z]+ ){0,3}(?:novel|book|poem|play))\b",
    "performer": r" (?:'s (?:[a-z]+ ){0,4}(?:song|single|album|ep|debut|track)|recorded|released|performed|covered)\b",
    "composer": r" (?:composed|wrote|scored)\b",
    "founder": r" (?:and [^.;]* )?(?:founded|established|created|started|formed)\b",
    "publisher": r" published\b",
    "developer": r" (?:developed|created)\b",
    "creator": r" (?:created|'s)",
    "label": r" (?:records |recordings )?(?:label|released|issued)\b",
    "maker": r" (?:built|made|manufactured|produced)\b",
    "owner": r" (?:owns|bought|acquired|purchased)\b",
    "operator": r" (?:operates|runs|manages)\b",
    "network": r" (?:aired|broadcast|series|show|sitcom|drama|program|television)\b",
    "lead": r" (?:\( [^()]* \) )?(?:as|stars?|starred|plays?|played|portrays|in the (?:lead|title|main))\b",
    "spouse": r" (?:married|and S (?:married|were))\b",
    "language": r" (?:language|is (?:the|an) official language)\b",
    "capital": r" (?:, (?:the|its) capital|is the capital)\b",
    "award": r" (?:winner|recipient|winning|laureate|for)\b",
    "party": r" (?:member|party|politician|candidate|mp|senator)\b",
    "branch": r" (?:officer|soldier|general|colonel|admiral|captain|commander|pilot|submarine)\b",
    "team": r" (?:player|midfielder|defender|goalkeeper|striker|drafted|signed)\b",
    "before": r" (?:followed|succeeded)\b",
    "religion": r" ",
}
"""Sense → what comes right after the value."""


_WHERE: Final = frozenset(("country", "location"))


@cache
def _patterns(sense: str) -> tuple[tuple[re.Pattern[str], ...], re.Pattern[str] | None]:
    before = tuple(re.compile(f"(?:{text})$") for text in BEFORE.get(sense, ()))
    return before, re.compile(AFTER[sense]) if sense in AFTER else None


def stated_by(sense: str, holder: Mention, value: Mention, page: ReadPage) -> Iterator[int]:
    """The lines that say of the page's subject, or of a holder whom they name, that it has this value."""
    own = _is_topic(holder, page)
    # Another's child is no father of whom the page is about; but "Baure, Nigeria" has its country in its title.
    if value.kind == "name" and sense not in _WHERE and _is_topic(value, page):
        return
    for at, line in enumerate(page.lines):
        if line.start < 0:
            continue
        for place in _places(value, line, page, sense):
            row, here = _row(line, page, holder, place)
            if (own or "S" in row) and _fits(sense, row, here):
                yield at


def _is_topic(holder: Mention, page: ReadPage) -> bool:
    return any(page.knows(holder, m) for m in page.topics)


def _fits(sense: str, row: Sequence[str], here: int) -> bool:
    if sense == "citizenship":
        return _nationality(row, here)
    if sense == "birth" and row[here + 1 : here + 2] == [")"] and not {"born", "b"} & set(row):
        return False  # "(2010)" is no birthday
    before, after = " ".join(row[:here]) + " ", " " + " ".join(row[here + 1 :]) + " "
    lefts, right = _patterns(sense)
    return any(p.search(before) for p in lefts) or (right is not None and right.match(after) is not None)


_CITIZEN: Final = re.compile(r"\b(?:citizen|national|citizenship|nationality)(?: [a-z]+)*$")
_WHAT: Final = re.compile(r"(?:\b(?:is|was|became|were|are)|,) (?:a|an|the|one)?(?: (?:[a-z]+|N|D|#|and|born|,))*$")


def _nationality(row: Sequence[str], here: int) -> bool:
    """Whether the value stands as in "was an @ actor", "a German - born @ actor", "citizen of @"."""
    before = " ".join(row[max(0, here - 6) : here])
    return bool(_CITIZEN.search(before)) or (bool(_WHAT.search(before)) and here + 1 < len(row))


def _places(value: Mention, line: PageLine, page: ReadPage, sense: str) -> Iterator[tuple[int, int]]:
    """Where a line names the value: as a name, a date, a number, or in its words."""
    named = [
        m for m in line.reading.mentions
        if (page.knows(value, m) if value.kind == m.kind == "name" else same(value, m))
    ]  # fmt: skip
    yield from ((m.first, m.last) for m in named)
    texts = [token.text for token in line.reading.tokens]
    if not named and value.words:
        yield from _runs(value.words, texts)
    if sense in ("citizenship", "country", "language", "religion"):
        for other in sorted(demonyms(" ".join(value.words))):
            yield from _runs(tuple(other.split()), texts)


def _runs(words: tuple[str, ...], texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    for at in range(len(texts) - len(words) + 1):
        if tuple(texts[at : at + len(words)]) == words:
            yield at, at + len(words) - 1


def _row(line: PageLine, page: ReadPage, holder: Mention, value: tuple[int, int]) -> tuple[list[str], int]:
    """The words of a line with signs for its mentions, and the place of the value among them."""
    row: list[str] = []
    here = place = 0
    starts = {m.first: m for m in line.reading.mentions}
    tokens = line.reading.tokens
    while place < len(tokens):
        mention = starts.get(place)
        if place == value[0]:
            here = len(row)
            row.append("@")
            place = value[1] + 1
        elif mention is not None and not mention.first <= value[0] <= mention.last:
            holds = mention.kind == "name" and page.knows(holder, mention)
            row.append("S" if holds else {"name": "N", "date": "D", "number": "#"}[mention.kind])
            place = mention.last + 1
        else:
            row.append(tokens[place].text)
            place += 1
    return row, here


@cache
def _table() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for pair in _PAIRS.replace("\n", "|").split("|"):
        if ":" in pair:
            country, people = (part.strip() for part in pair.split(":"))
            table.setdefault(country, set()).add(people)
            table.setdefault(people, set()).add(country)
    return {name: frozenset(others) for name, others in table.items()}


def demonyms(name: str) -> frozenset[str]:
    """What a country's people are called, or whose people are called so; folded."""
    return _table().get(name.removeprefix("the "), frozenset())
