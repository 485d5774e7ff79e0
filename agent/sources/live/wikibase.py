"""What Wikibase says of an item, read from both of its JSON shapes. Pure.

REST gives statements, the action API gives claims; both hold the same.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from agent.sources.live.reading import text_of

Rank = Literal["preferred", "normal", "deprecated"]

_ENTITY: Final = re.compile(r"(?:^|/)([QPL]\d+)$")
_TIME: Final = re.compile(r"([+-]?)0*(\d+)-(\d\d)-(\d\d)")
_ITEM_TYPES: Final = ("wikibase-item", "wikibase-property", "wikibase-lexeme")
_FILES: Final = ("commonsMedia", "geo-shape", "tabular-data", "musical-notation", "entity-schema")
"""Data types that say nothing as text."""


@dataclass(frozen=True)
class Value:
    """One value as text; `entity` is the id whose name belongs there (`{}` in the text, or the whole of it)."""

    text: str
    entity: str = ""

    def shown(self, names: Mapping[str, str]) -> str:
        """The text, with the entity's name."""
        return self.text.replace("{}", names.get(self.entity, self.entity)) if self.entity else self.text


@dataclass(frozen=True)
class ItemStatement:
    """One statement of an item."""

    id: str
    property: str
    data_type: str
    value: Value
    rank: Rank = "normal"
    qualifiers: tuple[tuple[str, Value], ...] = ()


def read_statements(data: object) -> list[ItemStatement]:
    """REST: an object of lists by property.

    Raises:
        ValueError: another shape.
    """
    return _best(_rest_statement(raw) for statements in _object(data).values() for raw in _list(statements))


def read_claims(entity: object) -> list[ItemStatement]:
    """Action API: an entity with its claims.

    Raises:
        ValueError: another shape.
    """
    claims = _object(_object(entity).get("claims", {}))
    return _best(_claim(raw) for statements in claims.values() for raw in _list(statements))


def worth_showing(statement: ItemStatement, *, identifiers: bool) -> bool:
    """Files and maps are not, and identifiers in other catalogues only where one is requested."""
    return statement.data_type not in _FILES and (identifiers or statement.data_type != "external-id")


def _best(statements: Iterable[ItemStatement]) -> list[ItemStatement]:
    """In their order, without deprecated ones; of each property the preferred ones first."""
    by_property: dict[str, list[ItemStatement]] = {}
    for statement in statements:
        if statement.rank != "deprecated":
            by_property.setdefault(statement.property, []).append(statement)
    return [s for group in by_property.values() for s in sorted(group, key=lambda s: s.rank != "preferred")]


def _rest_statement(raw: object) -> ItemStatement:
    stated = _object(raw)
    name, data_type, value = _rest_value(stated)
    return ItemStatement(
        id=str(stated.get("id", "")),
        property=name,
        data_type=data_type,
        value=value,
        rank=_rank(stated),
        qualifiers=tuple((q, v) for q, _, v in map(_rest_value, _list(stated.get("qualifiers") or []))),
    )


def _rest_value(raw: object) -> tuple[str, str, Value]:
    stated = _object(raw)
    of = _object(stated.get("property"))
    data_type = str(of.get("data_type") or of.get("data-type") or "")
    value = _object(stated.get("value"))
    return str(of["id"]), data_type, _value(str(value.get("type")), value.get("content"), data_type=data_type)


def _claim(raw: object) -> ItemStatement:
    stated = _object(raw)
    name, data_type, value = _snak(stated.get("mainsnak"))
    qualifiers = _object(stated.get("qualifiers", {}))
    order = [q for q in _list(stated.get("qualifiers-order") or list(qualifiers)) if q in qualifiers]
    snaks = [_snak(snak) for q in order for snak in _list(qualifiers[q])]
    return ItemStatement(
        id=str(stated.get("id", "")),
        property=name,
        data_type=data_type,
        value=value,
        rank=_rank(stated),
        qualifiers=tuple((q, v) for q, _, v in snaks),
    )


def _snak(raw: object) -> tuple[str, str, Value]:
    snak = _object(raw)
    data_type = str(snak.get("datatype") or "")
    content = _named(_object(snak.get("datavalue", {})).get("value"))
    return str(snak["property"]), data_type, _value(str(snak.get("snaktype")), content, data_type=data_type)


def _named(content: Any) -> Any:
    """An entity's id as REST writes it, where the content is an entity; old answers lack the whole id."""
    if isinstance(content, dict) and "entity-type" in content:
        entity = cast(dict[str, Any], content)
        return str(entity.get("id") or f"Q{entity['numeric-id']}")
    return cast(object, content)


def _rank(stated: Mapping[str, Any]) -> Rank:
    rank = stated.get("rank")
    return rank if rank in ("preferred", "deprecated") else "normal"


def _value(kind: str, content: object, *, data_type: str) -> Value:
    if kind != "value":
        return Value("no value" if kind == "novalue" else "unknown value")
    if isinstance(content, str):
        return Value("{}", content) if data_type in _ITEM_TYPES else Value(one_line(content))
    stated = _object(content)
    if "time" in stated:
        return Value(format_time(str(stated["time"]), precision=int(stated.get("precision", 11))))
    if "amount" in stated:
        return _quantity(stated)
    if "latitude" in stated:
        return Value(f"{float(stated['latitude']):.4f}, {float(stated['longitude']):.4f}")
    if "text" in stated:
        return Value(one_line(stated["text"]))
    raise ValueError(f"a value of an unknown shape: {sorted(stated)}")


def _quantity(stated: Mapping[str, Any]) -> Value:
    amount = str(stated["amount"]).removeprefix("+")
    unit = entity_id(str(stated.get("unit", "1")))
    return Value(f"{amount} {{}}", unit) if unit else Value(amount)


def one_line(value: object) -> str:
    """Text in one line, without what no text has."""
    return " ".join(text_of(value).split())


def entity_id(uri: str) -> str:
    """The id at the end of an entity's URI; empty if there is none."""
    found = _ENTITY.search(uri)
    return found[1] if found else ""


def format_time(time: str, *, precision: int) -> str:
    """Wikibase's time as it is written: a day (11), month (10), year (9), decade, century, millennium or about."""
    found = _TIME.match(time)
    if found is None:
        raise ValueError(f"a time of an unknown shape: {time!r}")
    sign, digits, month, day = found.groups()
    year, era = int(digits), " BCE" if sign == "-" else ""
    written = digits if era else f"{year:04d}"
    if precision >= 11:
        return f"{written}-{month}-{day}{era}"
    if precision == 10:
        return f"{written}-{month}{era}"
    if precision == 9:
        return f"{year}{era}"
    if precision == 8:
        return f"{year // 10 * 10}s{era}"
    if precision in (6, 7):
        size, name = (100, "century") if precision == 7 else (1000, "millennium")
        return f"{_ordinal(-(-year // size))} {name}{era}"
    return f"about {year:,}{era}"


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _object(value: object) -> dict[str, Any]:
    if value == []:  # PHP writes an empty object as an empty list
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"an object was expected, not {type(value).__name__}")
    return cast(dict[str, Any], value)


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"a list was expected, not {type(value).__name__}")
    return cast(list[Any], value)
