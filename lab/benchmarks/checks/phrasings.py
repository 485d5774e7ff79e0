"""Other phrasings of a question, made by rule: what a policy that asks the same thing in three ways would ask at least.

Nothing is known of the question's subject; a policy can do better than this.
"""

import re
from typing import Final

from agent.sources.bm25 import query_stems, stem, words

_QUESTION_WORDS: Final = re.compile(
    r"^(?:(?:in|of|from|to|for|on|at|by|with|during)\s+)?"
    r"(?:who|whom|whose|what|which|when|where|why|how(?:\s+(?:many|much|long|old|far))?)\b\s*"
    r"(?:(?:is|are|was|were|does|do|did|has|have|had|can|could|would|will|should)\b\s*)?"
    r"|^(?:is|are|was|were|does|do|did|has|have|had|can|could|would|will|should)\b\s*",
    re.IGNORECASE,
)


def phrasings(question: str) -> tuple[str, str, str]:
    """The question, what is left without its question word, and its keywords."""
    statement = _QUESTION_WORDS.sub("", question.strip(), count=1).rstrip(" ?.!") or question
    return question, statement, keywords(question)


def keywords(question: str) -> str:
    """The words that are no stop words; where all of them are, every word."""
    kept = set(query_stems(question))
    return " ".join(word for word in words(question) if stem(word) in kept) or question
