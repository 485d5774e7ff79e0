"""`/openapi.json` with what only a running server knows: the ids of its models."""

from typing import Any, Final

from fastapi import FastAPI

_REQUESTS: Final = ("ChatRequest", "ResponseRequest", "RunRequest", "ReportRequest", "StreamedReportRequest")


def name_models(app: FastAPI, models: list[str]) -> None:
    """Let the schema say which models there are."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        schema = made()
        requests = schema["components"]["schemas"]
        for name in requests.keys() & _REQUESTS:
            requests[name]["properties"]["model"]["enum"] = models
        for operation in schema["paths"].get("/v1/models/{model}", {}).values():
            operation["parameters"][0]["schema"]["enum"] = models
        return schema

    app.openapi = openapi
