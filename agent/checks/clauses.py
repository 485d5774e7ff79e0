"""The shape of one sentence: where clauses begin and end, who is the subject, what follows a verb, what is negated."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from agent.checks.lexicon import KINDS
from agent.checks.mentions import Mention
from agent.checks.tokens import Token
from agent.checks.wordings import verbs
from agent.checks.words import (
    ARTICLES,
    AUXILIARY,
    BE,
    CONJUNCTIONS,
    DENIALS,
    EVERY,
    FUNCTION,
    IRREGULAR,
    NEGATIONS,
    PREPOSITIONS,
    UNTRUE,
)

_HARD: Final = frozenset((";", "—", "–", ":", "|"))
_STOPS: Final = frozenset(
    "by to with as for from since until till after before under between than instead include includes including".split()
)
"""Prepositions that lead to something other than what the verb leads to."""
_SUBJECTS: Final = frozenset("he she it they we i who which that this".split())
_SUBJECT_PRONOUNS: Final = frozenset("he she it they we i".split())
_PERSONAL: Final = frozenset("he she it they we i his her its their".split())
_ADVERBS: Final = frozenset("also now later then first still once never ever since just both all".split())
_RELATIVE_PRONOUNS: Final = frozenset("who which whose where that".split())
_RELATIVE: Final = _RELATIVE_PRONOUNS | {"when", "while"}
_INSTEAD: Final = frozenset("place lieu stead".split())
_OTHERS: Final = frozenset("follow replac succeed replace".split())
_SINCE: Final = frozenset(("since", "from", "between"))
_UNTIL: Final = frozenset(("until", "till"))
_RATHER: Final = frozenset((("instead", "of"), ("rather", "than")))
_HARMLESS: Final = frozenset("order doubt only others other less more fewer later earlier least sooner".split())
"""After "no" or "not" they negate nothing that is claimed."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Who may be the subject of a verb. `open`: perhaps one who is not named in the sentence."""

    names: tuple[Mention, ...]
    open: bool
    pronoun: bool
    """Whether "she" or "it" stands where the subject does: then no one who is named later is it."""


class Clauses:
    """One sentence, its mentions and the places where its wordings begin."""

    def __init__(self, found: Sequence[Token], named: Sequence[Mention], starts: Sequence[int]) -> None:
        self.tokens = tuple(found)
        self.mentions = tuple(named)
        self.names = tuple(m for m in named if m.kind == "name")
        self._starts = frozenset(starts)
        self._at = {place: m for m in named for place in range(m.first, m.last + 1)}
        self._brackets = _bracketed(found)

    def inside(self, place: int) -> bool:
        """Whether the token is part of a name, a date or a number."""
        return place in self._at

    def _hard(self, place: int) -> bool:
        """Whether a mark divides the sentence; brackets do not divide what is around them."""
        if place in self._at or self._brackets[place]:
            return False
        return self.text(place) in _HARD

    def _in_other_brackets(self, mention: Mention, seen_from: int) -> bool:
        """Whether a name is in brackets that the place it is seen from is not in."""
        bracket = self._brackets[mention.first]
        return bool(bracket) and bracket != self._brackets[seen_from]

    def text(self, place: int) -> str:
        return self.tokens[place].text if 0 <= place < len(self.tokens) else ""

    # To the right

    def right(self, at: int) -> tuple[Mention, ...]:
        """What is named from `at` on, until another clause begins or another preposition leads elsewhere."""
        named: list[Mention] = []
        place = at
        while place < len(self.tokens):
            mention = self._at.get(place)
            if mention is not None:
                named.append(mention)
                place = mention.last + 1
                continue
            text = self.text(place)
            if text == ")" and self._brackets[at]:
                break
            if text == "(":
                place = self._closing(place)
            elif self._ends(place, first=not named and self._all_small(at, place)) and not (text == ":" and not named):
                break
            place += 1
        return tuple(named)

    def _ends(self, place: int, *, first: bool) -> bool:
        token = self.tokens[place]
        if token.text == ";" and self._brackets[place]:
            return False
        if token.text in _HARD or token.text in _STOPS or token.text in BE or token.stem in _OTHERS:
            return not (first and token.text in BE)
        if place in self._starts or token.text in _INSTEAD or token.text in _RELATIVE:
            return True
        if self.is_negation(place):
            return not first
        if token.text in CONJUNCTIONS or token.text == ",":
            return self._begins(place + 1)
        return token.text in AUXILIARY

    def _all_small(self, first: int, end: int) -> bool:
        return all(self.text(k) in FUNCTION for k in range(first, end))

    def _begins(self, place: int) -> bool:
        """Whether a clause begins here: a verb, a pronoun, or a name and a verb."""
        if place >= len(self.tokens):
            return False
        if self.text(place) in CONJUNCTIONS:
            place += 1
        mention = self._at.get(place)
        if mention is not None:
            after = mention.last + 1
            return after < len(self.tokens) and self.text(after) != "," and self.verbish(after)
        return self.text(place) in _SUBJECTS or self.verbish(place) or place in self._starts

    def verbish(self, place: int) -> bool:
        if place >= len(self.tokens) or place in self._at:
            return False
        token = self.tokens[place]
        if token.mark:
            return False
        past = token.text.endswith("ed") and len(token.text) > 3
        odd = token.text in IRREGULAR and IRREGULAR[token.text] != token.text
        return token.text in AUXILIARY or past or odd or token.stem in verbs()

    def _closing(self, place: int) -> int:
        return next((k for k in range(place, len(self.tokens)) if self.text(k) == ")"), place)

    def links(self, place: int) -> bool:
        """Whether a word may stand between a noun and what it is said to be: "has been in", "was then"."""
        token = self.tokens[place]
        return token.text in FUNCTION or token.text == ":" or token.text in NEGATIONS or token.text.startswith("includ")

    def past_brackets(self, at: int) -> int:
        return self._closing(at) + 1 if self.text(at) == "(" else at

    def next_be(self, at: int) -> int:
        """The next copula, "the headquarters of the company are …", if it is near."""
        return next((k for k in range(at, min(at + 5, len(self.tokens))) if self.text(k) in BE), at)

    def opening(self) -> Mention | None:
        """The name that the sentence is about: the first one, if nothing is done before it."""
        for mention in self.names:
            acted = any(self.verbish(k) for k in range(mention.first))
            return None if acted or mention.weak else mention
        return None

    # To the left

    def left(self, at: int) -> tuple[Mention, ...]:
        """The name, date or number that stands nearest to the left, with those that are listed with it."""
        for mention in reversed(self.mentions):
            if mention.last < at:
                if self._in_other_brackets(mention, at):
                    continue
                crossed = any(self._hard(k) for k in range(mention.last + 1, at))
                return () if crossed else self._listed(mention)
        return ()

    def _listed(self, last: Mention) -> tuple[Mention, ...]:
        """The names of "A, the poet B and C", of which `last` is the last one."""
        found = [last]
        for mention in reversed(self.mentions[: self.mentions.index(last)]):
            between = [self.text(k) for k in range(mention.last + 1, found[0].first)]
            words = [text for text in between if text not in (",", "and", "or") and text not in ARTICLES]
            if not {",", "and", "or"} & set(between) or len(words) > 1 or mention.kind != last.kind:
                break
            if any(self.verbish(k) for k in range(mention.last + 1, found[0].first) if self.text(k) in AUXILIARY):
                break
            found.insert(0, mention)
        return tuple(found)

    def before(self, at: int, words: Sequence[str], near: int) -> bool:
        """Whether one of the words stands shortly before, nothing but small words and adjectives between."""
        for place in range(at - 1, max(at - 1 - near, -1), -1):
            if self.text(place) in words:
                return True
            if self.tokens[place].mark or place in self._at:
                return False
        return False

    def subject(self, verb: int) -> "Subject":
        """The names that may be a verb's subject, and whether it may be one who is not named here."""
        start = self._hard_start(verb)
        before = [m for m in self.names if start <= m.first and m.last < verb and not self._in_other_brackets(m, verb)]
        names = tuple(m for m in before if not m.weak)
        weak = tuple(m for m in before if m.weak)
        unnamed = any(self._unnamed(k) for k in range(start, verb))
        said = {self.text(k) for k in range(start, verb)}
        pronoun = bool(said & _SUBJECT_PRONOUNS) and not said & _RELATIVE
        if not names:
            return Subject(weak, open=True, pronoun=pronoun)
        near = names[-1]
        if self._whose(near, verb):
            return Subject(self._listed(near), open=False, pronoun=False)
        if self._beside(near.last + 1, verb) and not self._is_object(near) and not self._in_relative(near):
            return Subject(self._listed(near), open=False, pronoun=False)
        ends = (names[0], *self._listed(near)) if not self._is_object(near) else (names[0],)
        free = tuple(dict.fromkeys((*weak, *(m for m in ends if not self._is_object(m)))))
        return Subject(free, open=unnamed or bool(weak) or not free, pronoun=pronoun)

    def _whose(self, name: Mention, verb: int) -> bool:
        """Whether a verb is that of "NAME, who had also …"."""
        place = name.last + 1 + (self.text(name.last + 1) == ",")
        return self.text(place) in ("who", "which", "that") and self._beside(place + 1, verb)

    def _beside(self, first: int, verb: int) -> bool:
        """Whether nothing but small words stands before a verb from `first` on."""
        between = [self.text(k) for k in range(first, verb) if getattr(self._at.get(k), "kind", "") != "number"]
        return all(w in AUXILIARY or w in NEGATIONS or w in _ADVERBS or w.endswith("ly") for w in between)

    def _is_object(self, name: Mention) -> bool:
        """Whether a name belongs to a preposition before it: "in the workshop of NAME", "taught by the poet NAME"."""
        led = name.first - 1
        while self.text(led) in ARTICLES or self._noun_before(led):
            led -= 1
        if self.text(led) == "of" and self.text(led - 1) in KINDS:  # "the town of NAME"
            return False
        return self.text(led) in PREPOSITIONS

    def _noun_before(self, place: int) -> bool:
        """Whether "the NOUN NAME" has its noun here."""
        return place > 0 and not self.tokens[place].mark and self.text(place - 1) in ARTICLES and place not in self._at

    def _unnamed(self, place: int) -> bool:
        """Whether a word refers to someone: "she", "the company"."""
        if place in self._at:
            return False
        described = self.text(place) in ARTICLES and not {place + 1, place + 2} & self._at.keys()
        return self.text(place) in _PERSONAL or described

    def _in_relative(self, mention: Mention) -> bool:
        """Whether a name stands inside "H, who directed NAME"."""
        return any(self.text(k) in _RELATIVE_PRONOUNS for k in range(self._hard_start(mention.first), mention.first))

    def _hard_start(self, at: int) -> int:
        return next((k + 1 for k in range(at - 1, -1, -1) if self._hard(k)), 0)

    def passive(self, first: int, last: int) -> bool:
        """Whether a verb that should be active is passive: "was founded", "founded by"."""
        if self.text(last + 1) == "by":
            return True
        word = self.tokens[first]
        if not word.text.endswith("ed") and IRREGULAR.get(word.text, word.text) == word.text:  # "is home to"
            return False
        place = first - 1
        while place >= 0 and (self.text(place).endswith("ly") or self.text(place) in NEGATIONS):
            place -= 1
        return self.text(place) in BE

    # Clauses

    def begin(self, at: int) -> int:
        """Where the clause of a verb begins."""
        for place in range(at - 1, -1, -1):
            text = self.text(place)
            if self._hard(place) or text == "but":
                return place + 1
            if text in _RELATIVE and place not in self._at and place + 1 < at and text != "that":
                return place
            divides = text in ("and", ",") and place not in self._at and place + 1 != at and self._begins(place + 1)
            if divides and any(self.verbish(k) for k in range(place)):  # but "Between 2005 and 2021, …" is no clause
                return place + 1
            if text == "and" and place + 1 == at:
                return at
        return 0

    def end(self, at: int) -> int:
        """Where the clause of a verb ends."""
        for place in range(at + 1, len(self.tokens)):
            if place in self._at or self._brackets[place] != self._brackets[at]:
                continue
            if self._hard(place) or self.text(place) in _RELATIVE:
                return place
            if (self.text(place) in CONJUNCTIONS or self.text(place) == ",") and self._begins(place + 1):
                return place
        return len(self.tokens)

    def part(self, at: int) -> range:
        """The tokens around a place from one conjunction or semicolon to the next: "A has 5 | and B has 7"."""
        divides = [
            place
            for place, token in enumerate(self.tokens)
            if place not in self._at and (token.text in CONJUNCTIONS or token.text == ";")
        ]
        first = max((place + 1 for place in divides if place < at), default=0)
        return range(first, min((place for place in divides if place > at), default=len(self.tokens)))

    def is_negation(self, place: int) -> bool:
        """Whether a word negates what follows it: "not", "a false …", "everyone but …", "instead of …"."""
        text, before, after = self.text(place), self.text(place - 1), self.text(place + 1)
        if text in UNTRUE:
            following = self.tokens[place + 1 : place + 2]
            return any(after == "that" or not (token.mark or after in FUNCTION) for token in following)
        if text == "but":
            return before in EVERY or self.text(place - 2) == "every"
        return text in NEGATIONS or (text, after) in _RATHER

    def negated(self, first: int, last: int) -> bool:
        """Whether anything from `first` to `last` is negated, or the whole sentence taken back before."""
        for place in range(first, last + 1):
            if self.is_negation(place) and self.text(place + 1) not in _HARMLESS:
                return True
        return any(self.text(place) in DENIALS for place in range(last + 1))

    def times(self, verb: int) -> tuple[tuple[Literal["in", "since", "until"], Mention], ...]:
        """The dates of a verb's clause, and whether they say since when, until when, or when."""
        first, last = self.begin(verb), self.end(verb)
        dateline = next((k for k in range(len(self.tokens)) if self._hard(k) and self.text(k) != ";"), -1)
        dates: list[tuple[Literal["in", "since", "until"], Mention]] = []
        for mention in self.mentions:
            if mention.kind != "date" or self._in_other_brackets(mention, verb):
                continue
            if not first <= mention.first <= last and mention.last >= dateline:
                continue
            place = mention.first - 1
            while place >= 0 and self.text(place) in ("the", "year", "about", "around"):
                place -= 1
            word = self.text(place)
            between = word == "and" and any(self.text(k) == "between" for k in range(max(0, place - 4), place))
            dash = word in ("–", "—") and place - 1 in self._at
            from_to = word == "to" and any(self.text(k) == "from" for k in range(place))
            if word in _UNTIL or from_to or between or dash:
                dates.append(("until", mention))
            else:
                dates.append(("since" if word in _SINCE else "in", mention))
        return tuple(dates)


def _bracketed(found: Sequence[Token]) -> list[int]:
    """For each token the number of the round brackets around it, from 1; 0 outside of all."""
    numbers: list[int] = []
    count = inside = 0
    for token in found:
        if token.text == "(":
            count += 1
            inside = count
        numbers.append(inside)
        if token.text == ")":
            inside = 0
    return numbers
