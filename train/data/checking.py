"""The exact filters over many questions, list by list, so that other processes can do it: each reads the world itself.

Why a question goes is `exact`'s to say.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import Final, Literal

from agent.errors import SetupError
from agent.parallel.spread import Spread
from train.data.exact import ExactFilters
from train.data.inputs import WorldInput
from train.data.records import Candidate

Name = Literal["by heart", "together", "alone", "found"]
Checked = tuple[str, Candidate]
"""Why a question is dropped ("" where it is not), and the question; `found` marks the trap of its plan."""
Filters = Mapping[int, ExactFilters]
"""By the part of the world."""
_LIST: Final = 32
"""Questions that a worker looks at before it comes back."""


@dataclass(frozen=True)
class Which:
    """A world, as another process can find it."""

    world: str
    sha256: str
    diverse: bool


def checking(
    spread: Spread, inputs: WorldInput, *, diverse: bool
) -> Callable[[Name, Sequence[Candidate]], Iterator[Checked]]:
    """What checks questions, in their order.

    Args:
        spread: who checks.
        inputs: the world that they are about.
        diverse: whether all documents of one source together must not suffice.
    """
    if spread.here:
        filters = filters_of(inputs, diverse=diverse)
        return lambda name, candidates: map(partial(_check, filters, name), candidates)
    which = Which(inputs.anywhere, inputs.sha256, diverse)

    def elsewhere(name: Name, candidates: Sequence[Candidate]) -> Iterator[Checked]:
        lists = (candidates[at : at + _LIST] for at in range(0, len(candidates), _LIST))
        return chain.from_iterable(spread.mapped(partial(check_list, which, name), lists))

    return elsewhere


def filters_of(inputs: WorldInput, *, diverse: bool) -> Filters:
    return {part: ExactFilters(world, diverse=diverse) for part, world in inputs.parts.items()}


def check_list(which: Which, name: Name, candidates: Sequence[Candidate]) -> list[Checked]:
    """Check here. It is what a worker runs.

    Raises:
        SetupError: there is no such world here, or another one.
    """
    filters = _filters(which)
    return [_check(filters, name, candidate) for candidate in candidates]


@lru_cache(maxsize=1)
def _filters(which: Which) -> Filters:
    inputs = WorldInput(which.world)
    if inputs.sha256 != which.sha256:
        raise SetupError(f"a worker found another world at {which.world}; give every machine the same one")
    return filters_of(inputs, diverse=which.diverse)


def _check(filters: Filters, name: Name, candidate: Candidate) -> Checked:
    assert candidate.plan is not None
    exact = filters[candidate.plan.shard]
    match name:
        case "by heart":
            return exact.by_heart(candidate), candidate
        case "together":
            return exact.together(candidate), candidate
        case "alone":
            return exact.alone(candidate), candidate
        case "found":
            why, plan = exact.found(candidate)
            return why, candidate.model_copy(update={"plan": plan})
