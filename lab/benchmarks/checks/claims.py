"""What the makers of claims about real pages share: the claims, the pages, which half a page is in, other numbers."""

import hashlib
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from lab.benchmarks.checks.relations import folded

Half = Literal["dev", "test"]
Maker = Literal["question", "sentence", "relation", "pointer", "value"]
Wrong = Literal["entity", "number", "relation", "swap", "negation"]
MAKERS: Final[tuple[Maker, ...]] = ("question", "sentence", "relation", "pointer", "value")
WRONGS: Final[tuple[Wrong, ...]] = ("entity", "number", "relation", "swap", "negation")


@dataclass(frozen=True)
class RealClaim:
    """One claim about one page. `wrong`: what was changed; None: it is true."""

    text: str
    title: str
    page: str
    maker: Maker
    wrong: Wrong | None = None


@dataclass(frozen=True)
class Page:
    title: str
    text: str
    names: Mapping[str, tuple[str, ...]]
    """Kind → what the page names of this kind."""


Makes = tuple[RealClaim, Mapping[Wrong, Callable[[], str | None]]]
"""A true claim, and for each way to be wrong how it is made so."""


ENDS: Final = re.compile(r"(?<=[a-z\d)\"][.])\s+(?=[A-Z\"])")

BRACKETS: Final = re.compile(r"\s*\([^()]*\)")


def half_of(title: str) -> Half:
    """Which half a page belongs to, whatever set it is from."""
    return "dev" if hashlib.sha256(folded(title).encode()).digest()[0] % 2 else "test"


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


NUMBER: Final = re.compile(r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?(?![\w-])")


def other_number(text: str, page: str, rng: random.Random) -> str | None:
    """The claim with another number: half the time one that is on the page for something else."""
    found = list(NUMBER.finditer(text))
    if not found:
        return None
    match = max(found, key=lambda one: len(one[0]))
    number = match[0]
    alike = sorted(
        {n for n in NUMBER.findall(page) if len(n) == len(number) and n != number} - set(NUMBER.findall(text))
    )
    if alike and rng.random() < 0.5:
        other = rng.choice(alike)
    elif number.isdigit():
        day = len(number) < 3
        other = str(max(1, int(number) + rng.choice((-2, -1, 1, 2, 3) if day else (-10, -2, -1, 1, 2, 10))))
    else:
        at = next(k for k, c in enumerate(number) if c.isdigit() and c != "0")
        other = number[:at] + str((int(number[at]) + rng.randrange(1, 8)) % 9 + 1) + number[at + 1 :]
    return None if other == number else text[: match.start()] + other + text[match.end() :]
