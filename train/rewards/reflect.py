"""The rewards of "Learning When to Search" (its equations 6 to 12): format, queries, and an answer in two stages."""

from collections.abc import Collection, Sequence
from typing import ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from train.evaluation.words import words
from train.rewards.base import Parts, Reward, RewardSettings, RolloutView
from train.rewards.support.blocks import has_shape
from train.rewards.support.scores import Metric, score
from train.rewards.support.searches import RewardedRound, rejected, rounds_of, without_repeats
from train.rewards.support.vectors import cosines
from train.rewards.task import Task

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


THINK_ONCE = "thought (reflect |search information reflect ((thought )?search information reflect )*)answer "
THINK_ALWAYS = "thought (reflect |search information reflect (thought search information reflect )*)answer "


class ReflectSettings(RewardSettings):
    ours: ClassVar = {
        "right": "em",
        "similarity": "mean",
        "opposite": False,
        "always_concise": True,
        "most_query_words": 12,
        "prepositions": (),
        "unsearched": "if_right",
        "wrong_at_most": 0.0,
        "right_at_least": 0.1,
        "repeats": False,
        "blank": False,
        "rejected_plans": False,
    }

    right: Metric | Literal["judge"] = "judge"
    """Who says that the answer is right; a score of at least `right_from` is."""
    right_from: float = Field(default=0.5, gt=0, le=1)
    beta: float = Field(default=0.3, ge=0)
    stage: Literal[1, 2, "both", "scheduled"] = "scheduled"
    """`both`: the unified reward of section 4.3, which pays and charges for retrievals all the time."""
    switch: float = Field(default=0.5, ge=0, le=1)
    """Share of the training after which stage 2 begins; the paper gives none."""
    similarity: Literal["printed", "mean"] = "printed"
    """Of equation 8: the sum over pairs divided by N(N-1), or by half of that, which is the mean of its text."""
    opposite: bool = True
    """Whether a cosine below 0 pays."""
    always_concise: bool = False
    """Whether queries must be concise also where there are several retrievals."""
    most_query_words: int = Field(default=0, ge=0)
    """0: as many as it likes."""
    question_words: tuple[str, ...] = QUESTION_WORDS
    prepositions: tuple[str, ...] = PREPOSITIONS
    modifiers: tuple[str, ...] = MODIFIERS
    unsearched: Literal["free", "if_right"] = "free"
    """What r_s is without any query: 0; or 0 only where the answer is right, and -1 where it is not."""
    wrong_at_most: float | None = Field(default=None, le=1)
    """Most that stage 1 gives to a wrong answer, however much was retrieved."""
    right_at_least: float | None = Field(default=None, le=1)
    """Least that stage 2 gives to a right one."""
    repeats: bool = True
    """Whether stage 1 pays for a repeated query."""
    think_again: bool = False
    """Whether each search must follow a thought; the paper's own example has one thought alone."""
    blank: bool = True
    """Whether a block may be empty."""
    rejected_plans: bool = True
    """Whether a search that could not run is one in the format's eyes."""

    def bounds(self, *, rounds: int) -> tuple[float, float]:
        answers = [answer_part(r, n, s, self) for r in (True, False) for n in range(rounds + 1) for s in (1, 2, BOTH)]
        pairs = 1.0 if self.similarity == "mean" else 0.5
        return min(answers) - 2.0, max(answers) + (pairs if self.opposite and rounds > 1 else 0.0) + 1.0


BOTH: Final = 3
"""Both stages at once."""


def stage_at(progress: float, settings: ReflectSettings) -> int:
    """1, 2 or `BOTH`; `progress` is the share of the training that is done."""
    if settings.stage == "both":
        return BOTH
    if settings.stage != "scheduled":
        return settings.stage
    return 1 if progress < settings.switch else 2


def answer_part(right: bool, count: int, stage: int, settings: ReflectSettings) -> float:
    """r_a (equations 10 and 11), of `count` retrievals."""
    if right:
        value = 1.0 - settings.beta * count * (stage in (2, BOTH))
        return value if settings.right_at_least is None else max(value, settings.right_at_least)
    value = -1.0 + settings.beta * count * (stage in (1, BOTH))
    return value if settings.wrong_at_most is None else min(value, settings.wrong_at_most)


def counted(rounds: Sequence[RewardedRound], stage: int, settings: ReflectSettings) -> int:
    """RC. Stage 1 pays for retrievals, so there a repeat may be left out; stage 2 charges for each."""
    if stage == 1 and not settings.repeats:
        return sum(bool(one.queries) for one in without_repeats(rounds))
    return len(rounds)


def average_similarity(vectors: NDArray[np.float32], settings: ReflectSettings) -> float:
    """Equation 8, of [n, dimensions] with n > 1: from -1/2 to 1/2, or from -1 to 1 as a mean."""
    n = len(vectors)
    pairs = cosines(vectors)[np.triu_indices(n, k=1)]
    pairs = pairs if settings.opposite else np.maximum(pairs, 0.0)
    return float(pairs.sum()) / (n * (n - 1) / (2 if settings.similarity == "mean" else 1))


def search_part(queries: Sequence[str], count: int, similarity: float, right: bool, settings: ReflectSettings) -> float:
    """r_s (equation 9).

    Args:
        queries: all of them.
        count: of retrievals.
        similarity: of the queries, where there are several retrievals.
        right: whether the answer is.
        settings: with the word lists.
    """
    if not queries:
        return 0.0 if settings.unsearched == "free" or right else -1.0
    without = {*settings.question_words, *settings.prepositions, *settings.modifiers}
    concise = all(is_concise(query, without=without, most_words=settings.most_query_words) for query in queries)
    if count <= 1:
        return 0.0 if concise else -1.0
    return -1.0 if settings.always_concise and not concise else 0.0 - similarity


def format_part(rollout: RolloutView, settings: ReflectSettings) -> float:
    """r_f (equation 6): 1 if the whole output has the shape, else -1."""
    blocks, pattern = rollout.blocks, THINK_ALWAYS if settings.think_again else THINK_ONCE
    fine = rollout.ended_well and has_shape(blocks, pattern)
    fine = fine and (settings.blank or not any(block.blank for block in blocks))
    return 1.0 if fine and (settings.rejected_plans or not rejected(rollout.trace)) else -1.0


class ReflectReward(Reward[ReflectSettings]):
    name: ClassVar = "reflect"
    parts: ClassVar = ("answer", "search", "format")

    def needs(self) -> tuple[str, ...]:
        return ("judge",) if self.settings.right == "judge" else ()

    async def _score(self, rollout: RolloutView, task: Task, progress: float) -> Parts:
        settings, rounds = self.settings, rounds_of(rollout.trace)
        stage, right = stage_at(progress, settings), await self._right(rollout.answer, task)
        queries = [query.text for one in rounds for query in one.queries]
        many = len(rounds) > 1 and len(queries) > 1
        similarity = average_similarity(self.tools.vectors(queries), settings) if many else 0.0
        return {
            "answer": answer_part(right, counted(rounds, stage, settings), stage, settings),
            "search": search_part(queries, len(rounds), similarity, right, settings),
            "format": format_part(rollout, settings),
        }

    async def _right(self, answer: str | None, task: Task) -> bool:
        if answer is None or not any(c.isalnum() for c in answer):
            return False
        if self.settings.right == "judge" and not task.unanswerable:
            return await self.judged(task, answer) >= self.settings.right_from
        metric = "em" if self.settings.right == "judge" else self.settings.right
        return score(answer, task, metric) >= self.settings.right_from
