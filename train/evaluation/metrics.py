"""How an answer is scored: exact match, F1 and cover, after a named normalisation; and intervals by bootstrap.

Cover is CEM of the papers, with whole words. An answer that says nothing is wrong, whatever the gold answers are.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

NORMALISATION: Final = "squad"
BOOTSTRAP_SAMPLES: Final = 2000

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def normalise(text: str) -> str:
    """SQuAD's normalisation: lower case, no ASCII punctuation, no articles, white space folded.

    Articles stay where nothing else is left: "A" is an answer to a choice, "The The" a band.
    """
    plain = " ".join(text.lower().translate(_PUNCTUATION).split())
    return " ".join(_ARTICLE.sub(" ", plain).split()) or plain


def exact_match(prediction: str, golds: Sequence[str]) -> bool:
    said = normalise(prediction)
    return bool(said) and any(said == normalise(gold) for gold in golds)


def f1(prediction: str, golds: Sequence[str]) -> float:
    """F1 over words, 0 to 1, of the gold answer that fits best."""
    return max((_f1(normalise(prediction).split(), normalise(gold).split()) for gold in golds), default=0.0)


def _f1(said: Sequence[str], gold: Sequence[str]) -> float:
    common = (Counter(said) & Counter(gold)).total()
    return 2 * common / (len(said) + len(gold)) if common else 0.0


def cover(prediction: str, golds: Sequence[str]) -> bool:
    """Whether a gold answer stands in the prediction as whole words, in its order."""
    said = f" {normalise(prediction)} "
    return any(f" {normalise(gold)} " in said for gold in golds if normalise(gold))


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def interval(values: Sequence[float], *, seed: int = 0) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean; the same seed gives the same interval."""
    if not values:
        return (0.0, 0.0)
    rng = np.random.default_rng(seed)
    table = np.asarray(values, dtype=np.float64)
    means = [float(table[rng.integers(len(table), size=len(table))].mean()) for _ in range(BOOTSTRAP_SAMPLES)]
    low, high = np.percentile(means, [2.5, 97.5])
    return (float(low), float(high))


def percentile(values: Sequence[float], share: float) -> float:
    """The value under which `share` (0 to 100) percent of the values are; 0 of none."""
    return float(np.percentile(values, share)) if values else 0.0
