"""The tokenizer of a GGUF: the ids that transformers and llama.cpp give, on texts of every kind."""

import importlib
import json
import random
import re
import sys
import unicodedata
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from agent.errors import CheckpointError
from agent.models.gguf_file import open_gguf
from agent.models.tokenizer import begins, gguf_tokenizer, tokenizer_of_gguf, tokens_of
from agent.policies.tokens import Codec
from tests.agent.models.case import TEMPLATE, alphabet, real_gguf, tokens, write_small
from tests.shipped import HUB

ROOT: Final = Path(__file__).parents[3]
TEXTS: Final = 10_000
SAMPLES: Final = (
    *("Die Straße ist 12,5 km lang – „schön“, nicht?", "Où est né l’auteur de « Les Misérables » ?"),
    *(
        "誰が「雪国」を書いたのか。1968年にノーベル賞",
        "Кто написал «Войну и мир» в 1869 году?",
        "من كتب ألف ليلة وليلة؟",
    ),
    *(
        "हिन्दी में प्रश्न क्या है?",
        "한국의 수도는 어디입니까?",
        "איפה נולד הסופר?",
        "ใครเป็นผู้แต่ง",
        "Ποιος έγραψε την Οδύσσεια;",
    ),
    *(
        "def f(x):\n\treturn x**2  # 2024\n\n\n",
        "{'a': [1, 22, 333], \"b\": null}\r\n",
        "  leading\tand trailing   ",
        "🙂👩‍👩‍👧🏽 ok",
    ),
    *(
        "I'll they're we've don't IT'S",
        "a\u0301 \u00e1 \ufb01 \u2126 \u1e9e",
        "<|im_end|> <|im_start|>user\n</s> <think>",
    ),
)
"""Languages, code, spaces, contractions, composed characters, marks that look like control tokens."""


def texts(count: int) -> list[str]:
    """Pieces of this repository's pages and code, of `SAMPLES`, and characters from all of Unicode, from a seed."""
    chance = random.Random(0)
    files = [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "agent").rglob("*.py")), ROOT / "README.md"]
    whole = "\n".join(file.read_text(encoding="utf-8") for file in files)
    characters = [
        chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) not in {"Cs", "Cn"}
    ]

    def one(at: int) -> str:
        if at % 4 == 0:
            return "".join(chance.choices(characters, k=chance.randint(1, 40)))
        if at % 4 == 1:
            parts = [*SAMPLES, *chance.choices(characters, k=4), " ", "\n", "  ", "7"]
            return "".join(chance.choices(parts, k=chance.randint(1, 6)))
        begin = chance.randrange(len(whole))
        return whole[begin : begin + chance.randint(1, 400)]

    return [one(at) for at in range(count)]


def _has_numerals(text: str) -> bool:
    """Numerals beside 0 to 9."""
    return any(character.isnumeric() and not character.isascii() for character in text)


def without_a_token(tokenizer_json: str) -> set[int]:
    """The bytes that a vocabulary has no token for."""
    vocabulary = json.loads(tokenizer_json)["model"]["vocab"]
    return {byte for byte, character in enumerate(alphabet()) if character not in vocabulary}


@pytest.fixture(scope="module")
def real() -> str:
    return tokenizer_of_gguf(open_gguf(real_gguf())).json


@pytest.mark.slow
@pytest.mark.train
def test_ten_thousand_texts_have_the_ids_that_transformers_gives(real: str):
    """transformers leaves out that SmolLM2 takes each digit alone, and puts <|endoftext|> for a byte without a token.

    The first shows where two spaces or line ends stand before a digit, and in numerals of other scripts. For texts
    without either, its tokenizer of the GGUF is compared as it is; for all texts, with the published way of cutting put
    into it. llama.cpp cuts as we do (tests/clients/test_llama_cpp_files.py).
    """
    transformers: Any = importlib.import_module("transformers")
    path = real_gguf()
    said: dict[str, Any] = {"gguf_file": path.name}
    theirs: Any = transformers.AutoTokenizer.from_pretrained(path.parent, trust_remote_code=False, **said)
    samples, ours = texts(TEXTS), Tokenizer.from_str(real)
    found = [each.ids for each in ours.encode_batch(samples, add_special_tokens=False)]
    missing = without_a_token(real)
    as_it_is = [each.ids for each in theirs.backend_tokenizer.encode_batch(samples, add_special_tokens=False)]
    plain = [
        at
        for at, text in enumerate(samples)
        if not missing & set(text.encode()) and not re.search(r"\s\s[0-9]", text) and not _has_numerals(text)
    ]
    assert len(plain) > TEXTS / 2
    assert [found[at] for at in plain] == [as_it_is[at] for at in plain]
    fields = json.loads(theirs.backend_tokenizer.to_str())
    fields["pre_tokenizer"] = json.loads(real)["pre_tokenizer"]
    fields["model"] |= {"unk_token": None, "byte_fallback": False}
    published = Tokenizer.from_str(json.dumps(fields))
    assert found == [each.ids for each in published.encode_batch(samples, add_special_tokens=False)]


def test_the_real_model_ends_a_turn_as_its_metadata_say_and_keeps_its_template():
    read = tokenizer_of_gguf(open_gguf(real_gguf()))
    assert (read.end, read.begin, read.unknown, read.padding) == (
        "<|im_end|>",
        "<|im_start|>",
        "<|endoftext|>",
        "<|im_end|>",
    )
    assert read.ids() == {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
    assert read.chat_template is not None
    assert "<|im_start|>assistant" in read.chat_template
    assert not begins(read.json)
    codec = Codec(read.json, ends=[read.end])
    assert codec.eos == 2
    assert 2 not in codec.encode("<|im_end|>")  # text that only looks like it
    assert codec.decode(codec.encode("in 2024")) == "in 2024"
    assert len(codec.encode("2024")) == 4


def test_a_byte_without_a_token_is_dropped_and_never_becomes_a_control_token(real: str):
    assert {0x04, 0xC0, 0xFF} < without_a_token(real)
    codec = Codec(real, ends=["<|im_end|>"])
    assert codec.encode("a\x04b") == codec.encode("a") + codec.encode("b")


@pytest.mark.parametrize("pre", ["smollm", "default", "llama-bpe", "qwen2"])
@settings(max_examples=40)
@given(text=st.text(max_size=60) | st.lists(st.sampled_from(SAMPLES)).map("".join))
def test_text_survives_in_every_way_of_cutting(tmp_path_factory: pytest.TempPathFactory, pre: str, text: str):
    path = tmp_path_factory.getbasetemp() / f"{pre}.gguf"
    if not path.exists():
        write_small(path, pre=pre)
    read = tokenizer_of_gguf(open_gguf(path))
    codec = Codec(read.json, ends=[read.end])
    assert codec.decode(codec.encode(text)) == codec.normal(text)
    assert codec.normal(text) == (unicodedata.normalize("NFC", text) if pre == "qwen2" else text)


@pytest.mark.parametrize(
    ("pre", "expected"),
    [
        ("smollm", ["Ġ", "1", "2", "Ġthe"]),
        ("default", ["Ġ", "12", "Ġthe"]),
        ("llama-bpe", ["Ġ", "12", "Ġthe"]),
        ("qwen2", ["Ġ", "1", "2", "Ġthe"]),
    ],
)
def test_each_way_cuts_digits_as_it_was_published(tmp_path: Path, pre: str, expected: list[str]):
    write_small(tmp_path / "m.gguf", pre=pre)
    read = Tokenizer.from_str(tokenizer_of_gguf(open_gguf(tmp_path / "m.gguf")).json)
    assert read.encode(" 12 the").tokens == expected


def test_a_model_that_begins_every_text_with_a_token_says_so(tmp_path: Path):
    write_small(tmp_path / "m.gguf", tokenizer__ggml__add_bos_token=True)
    read = tokenizer_of_gguf(open_gguf(tmp_path / "m.gguf"))
    assert begins(read.json)
    assert Tokenizer.from_str(read.json).encode("the").tokens == ["<|im_start|>", "the"]


@pytest.mark.parametrize("pre", ["smollm", "gpt-2", "llama-bpe", "qwen2"])
def test_a_tokenizer_goes_back_into_a_gguf(tmp_path: Path, pre: str):
    write_small(tmp_path / "m.gguf", pre=pre)
    file = open_gguf(tmp_path / "m.gguf")
    said = gguf_tokenizer(tokenizer_of_gguf(file).json, len(tokens()) + 2)
    assert said["pre"] == pre
    assert said["tokens"] == [*tokens(), "<extra_id_267>", "<extra_id_268>"]
    types: Any = file.metadata["tokenizer.ggml.token_type"]
    assert said["types"] == [*types, 5, 5]
    assert said["merges"] == file.metadata["tokenizer.ggml.merges"]


def test_a_tokenizer_that_llama_cpp_has_no_name_for_is_refused():
    shipped = (HUB / "tokenizer.json").read_text(encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"llama\.cpp has no name for, so it cannot be saved as GGUF"):
        gguf_tokenizer(shipped, 4096)
    with pytest.raises(CheckpointError, match="embeddings 10 rows; they are of different models"):
        tokens_of(shipped, 10)


REFUSED: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "sentencepiece": ({"tokenizer__ggml__model": "llama"}, "of the kind 'llama'.*byte-level ones"),
    "way": ({"tokenizer__ggml__pre": "tekken"}, r"splits text as 'tekken'.*smollm, gpt-2"),
    "tokens": ({"tokenizer__ggml__tokens": None}, r"no tokenizer\.ggml\.tokens"),
    "twice": ({"tokenizer__ggml__tokens": ["a", "a"]}, "two of its tokens are the same"),
    "merges": ({"tokenizer__ggml__merges": ["t h e"]}, "are not pairs of its tokens"),
    "strange": ({"tokenizer__ggml__merges": ["Ġthe Ġthe"]}, "are not pairs of its tokens"),
    "types": ({"tokenizer__ggml__token_type": [1, 1]}, "token_type does not fit"),
    "end": ({"tokenizer__ggml__eos_token_id": 999}, "eos_token_id is none of its tokens"),
    "no_end": ({"tokenizer__ggml__eos_token_id": None}, "names no token that ends a turn"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_tokenizer_that_cannot_be_built_is_refused_in_a_sentence(tmp_path: Path, name: str):
    values, said = REFUSED[name]
    write_small(tmp_path / "m.gguf", **values)
    with pytest.raises(CheckpointError, match=said):
        tokenizer_of_gguf(open_gguf(tmp_path / "m.gguf"))


def test_the_texts_are_of_all_kinds():
    found = "".join(islice(texts(400), 400))
    assert {unicodedata.category(character)[0] for character in found} >= set("LMNPSZC")
    assert TEMPLATE  # what the small models carry
