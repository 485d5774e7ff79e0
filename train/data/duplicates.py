"""Near-duplicates by MinHash over runs of words (Broder, 1997): of two that are alike, the first one stays."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from itertools import chain
from typing import Any, Final

from agent.errors import SetupError
from agent.evidence import Frozen
from agent.parallel.spread import HERE, Spread
from train.data.records import Doc
from train.evaluation.words import words

Show = Callable[[int, int], None]
"""Called with how many are done, of how many."""
_FOUND: Final = 0.99
"""Share of the texts that are just alike enough which the index finds; of those that are more alike it finds more."""
_SIGNED: Final = 256
"""Documents whose signatures one worker makes at once."""


def need(module: str) -> Any:
    """Import a library of the extra `data`.

    Raises:
        SetupError: it is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise SetupError(f"building data needs {error.name}: pip install 'cairn-search[data]'") from error


class NearDuplicate(Frozen):
    """A document that says again what an earlier one says."""

    id: str
    of: str
    similarity: float
    """Jaccard, as the signatures estimate it."""


def shingles(text: str, size: int) -> set[str]:
    """Every run of `size` words; a shorter text is one run."""
    found = words(text)
    return {" ".join(found[at : at + size]) for at in range(max(1, len(found) - size + 1))}


def signatures(texts: Sequence[str], *, size: int, permutations: int, seed: int) -> list[Any]:
    """A LeanMinHash of each text's runs.

    Raises:
        SetupError: datasketch is not installed.
    """
    datasketch = need("datasketch")
    runs = ([run.encode() for run in sorted(shingles(text, size))] for text in texts)
    made = datasketch.MinHash.generator(runs, num_perm=permutations, seed=seed + 1)
    return [datasketch.LeanMinHash(one) for one in made]


def bands(similar: float, permutations: int) -> tuple[int, int]:
    """How many bands an index has, and of how many rows each: the longest that still find the texts which count.

    Two texts are compared where one band of their signatures is equal, which is so with 1 - (1 - similar^rows)^bands.
    """
    for rows in range(permutations // 2, 1, -1):
        count = permutations // rows
        if 1 - (1 - similar**rows) ** count >= _FOUND:
            return count, rows
    return permutations, 1


def without_near_duplicates(
    docs: Sequence[Doc],
    *,
    similar: float,
    size: int,
    permutations: int,
    seed: int,
    show: Show,
    spread: Spread = HERE,
) -> tuple[list[Doc], list[NearDuplicate]]:
    """The documents of which no earlier one is a near-duplicate, and the others.

    Args:
        docs: in the order in which they count.
        similar: Jaccard similarity from which two are alike.
        size: words of a run.
        permutations: of a signature; the estimate's deviation is about 1 / sqrt(permutations).
        seed: of the permutations.
        show: called with how far it is.
        spread: who makes the signatures; they are compared here.

    Raises:
        SetupError: datasketch is not installed.
    """
    datasketch = need("datasketch")
    index = datasketch.MinHashLSH(params=bands(similar, permutations), num_perm=permutations)
    compared: dict[str, Any] = {}
    kept: list[Doc] = []
    duplicates: list[NearDuplicate] = []
    sign = partial(signatures, size=size, permutations=permutations, seed=seed)
    lists = ([doc.whole for doc in docs[at : at + _SIGNED]] for at in range(0, len(docs), _SIGNED))
    signed = chain.from_iterable(spread.mapped(sign, lists))
    for number, (doc, made) in enumerate(zip(docs, signed, strict=True), start=1):
        alike = [(compared[other].jaccard(made), other) for other in index.query(made)]
        best = max(((value, other) for value, other in alike if value >= similar), default=None)
        if best is None:
            index.insert(doc.id, made)
            compared[doc.id] = made
            kept.append(doc)
        else:
            duplicates.append(NearDuplicate(id=doc.id, of=best[1], similarity=round(float(best[0]), 3)))
        show(number, len(docs))
    return kept, duplicates
