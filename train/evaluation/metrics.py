"""How an answer is scored against gold answers: exact match, F1 and cover, after a named normalisation.

Cover is CEM of the papers, with whole words. Of several gold answers the best counts. An answer that says nothing is
wrong, whatever the gold answers are.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from train.evaluation.normalisations import DEFAULT, Normalise, squad
from train.evaluation.statistics import bootstrap

NORMALISATION: Final = DEFAULT
HOTPOTQA_LABELS: Final = frozenset({"yes", "no", "noanswer"})

normalise = squad


def exact_match(prediction: str, golds: Sequence[str], *, by: Normalise = squad) -> bool:
    said = by(prediction)
    return bool(said) and any(said == by(gold) for gold in golds)


def f1(prediction: str, golds: Sequence[str], *, by: Normalise = squad) -> float:
    """F1 over words, 0 to 1, of the gold answer that fits best (Rajpurkar et al., 2016)."""
    said = by(prediction).split()
    return max((_f1(said, by(gold).split()) for gold in golds), default=0.0)


def f1_hotpotqa(prediction: str, golds: Sequence[str]) -> float:
    """F1 as HotpotQA and 2WikiMultiHopQA publish it: where one side is yes, no or noanswer, only equality counts."""
    said = squad(prediction)
    plain = [squad(gold) for gold in golds]
    if said in HOTPOTQA_LABELS:
        return float(said in plain)
    return max((_f1(said.split(), gold.split()) for gold in plain if gold not in HOTPOTQA_LABELS), default=0.0)


def _f1(said: Sequence[str], gold: Sequence[str]) -> float:
    common = (Counter(said) & Counter(gold)).total()
    return 2 * common / (len(said) + len(gold)) if common else 0.0


def cover(prediction: str, golds: Sequence[str], *, by: Normalise = squad) -> bool:
    """Whether a gold answer is in the prediction as whole words, in its order."""
    said = f" {by(prediction)} "
    return any(f" {plain} " in said for plain in map(by, golds) if plain)


def cover_anywhere(prediction: str, golds: Sequence[str], *, by: Normalise = squad) -> bool:
    """Cover as a search for the characters, as several papers have it: it finds "no" in "nothing"."""
    said = by(prediction)
    return any(plain in said for plain in map(by, golds) if plain)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def interval(values: Sequence[float], *, seed: int = 0) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean; the same seed gives the same interval."""
    if not values:
        return (0.0, 0.0)
    found = bootstrap(values, seed=seed)
    return (found.low, found.high)


def percentile(values: Sequence[float], share: float) -> float:
    """The value under which `share` (0 to 100) percent of the values are; 0 of none."""
    return float(np.percentile(values, share)) if values else 0.0
