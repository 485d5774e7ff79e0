"""Text as every database takes it, and as SQLite gives it: a column there holds whatever was written."""

from agent.sanitize.text import whole


def storable(text: str) -> str:
    """The text with a replacement mark for what no database takes: NUL, and half a surrogate pair."""
    return whole(text).replace("\x00", "\ufffd")


def read_text(value: object) -> str:
    """What a text column holds, as text, whatever another version wrote there."""
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)
