"""Models as JSON that every database takes: no NUL, which PostgreSQL refuses, and no half of a surrogate pair."""

from typing import Any, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json


def dumped(model: BaseModel) -> str:
    """The model as JSON."""
    try:
        return model.model_dump_json()
    except PydanticSerializationError:
        return to_json(_mended(model.model_dump())).decode()


def storable(text: str) -> str:
    """The text with a replacement mark for what no database takes."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")


def _mended(value: object) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            return {_mended(key): _mended(item) for key, item in cast(dict[object, object], value).items()}
        case list() | tuple():
            return [_mended(item) for item in cast(list[object], value)]
        case _:
            return value
