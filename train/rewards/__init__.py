"""Rewards: from a finished rollout and its task to parts by name, or to None where the rollout must be masked.

docs/rewards.md has the formulas, their extremes, and what each can be cheated with.
"""

from train.rewards.base import Reward, Rewarded, RewardSettings, RewardTools
from train.rewards.registry import reward_names, reward_of, settings_of
from train.rewards.support.masking import Masked, why_masked
from train.rewards.support.outside import EndpointJudge, EndpointReader, LocalReader
from train.rewards.support.vectors import encoder_vectors, hashed_words
from train.rewards.task import Task

__all__ = [
    "EndpointJudge",
    "EndpointReader",
    "LocalReader",
    "Masked",
    "Reward",
    "RewardSettings",
    "RewardTools",
    "Rewarded",
    "Task",
    "encoder_vectors",
    "hashed_words",
    "reward_names",
    "reward_of",
    "settings_of",
    "why_masked",
]
