"""Text as every database takes it."""

from agent.text import whole


def storable(text: str) -> str:
    """The text with a replacement mark for what no database takes: NUL, and half a surrogate pair."""
    return whole(text).replace("\x00", "\ufffd")
