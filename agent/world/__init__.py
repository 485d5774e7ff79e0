"""The little world: a generated universe to search, with questions whose answers are known."""

from agent.world.records import Document, Lookup, Question
from agent.world.shards import make_world
from agent.world.store import build_world, frozen_lists, load_world
from agent.world.world import WORLD_SOURCES, World

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
