"""The tokenizer in a GGUF's metadata as a tokenizer.json, and back: byte-level BPE, as llama.cpp splits text.

A GGUF holds tokens, merges and the name of a way to split text into words first (`tokenizer.ggml.pre`). What each name
stands for is in `_SPLITTERS`; the regular expressions are those that the models were published with. A byte that the
vocabulary has no token for has none here either, and is dropped, as in llama.cpp.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from agent.errors import CheckpointError
from agent.models.gguf_file import GgufFile

NORMAL: Final = 1
CONTROL: Final = 3
OF_USER: Final = 4
UNUSED: Final = 5
"""Types of tokens, as llama.cpp numbers them."""
_LLAMA3: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
_QWEN2: Final = _LLAMA3.replace("{1,3}", "")


@dataclass(frozen=True)
class Splitter:
    """How text is cut into words before pairs are merged."""

    split: str = ""
    """A regular expression; without one, GPT-2's."""
    digits: bool = False
    """Each digit alone, first."""
    composed: bool = False
    """Characters are composed first (NFC)."""
    whole_words: bool = False
    """A word that is a token is taken as it is, without merging."""


_SPLITTERS: Final[Mapping[str, Splitter]] = {
    "smollm": Splitter(digits=True),
    "gpt-2": Splitter(),
    "llama-bpe": Splitter(split=_LLAMA3, whole_words=True),
    "qwen2": Splitter(split=_QWEN2, composed=True),
}
_SAME: Final = {"default": "gpt-2", "llama3": "llama-bpe", "llama-v3": "llama-bpe", "deepseek-r1-qwen": "qwen2"}
"""Other names of the same ways."""


@dataclass(frozen=True)
class TokenizerFiles:
    """What the hub's form says of a tokenizer."""

    json: str
    """The content of tokenizer.json."""
    end: str
    """The token that ends a turn."""
    begin: str | None = None
    unknown: str | None = None
    padding: str | None = None
    chat_template: str | None = None

    def ids(self) -> dict[str, int]:
        """The ids of its named tokens, under the names of config.json."""
        known = Tokenizer.from_str(self.json)
        named = {"bos_token_id": self.begin, "eos_token_id": self.end, "pad_token_id": self.padding}
        found = {key: known.token_to_id(token) for key, token in named.items() if token is not None}
        return {key: number for key, number in found.items() if number is not None}

    def config(self) -> dict[str, Any]:
        """The content of tokenizer_config.json."""
        named = {"bos_token": self.begin, "unk_token": self.unknown, "pad_token": self.padding}
        return {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "add_prefix_space": False,
            "clean_up_tokenization_spaces": False,
            "eos_token": self.end,
            **{key: token for key, token in named.items() if token is not None},
        }


def tokenizer_of_gguf(file: GgufFile) -> TokenizerFiles:
    """Build the tokenizer of a GGUF.

    Raises:
        CheckpointError: it is none of bytes, splits text in an unknown way, or its parts do not fit.
    """
    kind, name = file.text("tokenizer.ggml.model"), file.text("tokenizer.ggml.pre") or "default"
    splitter = _SPLITTERS.get(_SAME.get(name, name))
    if kind != "gpt2" or splitter is None:
        raise CheckpointError(
            f"{file.path} has a tokenizer of the kind {str(kind)[:40]!r} that splits text as {name[:40]!r}; Cairn "
            f"builds byte-level ones ('gpt2') that split as {', '.join([*_SPLITTERS, *_SAME])}"
        )
    tokens, merges = _strings(file, "tokens"), _strings(file, "merges")
    vocabulary = {token: number for number, token in enumerate(tokens)}
    if len(vocabulary) != len(tokens):
        raise file.wrong("two of its tokens are the same")
    pairs = [tuple(merge.split(" ")) for merge in merges]
    if not all(len(pair) == 2 and pair[0] + pair[1] in vocabulary for pair in pairs):
        raise file.wrong("its tokenizer.ggml.merges are not pairs of its tokens")
    if any(part not in vocabulary for pair in pairs for part in pair):
        raise file.wrong("its tokenizer.ggml.merges name tokens that it does not have")
    begin = _named(file, tokens, "bos")
    built = _built(splitter, vocabulary, cast(list[tuple[str, str]], pairs), _added(file, tokens))
    if begin is not None and file.flag("tokenizer.ggml.add_bos_token"):
        single = f"{begin}:0 $A:0"
        built.post_processor = processors.TemplateProcessing(
            single=single, pair=f"{single} {begin}:1 $B:1", special_tokens=[(begin, vocabulary[begin])]
        )
    end = _named(file, tokens, "eos")
    if end is None:
        raise file.wrong("it names no token that ends a turn (tokenizer.ggml.eos_token_id)")
    return TokenizerFiles(
        json=built.to_str(),
        end=end,
        begin=begin,
        unknown=_named(file, tokens, "unknown"),
        padding=_named(file, tokens, "padding"),
        chat_template=file.text("tokenizer.chat_template"),
    )


def begins(tokenizer_json: str) -> bool:
    """Whether a tokenizer puts a token before every text."""
    post: dict[str, Any] = json.loads(tokenizer_json).get("post_processor") or {}
    parts: list[dict[str, Any]] = [post, *post.get("processors", [])]
    return any("SpecialToken" in first for part in parts for first in part.get("single", [])[:1])


def tokens_of(tokenizer_json: str, rows: int) -> list[str]:
    """The tokens by their ids, one for each row of the embeddings.

    Raises:
        CheckpointError: the tokenizer has more tokens than there are rows.
    """
    ids = Tokenizer.from_str(tokenizer_json).get_vocab(with_added_tokens=True)
    if max(ids.values()) >= rows:
        raise CheckpointError(
            f"the tokenizer has {max(ids.values()) + 1:,} tokens and the model's embeddings {rows:,} rows; they are of "
            "different models"
        )
    tokens = [""] * rows
    for token, number in ids.items():
        tokens[number] = token
    return [token or f"<extra_id_{number}>" for number, token in enumerate(tokens)]


def gguf_tokenizer(tokenizer_json: str, rows: int) -> dict[str, Any]:
    """What a GGUF says of a tokenizer: `pre`, `tokens`, `types` and `merges`.

    Raises:
        CheckpointError: llama.cpp has no name for the way in which it splits text, or it has more tokens than `rows`.
    """
    fields: dict[str, Any] = json.loads(tokenizer_json)
    model: dict[str, Any] = fields["model"]
    cut = _splitting(fields)
    pre = next((name for name, splitter in _SPLITTERS.items() if _splitting(_splitter_fields(splitter)) == cut), None)
    if model.get("type") != "BPE" or pre is None:
        raise CheckpointError(
            "the tokenizer splits text in a way that llama.cpp has no name for, so it cannot be saved as GGUF; "
            f"those of {', '.join(_SPLITTERS)} can"
        )
    tokens = tokens_of(tokenizer_json, rows)
    added = {int(token["id"]): bool(token["special"]) for token in fields["added_tokens"]}
    known = set(model["vocab"].values()) | set(added)
    types = [
        (CONTROL if added[number] else OF_USER) if number in added else NORMAL if number in known else UNUSED
        for number in range(rows)
    ]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    return {"pre": pre, "tokens": tokens, "types": types, "merges": merges}


def _built(
    splitter: Splitter, vocabulary: dict[str, int], pairs: list[tuple[str, str]], added: list[AddedToken]
) -> Tokenizer:
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs, ignore_merges=splitter.whole_words))
    if splitter.composed:
        made.normalizer = normalizers.NFC()
    bytes_alone = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not splitter.split)
    before: list[Any] = [pre_tokenizers.Digits(individual_digits=True)] if splitter.digits else []
    if splitter.split:
        before.append(pre_tokenizers.Split(Regex(splitter.split), behavior="isolated"))
    made.pre_tokenizer = pre_tokenizers.Sequence([*before, bytes_alone]) if before else bytes_alone
    made.decoder = decoders.ByteLevel()
    cast(Any, made).add_tokens(added)
    return made


def _splitter_fields(splitter: Splitter) -> dict[str, Any]:
    """What the tokenizer.json of a splitter says."""
    return json.loads(_built(splitter, {"a": 0}, [], []).to_str())


def _splitting(fields: dict[str, Any]) -> object:
    """How a tokenizer.json splits text, without what changes nothing of it."""

    def plain(part: Any) -> Any:
        if isinstance(part, list):
            return [plain(each) for each in cast(list[Any], part)]
        if isinstance(part, dict):
            named = cast(dict[str, Any], part)
            return {key: plain(value) for key, value in named.items() if key not in {"trim_offsets", "invert"}}
        return part

    def parts(part: Any, inner: str) -> list[Any]:
        """A sequence of one is that one, and of none is none."""
        if part is None:
            return []
        return [each for one in part[inner] for each in parts(one, inner)] if part["type"] == "Sequence" else [part]

    normal = parts(fields.get("normalizer"), "normalizers")
    return plain([normal, parts(fields.get("pre_tokenizer"), "pretokenizers")])


def _added(file: GgufFile, tokens: list[str]) -> list[AddedToken]:
    """The tokens that are whole in a text: control tokens, and those that the model's users added."""
    types = file.metadata.get("tokenizer.ggml.token_type")
    if not isinstance(types, np.ndarray) or len(types) != len(tokens):
        raise file.wrong("its tokenizer.ggml.token_type does not fit its tokens")
    return [
        AddedToken(token, normalized=False, special=kind == CONTROL)
        for token, kind in zip(tokens, types.tolist(), strict=True)
        if kind in {CONTROL, OF_USER} and token
    ]


def _strings(file: GgufFile, name: str) -> list[str]:
    found = file.metadata.get(f"tokenizer.ggml.{name}")
    if not isinstance(found, list) or not found:
        raise file.wrong(f"it has no tokenizer.ggml.{name}")
    return found


def _named(file: GgufFile, tokens: list[str], role: str) -> str | None:
    number = file.number(f"tokenizer.ggml.{role}_token_id")
    if number is None:
        return None
    if not isinstance(number, int) or not 0 <= number < len(tokens):
        raise file.wrong(f"its tokenizer.ggml.{role}_token_id is none of its tokens")
    return tokens[number]
