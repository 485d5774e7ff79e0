"""The little world: a generated universe to search, with questions whose answers are known."""

from agent.world.pages import Document
from agent.world.questions import Lookup, Question
from agent.world.store import build_world, frozen_lists, load_world
from agent.world.world import WORLD_SOURCES, World, make_world

__all__ = [
    "WORLD_SOURCES",
    "Document",
    "Lookup",
    "Question",
    "World",
    "build_world",
    "frozen_lists",
    "load_world",
    "make_world",
]
