"""The two long parts of an index, words and vectors, so that other processes can make them. It starts none.

What is sent there is text and the model's name; each process loads the model once, and must find the same one.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeVar

from agent.errors import CorpusError
from agent.sources.corpus.encoder import Encoder, Vectors

T = TypeVar("T")
R = TypeVar("R")


class ItemSpread(Protocol):
    """What does the work, in the items' order; `agent.parallel.spread.Spread` is one."""

    @property
    def here(self) -> bool:
        """Whether that is this process."""
        ...

    def mapped(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]: ...


@dataclass(frozen=True)
class EncoderModel:
    """An encoder, as another process can load it."""

    name: str
    query_prefix: str
    passage_prefix: str
    half: bool
    fingerprint: str

    @classmethod
    def of(cls, encoder: Encoder) -> "EncoderModel":
        half = encoder.dtype == "bfloat16"
        return cls(encoder.name, encoder.query_prefix, encoder.passage_prefix, half, encoder.fingerprint)


@dataclass(frozen=True)
class Texts:
    """Passages, and the model that is to encode them."""

    model: EncoderModel
    texts: list[str]


def encode(texts: Texts) -> Vectors:
    """Shape (texts, dim).

    Raises:
        SetupError: the model cannot be loaded here; CorpusError where it is another one.
    """
    return _encoder(texts.model).encode_passages(texts.texts)


def encode_with(spread: ItemSpread, encoder: Encoder) -> Callable[[Iterable[list[str]]], Iterator[Vectors]]:
    """What gives the vectors of list after list."""
    model = EncoderModel.of(encoder)
    return lambda lists: spread.mapped(encode, (Texts(model, texts) for texts in lists))


@lru_cache(maxsize=1)
def _encoder(model: EncoderModel) -> Encoder:
    encoder = Encoder.load(
        model.name, query_prefix=model.query_prefix, passage_prefix=model.passage_prefix, half=model.half
    )
    if encoder.fingerprint != model.fingerprint:
        raise CorpusError(
            f"a worker has another model under the name {model.name} than the main process; "
            "give every machine the same one"
        )
    return encoder
