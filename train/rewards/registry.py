"""The rewards by name, each in two variants: as its paper prints it, and as our own recipes use it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from pydantic import ValidationError

from agent.errors import SetupError, wrong_fields
from train.rewards.base import Reward, RewardSettings, RewardTools
from train.rewards.dag import DagReward, DagSettings
from train.rewards.evidence import EvidenceReward, EvidenceSettings
from train.rewards.kg import KgReward, KgSettings
from train.rewards.multisearch import MultisearchReward, MultisearchSettings
from train.rewards.outcome import OutcomeReward, OutcomeSettings
from train.rewards.reflect import ReflectReward, ReflectSettings

_REWARDS: Final[Mapping[str, tuple[type[Reward[Any]], type[RewardSettings]]]] = MappingProxyType(
    {
        "multisearch": (MultisearchReward, MultisearchSettings),
        "dag": (DagReward, DagSettings),
        "evidence": (EvidenceReward, EvidenceSettings),
        "reflect": (ReflectReward, ReflectSettings),
        "kg": (KgReward, KgSettings),
        "outcome": (OutcomeReward, OutcomeSettings),
    }
)
_VARIANTS: Final = ("ours", "printed")


def reward_names() -> list[str]:
    return list(_REWARDS)


def settings_of(name: str, settings: Mapping[str, object] | None = None) -> RewardSettings:
    """The settings of a reward.

    Args:
        name: one of `reward_names()`.
        settings: as a recipe has them; `variant` says what they change: "ours" (the default) or "printed".

    Raises:
        SetupError: no such reward or variant, or a setting that it does not have; the sentence names it.
    """
    if name not in _REWARDS:
        raise SetupError(f"there is no reward {name!r}; choose from: {', '.join(_REWARDS)}")
    given = dict(settings or {})
    variant = given.pop("variant", "ours")
    if variant not in _VARIANTS:
        raise SetupError(f"the reward {name!r} has no variant {variant!r}; choose from: {', '.join(_VARIANTS)}")
    kind = _REWARDS[name][1]
    try:
        return kind.model_validate({**(kind.ours if variant == "ours" else {}), **given})
    except ValidationError as error:
        raise SetupError(f"the settings of the reward {name!r} cannot be used: {wrong_fields(error)}") from error


def reward_of(
    name: str, settings: Mapping[str, object] | RewardSettings | None = None, *, tools: RewardTools | None = None
) -> Reward[Any]:
    """A reward, ready to score.

    Args:
        name: one of `reward_names()`.
        settings: as `settings_of` takes or gives them.
        tools: judge, reader and vectors.

    Raises:
        SetupError: as `settings_of`, or a tool is missing that the settings need.
    """
    own = settings if isinstance(settings, RewardSettings) else settings_of(name, settings)
    kind, wanted = _REWARDS[name]
    if not isinstance(own, wanted):
        raise SetupError(f"these are settings of another reward than {name!r}")
    return kind(own, tools or RewardTools())
