"""The policy's own tokenizer: byte-level BPE that spells invented names and numbers in the same few pieces everywhere.

A capitalised word never takes the space before it, and starts with a piece of at most four letters. So a name is the
same tokens after a space, after a tag and at the start of a line, and copying it is easy. Each digit is a token: years
are compared by a few pairs of digits.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from agent.errors import SetupError
from agent.policies.tokens import split_tags

PAD, EOS = "<pad>", "<eos>"
_PIECES = r"[A-Z][a-z]{0,3}| ?[a-z]+|\d|\n|[^\S\n]|[^\sA-Za-z\d]+"
_TAG = re.compile(r"</?[a-z_]+>")
TAGS = tuple(
    f"<{slash}{name}>"
    for name in (
        *("think", "search", "information", "merge", "evidence", "answer", "fill", "parents", "reflect"),
        *("result", "observation", "original_evidence", "question"),
    )
    for slash in ("", "/")
)


def train_tokenizer(texts: Iterable[str], *, vocabulary: int) -> Tokenizer:
    """Train a tokenizer of `vocabulary` tokens; the tags of the built-in protocols are single, not special, tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - len(TAGS),
        special_tokens=[PAD, EOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((_TAG.sub("", text) for text in texts), trainer)
    tokenizer.add_tokens([AddedToken(tag, normalized=False, special=False) for tag in TAGS])
    return tokenizer


def token_id(tokenizer: Tokenizer, token: str) -> int:
    """The id of a token that must be there.

    Raises:
        SetupError: the tokenizer does not have it.
    """
    found = tokenizer.token_to_id(token)
    if found is None:
        raise SetupError(f"the tokenizer has no token {token!r}: it was made for other protocols; train a new one")
    return found


def encode_all(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Ids of each text, encoded on its own."""
    return [encoding.ids for encoding in tokenizer.encode_batch(list(texts), add_special_tokens=False)]


def encode_plain(tokenizer: Tokenizer, texts: Sequence[str], *, marks: Sequence[str] = ()) -> list[list[int]]:
    """The same, where special tokens in a text are text, but for `marks`."""
    before = tokenizer.encode_special_tokens
    tokenizer.encode_special_tokens = True
    try:
        return _around_marks(tokenizer, texts, _known(tokenizer, marks, special=True))
    finally:
        tokenizer.encode_special_tokens = before


def encode_marked(tokenizer: Tokenizer, texts: Sequence[str], *, marks: Sequence[str]) -> list[list[int]]:
    """The same, where every token beside those of plain text is text, but for `marks`: as engines encode passages."""
    return _around_marks(_without_added(tokenizer), texts, _known(tokenizer, marks))


@lru_cache(maxsize=4)
def _without_added(tokenizer: Tokenizer) -> Tokenizer:
    return Tokenizer.from_str(json.dumps(json.loads(tokenizer.to_str()) | {"added_tokens": []}))


def _known(tokenizer: Tokenizer, marks: Sequence[str], *, special: bool = False) -> dict[str, int]:
    """Marks that are one token, with its id; of special ones alone where others are one anyway."""
    named = {token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special}
    return {
        mark: number
        for mark in marks
        if (number := tokenizer.token_to_id(mark)) is not None and (mark in named or not special)
    }


def _around_marks(tokenizer: Tokenizer, texts: Sequence[str], marks: Mapping[str, int]) -> list[list[int]]:
    split = [[part for part, _ in split_tags(text, marks)] for text in texts]
    encoded = iter(encode_all(tokenizer, [part for parts in split for part in parts if part not in marks]))
    ids = [[[marks[part]] if part in marks else next(encoded) for part in parts] for parts in split]
    return [[number for part in parts for number in part] for parts in ids]
