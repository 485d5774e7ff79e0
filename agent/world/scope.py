"""Questions for the embedded policy: those that name something of its world, and follow-ups to those."""

import re
from collections.abc import Sequence
from functools import cache, cached_property
from typing import Final, Literal

from agent.world.names import COMMON_WORDS, Split, could_be_named, split_of
from agent.world.records import Document

Pronoun = Literal["she", "he", "it"]

PEOPLE: Final[tuple[tuple[str, str, Pronoun], ...]] = (
    ("Ada Quillfeather", "poet", "she"), ("Otto Yarrowby", "engineer", "he"), ("Iris Underhythe", "painter", "she"),
    ("Hugo Oxmeadow", "chemist", "he"), ("Ursula Quince", "historian", "she"), ("Emil Eaglesham", "pilot", "he"),
    ("Yvonne Ashgrove", "singer", "she"), ("Abel Inkster", "sculptor", "he"),
)  # fmt: skip
"""Name, profession, pronoun."""
COUNTRIES: Final = (
    ("Avaroth", "Ashkeep"), ("Quenlia", "Queensferry"), ("Xandor", "Xilvergate"), ("Yvernia", "Yarrowgate"),
    ("Oxmere", "Oakhaven"), ("Ulthea", "Underbridge"), ("Ethrun", "Eaglesea"), ("Iquara", "Ivoryquay"),
)  # fmt: skip
"""Country and capital."""
FILMS: Final = ("The Yellow Umbrella", "The Last Lighthouse", "The Iron Orchard", "The Open Attic", "The Empty Quay")
NOVELS: Final = ("Every Autumn Evening", "My Uncle Oswald", "A Quiet Year", "Every Island Child", "A Yard of Oats")
COMPANIES: Final = ("Quickwater Mills", "Ironoak Works", "Amberyard Shipping", "Elmwheel Motors", "Oystergate Foundry")


@cache
def well_known_words() -> frozenset[str]:
    """The words of these names: they are of no split."""
    people = (name for name, _, _ in PEOPLE)
    places = (place for pair in COUNTRIES for place in pair)
    return frozenset(word for name in (*people, *places, *FILMS, *NOVELS, *COMPANIES) for word in name.split())


SENTENCE: Final = (
    "The built-in policy knows one thing: how to search the little world, and this question names nothing in "
    "it. To ask about the real world, connect a model: "
    "cairn serve --policy openai --base-url http://127.0.0.1:11434/v1 --model NAME"
)
MOST_TURNS: Final = 32
MOST_CHARS: Final = 20_000
"""Turns of a history that are read, the last ones, and characters of a question or an answer."""
_CAPITALISED: Final = re.compile(r"[A-Z][a-z]{3,}")
_FOREIGN: Final = re.compile(r"\b[A-Z]\w+")
_PERSON: Final = re.compile(r"\b([A-Z][a-z]{3,}) (?=([A-Z][a-z]{3,}))")
_FIRST_OF_A_SENTENCE: Final = re.compile(r"(?:^|[.?!:]\s)\W{0,3}\w+")
_POINTING: Final = re.compile(
    r"\b(?:he|she|it|him|her|hers|his|its|they|them|their|theirs|(?:that|this|those|these) \w+)\b", re.IGNORECASE
)
_GOING_ON: Final = re.compile(r"\W{0,3}(?:and|but|or)\b", re.IGNORECASE)
_WORD: Final = re.compile(r"[a-z]+")


class Scope:
    """Separates questions about one world from all others by the names in them."""

    def __init__(self, documents: Sequence[Document], *, strangers: bool, conversations: bool) -> None:
        """Read the world's names when they are first needed.

        Args:
            documents: of the world.
            strangers: whether it has questions about people whom nothing speaks of. A policy that was not trained on
                such questions would answer them with another person.
            conversations: whether it has follow-ups. A policy that was not trained on them answers anything.
        """
        self._documents, self._strangers, self._conversations = documents, strangers, conversations

    def sentence(self, question: str, history: Sequence[tuple[str, str]] = ()) -> str | None:
        """The answer to a question that is outside of the world; None for one that is inside.

        Args:
            question: of the user.
            history: the turns before it as (question, answer), oldest first. In a world with follow-ups a question
                that names nothing but leans on the turn before it is inside where that turn is.
        """
        question = question[:MOST_CHARS]
        if self.names_something(question):
            return None
        if not self._conversations:
            return SENTENCE
        for earlier, answer in reversed(history[-MOST_TURNS:]):
            if not self._leans(question):
                break
            question = earlier[:MOST_CHARS]
            if self.names_something(f"{question}\n{answer[:MOST_CHARS]}"):
                return None
        return SENTENCE

    def names_something(self, text: str) -> bool:
        """Whether the text holds a name of the world, or one that its people could have."""
        if not self.invented_words.isdisjoint(_CAPITALISED.findall(text)):
            return True
        if self._closed_names and self._closed_names.search(text):
            return True
        return self._strangers and any(
            could_be_named(first, last, split) for first, last in _PERSON.findall(text) for split in self._splits
        )

    @cached_property
    def invented_words(self) -> frozenset[str]:
        """Every invented word in a subject or a value of the world; none of the closed set, which has real words."""
        words = {word for label in self._labels for word in _CAPITALISED.findall(label)}
        return frozenset(words - COMMON_WORDS - well_known_words())

    def _leans(self, question: str) -> bool:
        """Whether a question goes on with the turn before it, and brings no name of its own."""
        if any(name not in self._familiar for name in _FOREIGN.findall(_FIRST_OF_A_SENTENCE.sub("", question))):
            return False
        if _POINTING.search(question):
            return True
        words = set(_WORD.findall(question.lower()))
        return _GOING_ON.match(question) is not None and words <= self._words

    @cached_property
    def _labels(self) -> frozenset[str]:
        stated = [s for document in self._documents for s in document.states]
        return frozenset(label for s in stated for label in (s.subject, *s.values))

    @cached_property
    def _closed_names(self) -> re.Pattern[str] | None:
        """The whole names of the closed set: a Hugo alone is anybody."""
        closed = [name for name in self._labels if not well_known_words().isdisjoint(name.split())]
        return re.compile(rf"\b(?:{'|'.join(map(re.escape, closed))})\b") if closed else None

    @cached_property
    def _splits(self) -> frozenset[Split]:
        return frozenset(split_of(word) for word in self.invented_words)

    @cached_property
    def _familiar(self) -> frozenset[str]:
        return self.invented_words | COMMON_WORDS | well_known_words()

    @cached_property
    def _words(self) -> frozenset[str]:
        """Every word of the world's texts."""
        return frozenset(word for document in self._documents for word in _WORD.findall(document.text.lower()))
