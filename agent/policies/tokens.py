"""Text to token ids and back, for byte-level tokenizers.

Control tokens come from ids that were sampled and from tags that the loop placed, never from text that looks like them.
"""

import codecs
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from tokenizers import Tokenizer


class Codec:
    """One tokenizer.json. Where no tags are given that count, text is only text."""

    def __init__(self, text: str, *, ends: Sequence[str | int]) -> None:
        """Read the content of a tokenizer.json.

        Args:
            text: of the file.
            ends: tokens that end the policy's turn, as texts or ids.

        Raises:
            ValueError: it is not a byte-level tokenizer, or has none of `ends`.
        """
        try:
            fields: dict[str, Any] = json.loads(text)
            plain: dict[str, Any] = fields | {
                "added_tokens": [],
                "post_processor": None,
                "truncation": None,
                "padding": None,
            }
            full = Tokenizer.from_str(text)
            self._plain = Tokenizer.from_str(json.dumps(plain))
        except Exception as error:  # tokenizers raises nothing narrower
            raise ValueError(f"it cannot be read: {error}") from error
        if not _is_byte_level(fields):
            raise ValueError("it is not a byte-level tokenizer")
        self._ids: dict[str, int] = full.get_vocab(with_added_tokens=True)
        self.tokens: list[str] = [""] * (max(self._ids.values()) + 1)
        for token, number in self._ids.items():
            self.tokens[number] = token
        known = [number for end in ends if (number := self._end(end)) is not None]
        if not known:
            raise ValueError(f"it has no token {' or '.join(map(str, ends))}")
        self.eos = known[0]
        self.ends = frozenset(known)
        """Tokens that end the policy's turn. Neither they nor special tokens have a text."""
        silent = {int(token["id"]) for token in fields["added_tokens"] if token["special"]} | self.ends
        added = {str(token["content"]) for token in fields["added_tokens"]}
        self.special = tuple(sorted(added))
        """Every token beside those of plain text."""
        self._bytes: list[bytes] = [b""] * len(self.tokens)
        for token, number in self._ids.items():
            if number not in silent:
                self._bytes[number] = token.encode() if token in added else _raw(token)

    def _end(self, end: str | int) -> int | None:
        if isinstance(end, str):
            return self._ids.get(end)
        return end if 0 <= end < len(self.tokens) and self.tokens[end] else None

    def id_of(self, token: str) -> int | None:
        """The id of a text that is one token, for example a tag; None where it only looks like the bytes of one."""
        number = self._ids.get(token)
        says = number is not None and (token in self.special or self._bytes[number] == token.encode())
        return number if says else None

    def normal(self, text: str) -> str:
        """The text as its ids will say it: some tokenizers compose characters before they encode them."""
        normalizer = self._plain.normalizer
        return normalizer.normalize_str(whole(text)) if normalizer else whole(text)

    def encode(self, text: str, *, tags: Iterable[str] = ()) -> tuple[int, ...]:
        """The ids of a text. Only `tags` become control tokens; every other mark is plain text."""
        return self.encode_pieces(split_tags(text, tags))

    def encode_pieces(self, pieces: Iterable[tuple[str, bool]]) -> tuple[int, ...]:
        """The ids of pieces; the flag says whether a piece is a tag or plain text. Neighbours that are text are one."""
        ids: list[int] = []
        waiting = ""
        for piece, is_tag in pieces:
            known = self._ids.get(piece) if is_tag else None
            if known is None:
                waiting += piece
                continue
            ids += self._encode_plain(waiting)
            waiting = ""
            ids.append(known)
        ids += self._encode_plain(waiting)
        return tuple(ids)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids. The end of the turn has none, nor have ids that the model has and the tokenizer has not."""
        return b"".join(self._bytes[number] for number in ids if number < len(self._bytes)).decode("utf-8", "replace")

    def stream(self) -> "TextStream":
        return TextStream(self._bytes)

    def _encode_plain(self, text: str) -> list[int]:
        return self._plain.encode(whole(text), add_special_tokens=False).ids if text else []


class TextStream:
    """Decodes ids as they come; a character whose bytes are spread over tokens appears when it is whole."""

    def __init__(self, table: list[bytes]) -> None:
        self._table = table
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, number: int) -> str:
        return self._decoder.decode(self._table[number] if number < len(self._table) else b"")

    def end(self) -> str:
        """What is left when nothing more comes: the mark for a character that never became whole, or nothing."""
        return self._decoder.decode(b"", final=True)


def whole(text: str) -> str:
    """The text with a mark for each half of a surrogate pair that stands alone: it is no character and has no bytes."""
    return _LONE.sub("\ufffd", text)


def split_tags(text: str, tags: Iterable[str]) -> list[tuple[str, bool]]:
    """The text in pieces, each with whether it is one of `tags`."""
    marks = sorted(tags, key=len, reverse=True)
    if not marks:
        return [(text, False)]
    parts = re.split(f"({'|'.join(map(re.escape, marks))})", text)
    return [(part, place % 2 == 1) for place, part in enumerate(parts) if part]


def _is_byte_level(fields: dict[str, Any]) -> bool:
    decoder: dict[str, Any] = fields.get("decoder") or {}
    return any(part.get("type") == "ByteLevel" for part in [decoder, *decoder.get("decoders", [])])


def _alphabet() -> dict[str, int]:
    """The character that stands for each byte in a byte-level vocabulary (Radford et al. 2019).

    A printable byte stands for itself; the others stand, in order, behind the first 256 characters.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(hidden)}


_LONE = re.compile("[\ud800-\udfff]")
_BYTE = _alphabet()


def _raw(token: str) -> bytes:
    try:
        return bytes(_BYTE[character] for character in token)
    except KeyError:
        return token.encode()
