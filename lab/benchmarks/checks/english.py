"""English by rules, for claims about real pages: a question and its answer as a statement; a statement reworded."""

import random
import re
from collections.abc import Iterator, Mapping
from typing import Final

_IRREGULAR: Final = """
become became|begin began|break broke|bring brought|build built|buy bought|catch caught|choose chose|come came|
draw drew|drive drove|fall fell|fight fought|find found|flee fled|fly flew|get got|give gave|go went|grow grew|have had|
hold held|keep kept|lead led|leave left|lose lost|make made|mean meant|meet met|pay paid|rise rose|run ran|see saw|
sell sold|send sent|set set|shoot shot|sign signed|sing sang|speak spoke|spend spent|stand stood|stop stopped|take took|
teach taught|tell told|think thought|win won|write wrote|wear wore|hit hit|sink sank|study studied|marry married|
die died|occur occurred|refer referred|permit permitted|ban banned|plan planned|say said
"""
_REGULAR: Final = (
    "move join publish release open close receive live play start end serve graduate attend create establish"
    " declare discover invent launch record perform produce direct develop appoint elect defeat attack conquer"
    " invade capture kill arrive return visit travel settle retire resign introduce adopt pass occupy control acquire"
    " purchase merge change call consider describe use own earn award host replace succeed order support reach score"
    " appear star debut premiere last happen increase decrease drop cost contain cover connect border originate compose"
    " paint translate observe propose suggest argue claim believe predict convert surrender rule reign govern gain form"
    " expand destroy demolish complete construct sail land cross enter emerge represent require allow help offer"
    " provide refuse reject accept approve abolish dissolve abandon follow influence inspire reveal announce"
)
PAST: Final[Mapping[str, str]] = {
    **{pair.split()[0]: pair.split()[1] for pair in " ".join(_IRREGULAR.split()).split("|") if pair.strip()},
    **{verb: verb + ("d" if verb.endswith("e") else "ed") for verb in _REGULAR.split()},
}
"""Base form → past, of the verbs that questions with "did" are mostly about."""
_BASE: Final = {past: base for base, past in PAST.items() if past != base}
_PARTICIPLES: Final = frozenset(
    "born built made held found written sold taken given known led won lost set sung shot sunk bought taught drawn"
    " begun broken chosen fought hit kept seen sent told spoken worn put paid".split()
)
_BE: Final = ("is", "was", "are", "were")
_PREPOSITION: Final = re.compile(
    r"(in|at|on|from|by|to|near|during|between|after|before|around|about|for|since|until|under|over|within|behind|along"
    r"|across|throughout|outside|inside|with|as)\b",
    re.IGNORECASE,
)
_DAY: Final = re.compile(r"([A-Z][a-z]+ \d{1,2}\b(?!\d)|\d{1,2} [A-Z][a-z]+)")
_IN_WHAT: Final = re.compile(
    r"(in|on|at|from|by|under|during) (?:what|which) [a-z]+(?: [a-z]+)? (is|was|are|were|did|does|do) (.+)",
    re.IGNORECASE,
)
_HOW_MANY: Final = re.compile(r"how many ((?:[a-z-]+ ){1,3})([a-z]+) (.+)", re.IGNORECASE)
_WHO: Final = re.compile(r"(who|what|which) (?:([a-z]+) )??([a-z]+) (.+)", re.IGNORECASE)
_ODD: Final = re.compile(
    r"\b(who|which|that|when|while|where|what|how|called|doing|do|does|did|name|named|type|kind|term|following"
    r"|nickname|n't|not|never|no|other|besides|else|currently|today|this|these|you|we|I)\b",
    re.IGNORECASE,
)
"""Words behind a question's first ones with which the rules below often go wrong, or nothing is said of the world."""


def third(verb: str) -> str:
    """Give the third person of a verb."""
    if verb == "have":
        return "has"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + ("es" if verb[-1] in "sxho" else "s")


_FINITE: Final = frozenset((*PAST.values(), *map(third, PAST), "has", "had"))


def statement(question: str, answer: str) -> str | None:
    """Turn a question and its answer into a statement, such as "Rome was founded in 753 BC".

    None where the question has another shape than those known here.
    """
    question, said = " ".join(question.split()).rstrip("?. "), answer.strip(" .,;")
    behind = question.split(" ", 3)[-1]
    if _ODD.search(behind) or len(question.split()) > 14 or len(said.split()) > 5:
        return None
    for rule in (_in_what, _when_where, _how_many, _who_what):
        if made := rule(question, said):
            return capital(made) + "."
    return None


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _in_what(question: str, said: str) -> str | None:
    if not (match := _IN_WHAT.fullmatch(question)):
        return None
    lead = "" if _PREPOSITION.match(said) else "on " if _DAY.match(said) else match[1].lower() + " "
    clause = _clause(match[2].lower(), match[3])
    return clause and f"{clause} {lead}{said}"


def _when_where(question: str, said: str) -> str | None:
    first, auxiliary, rest = (*question.split(" ", 2), "", "")[:3]
    if first.lower() not in ("when", "where") or auxiliary not in (*_BE, "did", "does", "do"):
        return None
    when = first.lower() == "when"
    if (when and not re.search(r"\d", said)) or said.lower().startswith(("every", "next", "today")):
        return None
    lead = "" if _PREPOSITION.match(said) else "on " if when and _DAY.match(said) else "in "
    clause = _clause(auxiliary, rest)
    return clause and f"{clause} {lead}{said}"


def _clause(auxiliary: str, rest: str) -> str | None:
    """The subject and its verb in the order of a statement; None where it is not clear which word is the verb."""
    words = rest.split()
    if auxiliary in _BE:
        places = [at for at, word in enumerate(words) if at and participle(word)]
        if len(places) != 1:
            return None
        place = places[0]
        return " ".join([*words[:place], auxiliary, *words[place:]])
    places = [at for at, word in enumerate(words) if at and word in PAST]
    if len(places) != 1 or words[places[0] - 1] in ("the", "a", "an", "to"):
        return None
    verb = words[places[0]]
    verb = PAST[verb] if auxiliary == "did" else third(verb) if auxiliary == "does" else verb
    return " ".join([*words[: places[0]], verb, *words[places[0] + 1 :]])


def participle(word: str) -> bool:
    return word in _PARTICIPLES or (word.endswith("ed") and len(word) > 4 and word.islower())


def _how_many(question: str, said: str) -> str | None:
    if not (match := _HOW_MANY.fullmatch(question)) or not re.fullmatch(
        r"[\d,.]+( [mb]illion| thousand)?|[a-z]+", said
    ):
        return None
    things, verb, rest = match[1].strip(), match[2], match[3]
    if verb in _BE:
        if rest.startswith("there "):
            return f"there {verb} {said} {things} {rest[6:]}"
        return f"{said} {things} {verb} {rest}" if participle(rest.split()[0]) else None
    if verb in ("did", "does"):
        clause = _clause(verb, rest)
        return f"{clause} {said} {things}" if clause and clause.split()[-1] in _FINITE else None
    return f"{said} {things} {verb} {rest}" if verb in {*_FINITE, *PAST} else None


def _who_what(question: str, said: str) -> str | None:
    if not (match := _WHO.fullmatch(question)):
        return None
    noun, verb, rest = match[2], match[3], match[4]
    named = said[:1].isupper() or said.startswith("the ")
    if noun and (match[1].lower() == "who" or not named):
        return None
    if verb in ("did", "does") and not noun:
        clause = _clause(verb, rest)
        return f"{clause} {said}" if clause and clause.split()[-1] in _FINITE else None
    if verb in _BE:
        return _copula(noun, verb, rest, said)
    goes_on = verb in ("has", "had", "have") and any(participle(word) for word in rest.split())
    if not goes_on and (verb in _FINITE or (verb.endswith("ed") and len(verb) > 4)):
        return f"{said} {verb} {rest}"
    return None


def _copula(noun: str | None, verb: str, rest: str, said: str) -> str | None:
    words = rest.split()
    if noun or participle(words[0]) or _PREPOSITION.match(rest):
        return f"{said} {verb} {rest}" if said[:1].isupper() else None
    if any(participle(word) for word in words):
        return None
    if rest.startswith(("the ", "a ", "an ")):
        return f"{rest} {verb} {said}"
    return f"{rest} {verb} {said}" if said.startswith(("a ", "an ", "the ")) and words[0][0].isupper() else None


# A sentence, shortened

PRONOUN: Final = re.compile(r"(He|She|It|They)\b ")
_LEADING: Final = re.compile(
    r"(?:In|On|At|During|After|Before|By|From|Since|As of) [^,]{3,40}, (?=[A-Z]|he |she |it |they |the )"
)
_REST: Final = re.compile(
    r"(?:, (?:which|who|where|whose|when|while|but|although|with|and [a-z]+ing|[a-z]+ing)\b|; | — | – | -- ).*$"
)
_SECOND: Final = re.compile(r",? and (?:he|she|it|they|was|is|were|has|had|[a-z]{3,}ed)\b.*$")
_APPOSITION: Final = re.compile(
    r"([A-Z][\w.'-]+(?: [A-Z][\w.'-]+){0,4}), (an? [^,]{5,60}|the [^,]{5,60}), (was|is|were|has|had|[a-z]+ed) "
)
_LEANS: Final = re.compile(
    r"(This|These|Those|However|His|Her|Its|Their|There|Some|Many|Other)\b|.*\b(he|she|it|they|his|her|its|their|this|these"
    r"|former|latter|not|never|no|only|also|other)\b"
)
"""How a sentence begins, or what it holds, that does not say the same alone."""
_VERBS: Final = re.compile(r"\b(is|was|are|were|has|had|\w+ed|became|won|wrote|made|took|began|led|held|left)\b")


def shortened(sentence: str) -> str | None:
    """The main clause of a sentence, a year from its beginning behind it; None where it does not stand alone."""
    if '"' in sentence or not 6 <= len(sentence.split()) <= 45 or not sentence.endswith("."):
        return None
    if match := _APPOSITION.match(sentence):
        sentence = f"{match[1]} {'is' if match[3] in ('is', 'has') else 'was'} {match[2]}."
    leading = _LEADING.match(sentence)
    sentence = capital(sentence[leading.end() :]) if leading else sentence
    for cut in (_REST, _SECOND):
        short = cut.sub("", sentence).rstrip(" ,.") + "."
        sentence = short if len(short.split()) >= 5 else sentence
    if leading and re.match(r"(?:In|On|At) .*\d{4}, $", leading[0]):
        sentence = f"{sentence.rstrip('.')} {leading[0][0].lower()}{leading[0][1:-2]}."
    alone = len(sentence.split()) <= 22 and not _LEANS.match(sentence) and _VERBS.search(sentence)
    return sentence if alone else None


# Negation, other verbs, ends turned around


def negated(claim: str) -> str | None:
    """The claim with a "not" or a "never" in its verb; None where its verb is not known."""
    words = claim.rstrip(".").split()
    for place, word in enumerate(words[1:], start=1):
        before = words[place - 1]
        if word in (*_BE, "can", "could", "will", "would"):
            return _joined(*words[: place + 1], "not", *words[place + 1 :])
        if word in ("who", "which", "that", "when", "where"):
            return None
        after = words[place + 1] if place + 1 < len(words) else ""
        if word in ("has", "have", "had") and (participle(after) or after in ("been", "had", "become")):
            return _joined(*words[: place + 1], "not", *words[place + 1 :])
        if word in _BASE and before not in ("a", "an", "the", "of", "by"):
            return _joined(*words[:place], "did", "not", _BASE[word], *words[place + 1 :])
        if word.endswith("ed") and len(word) > 4 and word.islower() and before not in ("a", "an", "the", "of"):
            several = any(participle(other) or other in (*_BASE, *_BE) for other in words[place + 1 :])
            return None if several else _joined(*words[:place], "never", *words[place:])
    return None


def _joined(*words: str) -> str:
    return " ".join(words) + "."


OTHER_VERBS: Final[Mapping[str, tuple[str, ...]]] = {
    "founded": ("sold", "closed", "bought"), "established": ("abolished", "renamed"), "created": ("destroyed", "sold"),
    "built": ("demolished", "sold"), "born": ("buried", "imprisoned"), "died": ("was born", "studied"),
    "released": ("banned", "cancelled"), "published": ("banned", "burned"), "wrote": ("translated", "criticised"),
    "written": ("translated", "criticised"), "directed": ("financed", "criticised"), "won": ("lost", "cancelled"),
    "defeated": ("surrendered to", "was defeated by"), "opened": ("closed", "burned down"),
    "began": ("ended", "was cancelled"), "started": ("ended", "was cancelled"), "introduced": ("abolished", "banned"),
    "joined": ("left", "sued"), "married": ("divorced", "sued"), "discovered": ("overlooked", "denied"),
    "invented": ("copied", "banned"), "completed": ("abandoned", "demolished"), "signed": ("rejected", "broke"),
    "located": ("demolished", "banned"), "became": ("replaced", "criticised"), "appointed": ("dismissed", "arrested"),
    "elected": ("rejected", "arrested"), "produced": ("criticised", "banned"), "received": ("refused", "lost"),
    "moved": ("never moved", "returned"), "recorded": ("lost", "burned"), "developed": ("abandoned", "copied"),
    "killed": ("rescued", "pardoned"), "designed": ("demolished", "bought"), "led": ("opposed", "betrayed"),
    "ruled": ("invaded", "left"), "gave": ("refused", "stole"), "held": ("cancelled", "banned"),
    "graduated": ("was expelled", "withdrew"), "starred": ("was replaced", "invested"), "played": ("refused", "sued"),
    "composed": ("criticised", "banned"), "bought": ("sold", "rented"), "sold": ("bought", "burned"),
    "increased": ("decreased",), "decreased": ("increased",), "adopted": ("rejected",), "supported": ("opposed",),
}  # fmt: skip
"""Verb → others that say something else of the same two ends."""


def other_verb(claim: str, page: str, rng: random.Random) -> str | None:
    """The claim with another verb that the page does not have."""
    words = claim.split()
    for place, word in enumerate(words[1:], start=1):
        if others := [other for other in OTHER_VERBS.get(word.rstrip("."), ()) if other.split()[-1] not in page]:
            other = rng.choice(others)
            if words[place - 1] in _BE and (other.startswith("was ") or PAST.get(other) == other):
                continue
            return " ".join([*words[:place], other + "." * word.endswith("."), *words[place + 1 :]])
    return None


_NAME: Final = r"(?:the )?[A-Z][\w.'’-]*(?: (?:of |the |de |von |van )*[A-Z][\w.'’-]*)*"
_ACTIVE: Final = re.compile(
    rf"({_NAME}) (founded|defeated|directed|killed|married|taught|bought|sold|acquired|led|ruled|conquered|joined|wrote"
    rf"|replaced|succeeded|produced|discovered|attacked|invaded|developed|created|built|designed|published|appointed"
    rf"|followed) ({_NAME})((?: (?:in|on|at|from|with|for|near) .*)?\.?)"
)
_PASSIVE: Final = re.compile(
    rf"({_NAME}) ((?:is|was|were|are) (?:\w+ed|written|led|built|taught|sold|bought) by) ({_NAME})"
    r"((?: (?:in|on|at|from|with|for|near) .*)?\.?)"
)


def turned(claim: str) -> str | None:
    """Who does it to whom turned around: "A defeated B" as "B defeated A"."""
    if (match := _ACTIVE.fullmatch(claim) or _PASSIVE.fullmatch(claim)) and match[2] != "married":
        one, other = match[3].rstrip("."), match[1]
        return capital(f"{one} {match[2]} {other}{match[4]}".rstrip(".") + ".")
    return None


# The same in other words

_WORDINGS: Final = (
    ("is located in", "lies in"), ("was located in", "lay in"), ("began", "started"),
    ("is situated in", "is located in"), ("was founded", "was established"), ("was established", "was founded"),
    ("is known as", "is called"), ("also known as", "also called"), ("approximately", "about"), ("film", "movie"),
    ("a number of", "several"), ("passed away", "died"), ("received", "got"), ("children", "kids"),
    ("was created by", "was made by"), ("was appointed", "was named"), ("purchased", "bought"), ("United States", "US"),
    ("because of", "due to"), ("large", "big"), ("obtained", "got"), ("assisted", "helped"), ("attended", "went to"),
    ("was constructed", "was built"), ("was completed", "was finished"), ("entire", "whole"), ("ended", "finished"),
    ("commenced", "began"), ("primarily", "mainly"), ("resides in", "lives in"), ("is headquartered in", "is based in"),
    ("is based in", "has its headquarters in"), ("graduated from", "got a degree from"),
    ("company", "firm"), ("novel", "book"), ("was named after", "got its name from"), ("consists of", "is made up of"),
)  # fmt: skip
_BY: Final = re.compile(
    rf"({_NAME}) (?:was|is|were|are) (directed|written|produced|founded|developed|published|created|designed|built|led"
    rf"|discovered|killed|established|taught|bought|sold|owned) by ({_NAME})((?: (?:in|on|at|from|with|for) .*)?\.)"
)
_YEAR_LAST: Final = re.compile(r"(.+\w) (in (?:[A-Z][a-z]+ )?\d{4})\.")


def reworded(claim: str, rng: random.Random) -> str:
    """The same in other words: a phrase changed, passive as active, the year moved to the front."""
    ways = list(_rewordings(claim))
    return rng.choice(ways) if ways else claim


def _rewordings(claim: str) -> Iterator[str]:
    if match := _BY.fullmatch(claim):
        yield capital(f"{match[3].rstrip('.')} {'wrote' if match[2] == 'written' else match[2]} {match[1]}{match[4]}")
    if re.search(r"was released (in|on) [A-Z\d]", claim):
        yield claim.replace("was released", "came out", 1)
    for one, other in _WORDINGS:
        if re.search(rf"\b{one}\b", claim):
            yield re.sub(rf"\b{one}\b", other, claim, count=1)
    if (match := _YEAR_LAST.fullmatch(claim)) and "," not in claim and " a " not in claim:
        small = match[1].startswith(("The ", "It ", "He ", "She ", "His ", "Her ", "A "))
        first = match[1][0].lower() + match[1][1:] if small else match[1]
        yield f"{capital(match[2])}, {first}."
