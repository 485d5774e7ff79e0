"""Text that every encoder takes. JSON can hold half a surrogate pair, which is no character and has no UTF-8 form."""


def whole(text: str) -> str:
    """The text with a question mark for each half of a surrogate pair."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
