"""Generator 1, frozen: it makes test-v1 and the worlds of the first checkpoint's recipe, byte for byte. Do not mend it.

The same seed must go on giving the same world, so also its vocabulary and every order of its draws stay as they are.
"""

from agent.world.v1.make import first_card, make_world

__all__ = ["first_card", "make_world"]
