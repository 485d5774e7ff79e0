"""Errors as OpenAI clients read them: `{"error": {message, type, param, code}}`; each sentence gives a hint."""

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, cast

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from agent.sanitize.text import shortened, whole
from server.http.encoding import json_response
from server.http.stream import ClientGone, ServerStops

logger = logging.getLogger(__name__)

_TYPES: Final = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
    HTTPStatus.BAD_GATEWAY: "engine_error",
    HTTPStatus.INTERNAL_SERVER_ERROR: "server_error",
    HTTPStatus.SERVICE_UNAVAILABLE: "server_error",
}
_EXAMPLES: Final = {
    "/v1/responses": '"input": "your question"',
    "/retrieve": '"queries": ["your query"]',
    "/v1/evidence": '"question": "your question"',
    "/v1/reports": '"question": "your question"',
    "/api/reports": '"question": "your question"',
}
_EXAMPLE: Final = '"messages": [{"role": "user", "content": "your question"}]'
_QUESTIONS: Final = "questions go to POST /v1/chat/completions"
_MOST_CHARS: Final = 2_000
"""Of a message: it may quote what a client sent."""
_MOST_PARAM_CHARS: Final = 200
_GONE: Final = 499
"""No client reads it, but logs and metrics do."""
ONLY_RETRIEVAL: Final = (
    "this server was started with --retrieval-only and answers only POST /retrieve; start it without that option"
)


class ApiError(HTTPException):
    """What went wrong with one request, in a sentence for the person at the other end."""

    def __init__(
        self,
        status: HTTPStatus,
        message: str,
        *,
        code: str,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        message = shortened(message, _MOST_CHARS)
        super().__init__(status, detail=message, headers=headers)
        self.body: dict[str, Any] = {
            "error": {
                "message": message,
                "type": _TYPES.get(status, "invalid_request_error"),
                "param": param and shortened(param, _MOST_PARAM_CHARS),
                "code": code,
            }
        }

    def response(self) -> Response:
        return json_response(self.body, status=self.status_code, headers=self.headers)


def sentence(why: object) -> str:
    """What went wrong inside, as a sentence for the person at the other end."""
    said = str(why)
    return f"{said[:1].upper()}{said[1:]}."


def bad_request(message: str, *, param: str | None = None, code: str = "invalid_value") -> ApiError:
    return ApiError(HTTPStatus.BAD_REQUEST, message, param=param, code=code)


def internal_error() -> ApiError:
    return ApiError(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "The server hit an unexpected error; its log has the details under this response's x-request-id.",
        code="internal_error",
    )


def server_stops() -> ApiError:
    return ApiError(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The server was stopped; try again when it is running.",
        code="server_stops",
        headers={"retry-after": "1"},
    )


def install(app: FastAPI, *, instead: str = _QUESTIONS) -> None:
    """Make every error that leaves `app` an OpenAI error object; `instead` is said where an address does not exist."""

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return (error if isinstance(error, ApiError) else _of_routing(request, error, instead)).response()

    async def on_body(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        details = cast(Sequence[Mapping[str, Any]], error.errors())
        return _of_body(details[0], example=_example(request)).response()

    async def on_any(_: Request, _error: Exception) -> Response:
        return internal_error().response()

    async def on_gone(_: Request, _error: Exception) -> Response:
        return Response(status_code=_GONE)

    async def on_stop(_: Request, _error: Exception) -> Response:
        return server_stops().response()

    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(ClientGone, on_gone)
    app.add_exception_handler(ServerStops, on_stop)
    app.add_exception_handler(RequestValidationError, on_body)
    app.add_exception_handler(Exception, on_any)


def _example(request: Request) -> str:
    return _EXAMPLES.get(request.url.path, _EXAMPLE)


def _of_routing(request: Request, error: HTTPException, instead: str) -> ApiError:
    """An error of the framework itself: no such path, wrong method, a body that cannot be read."""
    where = f"{request.method} {request.url.path}"
    match error.status_code:
        case HTTPStatus.NOT_FOUND:
            message = f"There is nothing at {where}; {instead}."
            return ApiError(HTTPStatus.NOT_FOUND, message, code="unknown_url")
        case HTTPStatus.METHOD_NOT_ALLOWED:
            allowed = (error.headers or {}).get("Allow", "another method")
            message = f"{where} is not allowed; this path accepts {allowed}."
            return ApiError(
                HTTPStatus.METHOD_NOT_ALLOWED, message, code="method_not_allowed", headers=dict(error.headers or {})
            )
        case _:
            message = f"The body cannot be read ({error.detail}); send a JSON object with {_example(request)}."
            return ApiError(HTTPStatus(error.status_code), message, code="invalid_body")


def _of_body(detail: Mapping[str, Any], *, example: str) -> ApiError:
    """The first thing that is wrong with a body, as a sentence."""
    path = shortened(whole(".".join(str(part) for part in detail["loc"][1:])), _MOST_PARAM_CHARS)
    match detail["type"]:
        case "json_invalid":
            why = detail.get("ctx", {}).get("error", "no JSON")
            message = f"The body is not valid JSON ({why} at character {path}); fix it there."
            return bad_request(message, code="invalid_json")
        case "missing" if path:
            message = f"{path!r} is missing; a request needs at least {example}."
            return bad_request(message, param=path, code="missing_required_parameter")
        case _ if not path:
            message = f"The body must be a JSON object, sent as Content-Type: application/json, with {example}."
            return bad_request(message, code="invalid_body")
        case _:
            why = str(detail["msg"]).removeprefix("Value error, ")
            return bad_request(f"{path!r} cannot be used: {why}.", param=path)
