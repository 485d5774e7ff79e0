"""How English says the relations that claims are mostly about. Data only; what it does not know is compared by stems.

A *wording* says where the two ends of a relation stand: `H` is who has it (the person who was born), `V` what it leads
to (the place), `X` another one. `a|b` are alternatives, `=a` is the word itself and not its stem; small words between
are skipped. A *noun* needs no ends: "the mentor of H is V",
"V, mentor of H", "H has V as mentor", "H's mentor V" and the triple "H | mentor | V" are read alike.
"""

from typing import Final

from agent.checks.lexicon_words import LIFE, PLACES, WORKS
from agent.checks.sense import Sense

CONVERSE: Final = {"parent": "child", "father": "child", "mother": "child", "child": "parent"}
"""The relation with the same two ends the other way round: of "son", "parent"."""
SENSES: Final[dict[str, Sense]] = {sense.name: sense for sense in (*LIFE, *PLACES, *WORKS)}

SAME: Final = (
    "film movie picture feature", "novel book", "company firm business corporation enterprise",
    "city town municipality", "country nation state", "university college school",
    "begin start commence launch initiate", "big large great major", "person people", "song single track",
    "doctor physician", "long length", "tall high height", "wide width", "deep depth", "old age aged",
    "km kilometre kilometer kilometres kilometers", "m metre meter metres meters", "kg kilogram kilograms kilogramme",
    "film_maker filmmaker", "poet writer", "actor actress", "vast huge", "kill murder",
    "end finish conclude complete cease stop terminate", "get receive obtain acquire gain earn win",
    "name appoint call title", "known call name term refer dub nickname", "whole entire complete full",
    "main primary principal chief", "mainly primarily mostly chiefly", "child kid son daughter",
    "locate situate lie base", "build construct erect make", "buy purchase acquire", "help assist aid support",
    "attend go", "found establish create start form set", "create make develop design invent",
    "write author pen compose", "live reside dwell", "die death perish", "release publish issue",
    "show display exhibit depict", "use employ utilize apply", "need require", "let allow permit",
    "keep retain maintain hold", "join enter", "leave depart quit", "happen occur take", "defeat beat conquer",
    "fight battle war conflict", "capture seize take", "destroy demolish raze ruin", "think believe consider regard",
    "say state claim argue suggest", "show reveal prove demonstrate", "choose select pick elect",
    "increase grow rise", "decrease decline fall drop reduce", "fast quick rapid",
    "famous renowned celebrated well-known", "area region district zone", "home house residence",
    "job post position office", "several many numerous various", "about approximately around roughly nearly",
    "because due", "include contain comprise consist", "rule reign govern", "teach instruct", "study learn",
    "move relocate transfer", "replace succeed", "change alter modify convert", "group band team",
    "army troop force military", "work serve", "cost price worth", "road street highway", "ship vessel boat",
    "wife spouse husband marry", "mother parent father", "origin source", "cause reason",
    "result outcome consequence lead", "make cause", "sell sale", "reach arrive", "travel journey trip visit",
    "land territory", "border adjoin", "US U.S United American America", "important significant key",
    "popular common", "type kind form sort", "part portion section", "amount number quantity", "annual yearly",
    "rare uncommon", "prevent stop", "give provide offer grant award", "become turn", "find discover",
    "allegedly reputedly", "early beginning", "present current modern", "store shop", "car automobile vehicle",
    "speak talk", "language tongue", "money fund", "hold host", "play perform", "sport game",
)  # fmt: skip
"""Words that may stand for each other, where a claim's words are compared with a text's."""
KINDS: Final = frozenset(
    "film movie picture novel book company firm business corporation city town country nation university college school"
    " paper event song album person place year date settlement state work study festival prize list"
    " graduate member native people data set collection include born".split()
)
"""Words for what something is: a claim may add them where the passage takes them for granted."""

LIGHT: Final = frozenset(
    "name call know title term type kind form part number amount group member place area region become make take"
    " get give hold keep have use include consist contain occur happen appear come go see find say tell think"
    " believe describe consider refer mean locate situate lie base live stand be do work serve lead move turn bring"
    " put set run show feature people person man woman thing time year day month century period event main major"
    " first last new old large big small great important early late popular current original different general"
    " common certain state country city town world life home house team company organization film movie book novel"
    " song album approximately about around roughly nearly almost total average many several various".split()
)
"""Words that say little: a page may leave one of them out."""
