"""The form of what strangers send: bounds that hold before anything is done with it, and errors that stay few."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

MOST_MEMBERS: Final = 100


@dataclass(frozen=True)
class Chars:
    """At most `most` characters. Pydantic's own bound refuses half a surrogate pair, which breaks nothing here."""

    most: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema) | {"maxLength": self.most}

    def _check(self, text: str) -> str:
        if len(text) > self.most:
            raise ValueError(f"it has {len(text):,} characters; at most {self.most:,} are read")
        return text


class Strict(BaseModel):
    """Arguments, which never change. An undeclared member is an error, and many of them are one error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _few(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and len(members := cast(Mapping[Any, Any], given)) > MOST_MEMBERS:
            known = ", ".join(cls.model_fields)
            raise ValueError(f"there are {len(members):,} members; those that mean something are {known}")
        return cast(Any, given)
