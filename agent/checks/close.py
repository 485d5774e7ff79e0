"""Whether pages say what a claim says in other words: its facts one by one, then every name, number and word of it."""

from collections.abc import Iterator, Sequence
from functools import cache

from agent.checks.facts import End, Fact, Reading, read
from agent.checks.lexicon import CONVERSE, KINDS, SAME, SENSES
from agent.checks.mentions import Mention, Titles, mentions, same
from agent.checks.page import Line, Page
from agent.checks.patterns import told_by
from agent.checks.pointer import Pointer, pointer, senses_of
from agent.checks.tokens import Token, fold, sentences, stem, tokens
from agent.checks.words import DENIALS, FUNCTION, NEGATIONS, PREPOSITIONS

Support = tuple[int, int]
"""Place of a page among those asked, and of a line on it."""

Times = Sequence[tuple[str, Mention]]

_MISSING = 0.2
"""Share of the claim's words that a line may lack."""
_HAVE = frozenset("has have had".split())
_PRESENT = frozenset("is are has have now currently current today".split())
_PAST = frozenset("was were had until formerly former previously once".split())


def supported(text: str, pages: Sequence[Page]) -> list[Support] | None:
    """The lines that say it, or None where they do not."""
    if (short := pointer(text, [page.title for page in pages])) is not None:
        return _pointed(short, pages)
    found: list[Support] = []
    for sentence in sentences(text):
        lines = _sentence(sentence.tokens, pages)
        if lines is None:
            return None
        found += lines
    return found or None


def _sentence(found: Sequence[Token], pages: Sequence[Page]) -> list[Support] | None:
    titles = tuple({m.words: None for p in pages for m in p.names if m.words and not m.weak})
    claim = read(found, titles=titles)
    if not claim.groups:
        return next(_worded(claim, pages), None)
    lines: list[Support] = []
    for group in claim.groups:
        told = _group(group, claim, pages)
        if told is None:
            return None
        lines += told
    return lines if _rest_stands(claim, pages, lines) else None


# Claims in short


def _pointed(short: Pointer, pages: Sequence[Page]) -> list[Support] | None:
    """The line that says the relation of a claim in short; where it names none, the one that has the value."""
    known = {m.words: None for page in pages for m in page.names if m.words and not m.weak}
    about, value = (_whole(text, tuple(known)) for text in (short.bare, short.value))
    if not about.words or not (value.words or value.kind != "name"):
        return None
    if not short.relation:
        return next(([line] for line in _having(value, short.value, about, pages)), None)
    senses = senses_of(short.relation)
    if not senses:
        said = f"The {short.relation} of {short.bare} is {short.value}."
        return supported(said, pages)
    reading = read(tokens(short.value))
    for sense in senses:
        fact = Fact(sense, End((about,)), End((value,)), False, (), 0, 0)
        if sense in SENSES and (line := next(_tellers(fact, value, reading, pages), None)):
            return [line]
    found = ((at, line) for at, page in enumerate(pages) for s in senses for line in told_by(s, about, value, page))
    return next(([line] for line in found), None)


def _whole(text: str, known: Titles) -> Mention:
    """What a text names: the one mention that all of it is, or its words as a name."""
    found = tokens(text)
    words = tuple(token.text for token in found if not token.mark)
    named = mentions(found, titles=known)
    if len(named) == 1 and named[0].kind != "name" and named[0].last - named[0].first + 1 == len(found):
        return named[0]
    if named and named[0].kind == "name" and len(named[0].words) == len(words):
        return named[0]
    return Mention("name", 0, max(len(found) - 1, 0), words)


def _having(value: Mention, text: str, about: Mention, pages: Sequence[Page]) -> Iterator[Support]:
    """The lines that have a value, on pages about what the claim is about, or that name it."""
    words = [token.text for token in tokens(text) if not token.mark]
    for place, page in enumerate(pages):
        topic = any(page.knows(about, m) for m in page.topics)
        for at, line in enumerate(page.lines):
            if line.start < 0 or not (topic or page.names_it(about, line.reading.mentions)):
                continue
            there = [token.text for token in line.reading.tokens if not token.mark]
            stands = any(there[k : k + len(words)] == words for k in range(len(there) - len(words) + 1))
            if stands or any(same(value, m) for m in line.reading.mentions if value.kind == m.kind != "name"):
                yield place, at


# Facts


def _group(group: Sequence[Fact], claim: Reading, pages: Sequence[Page]) -> list[Support] | None:
    """The lines that tell one of several readings of the same words, each of its values."""
    for fact in group:
        lines: list[Support] = []
        for value in fact.value.names or (None,):
            support = next(_tellers(fact, value, claim, pages), None) or _drawn(fact, value, pages)
            if support is None:
                break
            lines.append(support)
        else:
            return lines
    return None


def _drawn(fact: Fact, value: Mention | None, pages: Sequence[Page]) -> Support | None:
    """The line that says a fact of its page's subject in a pattern."""
    if value is None or fact.negated or fact.times or fact.ended:
        return None
    found = (
        (place, at)
        for place, page in enumerate(pages)
        for who in fact.holder.names
        for at in told_by(fact.sense, who, value, page)
        if not page.lines[at].reading.negated
    )
    return next(found, None)


def _tellers(fact: Fact, value: Mention | None, claim: Reading, pages: Sequence[Page]) -> Iterator[Support]:
    for place, page in enumerate(pages):
        for at, line in enumerate(page.lines):
            for told in (told for group in line.reading.groups for told in group):
                if fact.sense in (told.sense, CONVERSE.get(told.sense)) and _tells(told, page, at, fact, value, claim):
                    yield place, at


def _tells(told: Fact, page: Page, at: int, fact: Fact, value: Mention | None, claim: Reading) -> bool:
    """Whether a fact of a page is that of the claim, with this value."""
    if told.negated != fact.negated:
        return False
    if told.ended and not fact.ended and _is_present(claim):
        return False
    line = page.lines[at]
    if not _times_agree((*told.times, *_dateline(told, page, at)), fact, value, told.value.names):
        return False
    ways = [(told.holder, told.value)] if told.sense == fact.sense else []
    if told.symmetric or not ways:
        ways.append((told.value, told.holder))
    if value is not None and len(fact.value.names) > 1 and _at_that_time(value, told):
        value = None
    return any(_ends(holder, end, line, page, fact, value) for holder, end in ways)


def _ends(holder: End, end: End, line: Line, page: Page, fact: Fact, value: Mention | None) -> bool:
    if value is not None and not _is_end(value, end, line, page):
        return False
    if value is not None and value.kind == "date":  # "X founded Y in 1950": of the founding, both are
        holder = End((*holder.names, *(m for m in end.names if m.kind == "name")), open=holder.open)
    wanted = fact.holder.names
    return not wanted or any(_is_end(who, holder, line, page) for who in wanted)


def _is_end(claimed: Mention, end: End, line: Line, page: Page) -> bool:
    if page.names_it(claimed, end.names):
        return True
    return end.open and page.names_it(claimed, line.context)


def _at_that_time(value: Mention, told: Fact) -> bool:
    """Whether a date that the claim tells with the rest, "married V in 1895", stands in the fact's clause."""
    return value.kind == "date" and any(role == "in" and same(value, date) for role, date in told.times)


def _is_present(claim: Reading) -> bool:
    said = {token.text for token in claim.tokens}
    return bool(said & _PRESENT) and not said & _PAST


def _dateline(told: Fact, page: Page, at: int) -> list[tuple[str, Mention]]:
    """The date of a report, "Report of 9 April 2025.", that stands before its first sentence."""
    if told.times or at != 1 or page.lines[at].start < 0 or page.lines[0].reading.groups:
        return []
    return [("in", m) for m in page.lines[0].reading.mentions if m.kind == "date"]


def _times_agree(told: Times, fact: Fact, value: Mention | None, values: Sequence[Mention]) -> bool:
    """Whether the page gives every date that the claim gives, in the same role: since, until, in."""
    taken = {m for m in fact.value.names if m.kind == "date"}
    for role, date in fact.times:
        if date in taken or date is value:
            continue
        if not any(_same_time(role, date, r, d) for r, d in (*told, *(("in", m) for m in values))):
            return False
    return True


def _same_time(role: str, date: Mention, told: str, there: Mention) -> bool:
    if there.kind != "date" or not all(w in (0, h) for w, h in zip(date.date, there.date, strict=True)):
        return False
    return role == told or "in" in (role, told)


# What is not a fact: every name, number and word of the claim


def _rest_stands(claim: Reading, pages: Sequence[Page], lines: Sequence[Support]) -> bool:
    there = {place for place, _ in lines}
    near = [pages[place].lines[at] for place, at in _neighbours(pages, lines)]
    near += [line for place in there for line in pages[place].lines if line.start < 0]
    for mention in claim.mentions:
        if mention.weak:
            continue
        if mention.kind == "name":
            if not any(pages[place].names_it(mention, pages[place].names) for place in there):
                return False
        elif not any(same(mention, told) for line in near for told in line.reading.mentions):
            return False
    stems = frozenset(stem for place in there for stem in pages[place].stems)
    missing = [token for token in _content(claim) if not _stands(token, stems) and token.text not in KINDS]
    return not missing


def _neighbours(pages: Sequence[Page], lines: Sequence[Support]) -> set[Support]:
    return {(place, at + by) for place, at in lines for by in (-1, 0, 1) if 0 <= at + by < len(pages[place].lines)}


def _content(claim: Reading) -> list[Token]:
    """The words that carry a meaning and belong to no name and to no wording."""
    named = {place for m in claim.mentions if not m.weak for place in range(m.first, m.last + 1)}
    return [
        token
        for place, token in enumerate(claim.tokens)
        if place not in named
        and place not in claim.used
        and not token.mark
        and token.text not in FUNCTION
        and token.text not in NEGATIONS
    ]


@cache
def _alike() -> dict[str, frozenset[str]]:
    groups = [frozenset(stem(fold(word)) for word in words.split()) for words in SAME]
    return {word: group for group in groups for word in group}


def _stands(token: Token, stems: frozenset[str]) -> bool:
    return token.stem in stems or not stems.isdisjoint(_alike().get(token.stem, ()))


# Relations that the lexicon does not know: by their words


def _worded(claim: Reading, pages: Sequence[Page]) -> Iterator[list[Support]]:
    """Each line that holds the claim's names, numbers and words, negated alike, with the same agent."""
    wanted = _content(claim)
    for place, page in enumerate(pages):
        for at, line in enumerate(page.lines):
            if _holds(line, page, claim, wanted) and _same_roles(line, page, claim, wanted):
                yield [(place, at)]


def _holds(line: Line, page: Page, claim: Reading, wanted: Sequence[Token]) -> bool:
    told = [*line.reading.mentions, *line.context]
    firm = [m for m in claim.mentions if not m.weak]
    if not wanted:  # "A is of B": then the small words are all that is claimed of them
        told = list(line.reading.mentions)
        small = {t.text for t in claim.tokens if t.text in PREPOSITIONS}
        if not small <= {t.text for t in line.reading.tokens}:
            return False
    if not (firm or wanted) or not all(page.names_it(m, told) for m in firm):
        return False
    stems = line.stems.union(*(other.stems for other in page.lines if other.start < 0))
    missing = sum(not _stands(token, stems) for token in wanted)
    if missing > _MISSING * len(wanted) or not _has_alike(claim, line.reading):
        return False
    return _negated(line.reading, wanted) == claim.negated


def _negated(told: Reading, wanted: Sequence[Token]) -> bool:
    """Whether a line negates what is claimed; "without" only negates what comes right after it."""
    for place, token in enumerate(told.tokens):
        if token.text == "without":
            near = {other.stem for other in told.tokens[place + 1 : place + 5]}
            if any(_stands(word, frozenset(near)) for word in wanted):
                return True
        elif (token.text in NEGATIONS or token.text in DENIALS) and told.clauses.negated(place, place):
            return True
    return False


def _has_alike(claim: Reading, told: Reading) -> bool:
    """Whether what somebody is said to have is something that somebody has there, too."""
    said = [token.text for token in claim.tokens]
    owns = any(text in _HAVE and not claim.clauses.verbish(place + 1) for place, text in enumerate(said[:-1]))
    return not owns or any(token.text in _HAVE or token.text in ("with", "'s") for token in told.tokens)


def _same_roles(line: Line, page: Page, claim: Reading, wanted: Sequence[Token]) -> bool:
    """Whether who does it to whom is not turned around: "A beat B" is "B was beaten by A", and not "B beat A"."""
    names = [m for m in claim.mentions if m.kind == "name" and not m.weak]
    after = [t for t in wanted if names and t.start > claim.tokens[names[0].last].start]
    if not after:
        return True
    verb = next((t for t in after if claim.clauses.verbish(claim.tokens.index(t))), after[0])
    agent, patient = _roles(claim, claim.tokens.index(verb))
    for place, token in enumerate(line.reading.tokens):
        if token.stem == verb.stem or token.stem in _alike().get(verb.stem, ()):
            for doer, done_to in _readings(line.reading, place):
                if _plays(agent, doer, line, page) and _plays(patient, done_to, line, page):
                    return True
    return False


def _readings(reading: Reading, verb: int) -> Iterator[tuple[End, End]]:
    """Who does it to whom; both ways where a participle may be either: "the dam, completed in 1970"."""
    yield _roles(reading, verb)
    after = reading.clauses.text(verb + 1)
    bare = reading.tokens[verb].text.endswith("ed") and not reading.clauses.passive(verb, verb)
    if bare and reading.clauses.text(verb - 1) == "," and after in PREPOSITIONS:
        yield End(), _subject(reading, verb)


def _roles(reading: Reading, verb: int) -> tuple[End, End]:
    """Who does it, and to whom it is done."""
    clauses = reading.clauses
    one = _subject(reading, verb)
    after = tuple(m for m in clauses.names if m.first > verb)
    if not clauses.passive(verb, verb):
        return one, End(tuple(m for m in clauses.names if m not in one.names), open=not after)
    return End(tuple(m for m in after if _behind_by(reading, m)), open=False), one


def _subject(reading: Reading, verb: int) -> End:
    subject = reading.clauses.subject(verb)
    return End(subject.names, open=subject.open)


def _behind_by(reading: Reading, mention: Mention) -> bool:
    before = reading.tokens[max(mention.first - 5, 0) : mention.first]
    return any(token.text == "by" for token in before) and not any(token.mark for token in before[-4:])


def _plays(wanted: End, told: End, line: Line, page: Page) -> bool:
    """Whether one of those that the claim may mean has the role."""
    return not wanted.names or any(_is_end(name, told, line, page) for name in wanted.names)
