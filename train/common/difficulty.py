"""How hard training worlds are: ranges that each world draws its knobs from. What a knob does is the world's own."""

import random
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator

from agent.world.knobs import Knobs


def drawn_from(ranges: Mapping[str, tuple[float, float]], seed: int) -> Knobs:
    """The knobs of one world, always the same of a seed; those without a range stand as by default."""
    rng = random.Random(f"knobs {seed}")
    return Knobs.model_validate({name: round(rng.uniform(low, high), 3) for name, (low, high) in ranges.items()})


def _can_be_drawn(ranges: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Both ends of every range are values of that knob, the lower one first."""
    if unknown := sorted(set(ranges) - set(Knobs.model_fields) | {"hops"} & set(ranges)):
        names = ", ".join(name for name in Knobs.model_fields if name != "hops")
        raise ValueError(f"{unknown[0]!r} is no knob that can be drawn; there are: {names}")
    for end in (0, 1):
        Knobs.model_validate({name: ends[end] for name, ends in ranges.items()})
    if wrong := [name for name, (low, high) in ranges.items() if low > high]:
        raise ValueError(f"the range of {wrong[0]!r} ends below its beginning; give the lower end first")
    return ranges


Ranges = Annotated[dict[str, tuple[float, float]], AfterValidator(_can_be_drawn)]
"""By the knob's name, its lowest and its highest value."""
