"""One JSON schema of all that the page reads and sends, from which web/ makes its types: `python -m server.ui.types`.

It describes, and makes nothing.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final, cast

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from agent.rstool import EvidenceBundle
from agent.trace import Delta, Trace
from server.http.schema import ErrorBody
from server.libraries.schema import (
    DocumentText,
    FileObject,
    LibraryFileList,
    LibraryFileObject,
    LibraryList,
    LibraryObject,
)
from server.reports.card import ReportCard, ReportDetail, ReportPage
from server.reports.request import ReportRequest
from server.runs.card import RunCard, RunDetail, RunPage, RunRequest
from server.ui.facts import AnswerWithRequest, PageFacts, RunAnswer, RunEvidence
from server.ui.settings import CheckedSettings, SettingsChange, SettingsPage

_SAID: Final = (
    Trace, Delta, RunCard, RunPage, RunDetail, PageFacts, EvidenceBundle, RunEvidence, RunAnswer, ErrorBody,
    FileObject, LibraryObject, LibraryList, LibraryFileObject, LibraryFileList, DocumentText,
    SettingsPage, CheckedSettings, ReportCard, ReportPage, ReportDetail,
)  # fmt: skip
_TAKEN: Final = (RunRequest, ReportRequest, AnswerWithRequest, SettingsChange)


def page_schema() -> dict[str, Any]:
    """Every model under `$defs`, and one object that names them all."""
    wanted: list[tuple[type[BaseModel], JsonSchemaMode]] = [
        *((model, "serialization") for model in _SAID),
        *((model, "validation") for model in _TAKEN),
    ]
    _, made = models_json_schema(wanted, ref_template="#/$defs/{model}")
    defined = cast(dict[str, dict[str, Any]], made["$defs"])
    for model in defined.values():
        for field in model.get("properties", {}).values():
            field.pop("title", None)  # a type of its own for every field says nothing
    named = {model.__name__: {"$ref": f"#/$defs/{model.__name__}"} for model in (*_SAID, *_TAKEN)}
    return {
        "title": "Api",
        "description": "Made by `python -m server.ui.types`.",
        "type": "object",
        "properties": named,
        "required": list(named),
        "$defs": dict(sorted(defined.items())),
    }


def written() -> str:
    """The schema as web/schema.json holds it."""
    return json.dumps(page_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(written(), encoding="utf-8")
