"""What leaves as JSON. Half a surrogate pair, which a page or a policy may hold and UTF-8 may not, breaks no answer."""

import json
from collections.abc import Mapping
from http import HTTPStatus

from fastapi import Response
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from agent.sanitize.text import whole, whole_value


def as_json(value: object) -> str:
    """A value on one line."""
    return whole(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def dumped(model: BaseModel) -> str:
    """A model on one line. No NUL is in it, which PostgreSQL refuses."""
    try:
        return model.model_dump_json()
    except PydanticSerializationError:
        return to_json(whole_value(model.model_dump())).decode()


def json_response(value: object, *, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None) -> Response:
    """A model, or any other value, as a response."""
    body = dumped(value) if isinstance(value, BaseModel) else as_json(value)
    return Response(body, status_code=status, headers=dict(headers or {}), media_type="application/json")
