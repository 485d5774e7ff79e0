"""Questions that a newcomer may begin with: about Cairn's manual, or in the little world, where these are searched."""

from typing import Final

from agent.build.sources import uses_manual, uses_world
from agent.settings import CairnSettings
from agent.world.store import load_world

ABOUT_CAIRN: Final = (
    "What is Cairn?",
    "Which protocols does Cairn support?",
    "How many runs are kept?",
    "How does Cairn check claims?",
    "Does Cairn need a GPU?",
)
_KINDS: Final = ("chain2", "comparison", "intersection", "chain3", "time")


def examples_of(settings: CairnSettings) -> tuple[str, ...]:
    """A few questions that can be answered; none where only the user knows what is searched."""
    if uses_manual(settings):
        return ABOUT_CAIRN
    if not uses_world(settings):
        return ()
    questions = load_world(settings.world).questions
    first = {question.type: question.question for question in reversed(questions)}
    return tuple(first[kind] for kind in _KINDS if kind in first)
