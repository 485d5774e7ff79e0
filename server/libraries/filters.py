"""Filters of files by their attributes, in OpenAI's shapes: comparisons, and several of these by `and` and `or`."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Self, cast

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from agent.sanitize.strict import Chars
from server.chat.request import Incoming
from server.store.library_rows import Attributes

MOST_FILTERS: Final = 100
MOST_DEPTH: Final = 8
_MOST_INT: Final = 1 << 53
Scalar = (
    Annotated[str, Chars(512)]
    | bool
    | Annotated[int, Field(ge=-_MOST_INT, le=_MOST_INT)]
    | Annotated[float, Field(allow_inf_nan=False)]
)


class AttributeComparison(Incoming):
    """One attribute of a file against a value. A file without the attribute fits `ne` and `nin` alone."""

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]
    key: Annotated[str, Chars(64)]
    value: Scalar | Annotated[list[Scalar], Field(fail_fast=True, max_length=100)]

    @model_validator(mode="after")
    def _fits_type(self) -> Self:
        if (self.type in ("in", "nin")) != isinstance(self.value, list):
            raise ValueError("'in' and 'nin' take a list of values, and every other comparison takes one value")
        if self.type in ("gt", "gte", "lt", "lte") and isinstance(self.value, bool):
            raise ValueError(f"{self.type!r} compares numbers or texts, not true and false")
        return self

    def fits(self, attributes: Attributes) -> bool:
        """Whether a file with these attributes may be found."""
        found = attributes.get(self.key)
        wanted = self.value if isinstance(self.value, list) else [self.value]
        if self.type in ("gt", "gte", "lt", "lte"):
            return _ordered(self.type, found, wanted[0])
        return any(_same(found, one) for one in wanted) == (self.type in ("eq", "in"))


class CompoundFilter(Incoming):
    """Several filters: `and` wants each of them, `or` one."""

    type: Literal["and", "or"]
    filters: Annotated[list["AnyFilter"], Field(fail_fast=True, min_length=1, max_length=MOST_FILTERS)]

    def fits(self, attributes: Attributes) -> bool:
        """Whether a file with these attributes may be found."""
        each = (one.fits(attributes) for one in self.filters)
        return all(each) if self.type == "and" else any(each)


def _kind(given: Any) -> str:
    kind = cast(Mapping[str, Any], given).get("type") if isinstance(given, Mapping) else getattr(given, "type", None)
    return "compound" if kind in ("and", "or") else "comparison"


AnyFilter = Annotated[
    Annotated[AttributeComparison, Tag("comparison")] | Annotated[CompoundFilter, Tag("compound")], Discriminator(_kind)
]


def _bounded(given: Any) -> Any:
    """Refuse a tree that is too large before it is read."""
    level, total = [given], 0
    for _ in range(MOST_DEPTH):
        total += len(level)
        inner = [cast(Mapping[str, Any], one).get("filters") for one in level if isinstance(one, Mapping)]
        level = [one for below in inner if isinstance(below, list) for one in cast(list[Any], below)]
        if total + len(level) > MOST_FILTERS:
            raise ValueError(f"there are more than {MOST_FILTERS} filters")
        if not level:
            return given
    raise ValueError(f"filters are nested more than {MOST_DEPTH} deep")


FileFilter = Annotated[AnyFilter, BeforeValidator(_bounded)]


def either(filters: Sequence[AttributeComparison | CompoundFilter]) -> AttributeComparison | CompoundFilter:
    """One filter that lets through what one of these does."""
    return filters[0] if len(filters) == 1 else CompoundFilter(type="or", filters=list(filters))


def _same(found: object, wanted: object) -> bool:
    """Equal, where a number is never true or false."""
    return isinstance(found, bool) == isinstance(wanted, bool) and found == wanted


def _ordered(type: str, found: object, wanted: object) -> bool:
    """Whether they compare so; numbers only with numbers, texts only with texts."""
    order = _order(found, wanted)
    if order is None:
        return False
    return {"gt": order > 0, "gte": order >= 0, "lt": order < 0, "lte": order <= 0}[type]


def _order(found: object, wanted: object) -> int | None:
    """-1, 0 or 1; None where these are not compared."""
    if isinstance(found, str) and isinstance(wanted, str):
        return (found > wanted) - (found < wanted)
    if isinstance(found, int | float) and isinstance(wanted, int | float) and not isinstance(found, bool):
        return (found > wanted) - (found < wanted)
    return None
