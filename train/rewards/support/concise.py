"""Whether a query is a few keywords: by lists of words that it should not hold. Nothing else is known of it."""

from collections.abc import Collection
from typing import Final

from train.evaluation.words import words

QUESTION_WORDS: Final = tuple(
    "what who whom whose which when where why how is are was were do does did can could would should".split()
)
PREPOSITIONS: Final = tuple(
    "of in on at to for from by with about into onto over under between among during since until before after through"
    " against within without near per via".split()
)
MODIFIERS: Final = tuple(
    "please very really quite just exactly actually simply some any also currently possibly probably find search tell"
    " give show me us i we information details".split()
)


def is_concise(query: str, *, without: Collection[str], most_words: int = 0) -> bool:
    """Whether a query holds none of the words, and at most this many; 0 sets no limit."""
    said = words(query)
    return not (set(said) & set(without)) and (not most_words or len(said) <= most_words)
