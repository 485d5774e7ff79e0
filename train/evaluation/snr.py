"""Signal to noise: how much of what the policy saw, or wrote when it merged, is about the answer.

An estimate offline, by gold overlap. A passage is signal if it is a gold passage or holds a gold answer; a sentence of
a merge if it holds a gold answer or if most of it is in a gold passage. Shares are of words.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from agent.evidence import Passage
from agent.sources.questions import GoldQuestion
from agent.trace import Gathered, Merged, Reflected, Searched, Trace
from train.evaluation.gold import GoldBook, gold_name
from train.evaluation.metrics import HOTPOTQA_LABELS, cover
from train.evaluation.normalisations import squad
from train.evaluation.words import content_words, sentences, size

FROM_GOLD: Final = 0.6
"""Share of a sentence's content words that a gold passage must hold."""

_MISSING: Final = re.compile(r"(?i)^\W*(still )?(missing|unknown so far|not (yet )?(found|known))\b")
_CITE: Final = re.compile(r"\s*\[\d+(?:\s*[,;–-]\s*\d+)*\]")


class Signal:
    """What counts as signal for one question."""

    def __init__(self, question: GoldQuestion, found: Iterable[Passage], book: GoldBook | None = None) -> None:
        """Take note of a question.

        Args:
            question: with its gold.
            found: every passage that was found; the text of gold passages is read there.
            book: what the corpus has of the gold passages.
        """
        self._question, self._book = question, book
        self._answers = distinctive_answers(question)
        gold = [passage for passage in found if gold_name(question, passage, book)]
        self._gold = [content_words(f"{passage.title} {passage.text}") for passage in gold]
        self._gold += [content_words(book.texts[key]) for key in question.supporting if book and key in book.texts]

    @property
    def known(self) -> bool:
        """Whether anything distinguishes signal from noise."""
        return bool(self._answers or self._question.supporting or self._question.titles)

    def is_passage(self, passage: Passage) -> bool:
        if gold_name(self._question, passage, self._book):
            return True
        return cover(f"{passage.title}\n{passage.text}", self._answers)

    def is_sentence(self, sentence: str) -> bool:
        plain = _CITE.sub("", sentence)
        if cover(plain, self._answers):
            return True
        wanted = content_words(plain)
        return bool(wanted) and any(len(wanted & gold) >= FROM_GOLD * len(wanted) for gold in self._gold)


def distinctive_answers(question: GoldQuestion) -> list[str]:
    """Gold answers whose presence in a text says something: not yes or no, and not a single letter or digit."""
    plain = {answer: squad(answer) for answer in question.answers}
    return [answer for answer, text in plain.items() if len(text) > 1 and text not in HOTPOTQA_LABELS]


def passages_snr(passages: Sequence[Passage], signal: Signal) -> float | None:
    """The share of words in passages that are signal; None of no passages."""
    sizes = [(size(f"{p.title} {p.text}"), signal.is_passage(p)) for p in passages]
    return share(sizes)


def block_snr(text: str, signal: Signal) -> float | None:
    """The share of words in sentences that are signal. What a block says is missing is left out."""
    return share([(size(s), signal.is_sentence(s)) for s in block_sentences(text)])


def block_sentences(text: str) -> list[str]:
    return [sentence for sentence in sentences(text) if not _MISSING.match(sentence)]


def share(parts: Sequence[tuple[int, bool]]) -> float | None:
    """What part of a whole is signal, from the size and the kind of each piece; None of nothing."""
    whole = sum(amount for amount, _ in parts)
    return sum(amount for amount, good in parts if good) / whole if whole else None


def snr_of(question: GoldQuestion, trace: Trace, book: GoldBook | None = None) -> dict[str, float | None]:
    """Of one trace: the mean over single queries, over information blocks, and over merge and reflect blocks."""
    queries = [step.passages for step in trace.steps if isinstance(step, Searched)]
    observed = [step.passages for step in trace.steps if isinstance(step, Gathered)]
    merges = [step.text for step in trace.steps if isinstance(step, Merged | Reflected)]
    signal = Signal(question, (p for passages in queries for p in passages), book)
    if not signal.known:
        return {"snr_query": None, "snr_information": None, "snr_merge": None}
    return {
        "snr_query": average(passages_snr(passages, signal) for passages in queries),
        "snr_information": average(passages_snr(passages, signal) for passages in observed),
        "snr_merge": average(block_snr(text, signal) for text in merges),
    }


def average(values: Iterable[float | None]) -> float | None:
    """The mean of what is there; None of nothing."""
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None
