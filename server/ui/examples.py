"""Questions that a newcomer may begin with: of the little world, where it answers. Nothing else knows its questions."""

from typing import Final

from agent.build_sources import uses_world
from agent.settings import CairnSettings
from agent.world.store import load_world

_KINDS: Final = ("chain2", "comparison", "intersection", "chain3", "time")


def examples_of(settings: CairnSettings) -> tuple[str, ...]:
    """One question of each of a few kinds; none where something else than the little world is searched."""
    if not uses_world(settings):
        return ()
    asked = load_world(settings.world).questions
    first = {question.type: question.question for question in reversed(asked)}
    return tuple(first[kind] for kind in _KINDS if kind in first)
