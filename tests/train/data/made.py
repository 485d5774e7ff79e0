"""Small builds for tests: documents in files, a recipe for them, and vectors that need no model."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.agent.sources.corpus.encoding import WordEncoder
from train.data.inputs import Files, Inputs
from train.data.recipe import DataRecipe
from train.data.records import Doc
from train.data.vectors import Embed

MODEL: dict[str, Any] = {"writer": "writer", "embedder": "test", "thin_words": 5, "group": 6}


def write_docs(docs: Sequence[Doc], folder: Path) -> Files:
    """One file for each source."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = list(dict.fromkeys(doc.source for doc in docs))
    for source in sources:
        rows = [json.dumps({"id": d.id, "title": d.title, "text": d.text}) for d in docs if d.source == source]
        (folder / f"{source}.jsonl").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return Files([(source, folder / f"{source}.jsonl") for source in sources])


def recipe_for(inputs: Inputs, **said: Any) -> DataRecipe:
    return DataRecipe.model_validate({"name": "test", "documents": inputs.hashes(), **MODEL, **said})


def words() -> Embed:
    """Texts that share words are near; 32 dimensions, so that none are to be left out."""
    return WordEncoder().encode_passages


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
