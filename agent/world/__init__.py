"""The little world: a generated universe to search, with questions whose answers are known. train/world makes it."""

from agent.world.records import Document, Lookup, Question
from agent.world.store import frozen_lists, load_world
from agent.world.world import WORLD_SOURCES, World

__all__ = [
    "WORLD_SOURCES",
    "Document",
    "Lookup",
    "Question",
    "World",
    "frozen_lists",
    "load_world",
]
