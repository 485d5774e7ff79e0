"""A small corpus with questions of every form that the expert reads, and a library that searches it."""

import json
from pathlib import Path
from typing import Any

from train.expert.library import Library

DOCUMENTS: list[dict[str, str]] = [
    {
        "id": "falls",
        "title": "Aurora Falls (1999 film)",
        "text": "Aurora Falls is a drama film of 1999. It was directed by Lina Orr. The music is by Jan Vesely.",
    },
    {
        "id": "orr",
        "title": "Lina Orr",
        "text": "Lina Orr (born 12 May 1944) is an Italian director. She was born in Trieste and studied in Graz.",
    },
    {
        "id": "harbour",
        "title": "Night Harbour",
        "text": "Night Harbour is a thriller film of 2004. It was directed by Ada Tross.",
    },
    {
        "id": "tross",
        "title": "Ada Tross",
        "text": "Ada Tross (born 3 March 1950) is an Italian director, known for Night Harbour. She lives in Bergen.",
    },
    {
        "id": "vesely",
        "title": "Jan Vesely",
        "text": "Jan Vesely was a Czech composer. He died in Brno in 1988.",
    },
    {"id": "brno", "title": "Brno", "text": "Brno is a city in Moravia. It has many theatres and a large castle."},
]
TRIPLES: dict[str, Any] = {
    "id": "triples",
    "question": "Where was the director of film Aurora Falls born?",
    "answers": ["Trieste"],
    "supporting": ["falls", "orr"],
    "type": "compositional",
    "evidences": [["Aurora Falls", "director", "Lina Orr"], ["Lina Orr", "place of birth", "Trieste"]],
}
COMPARED: dict[str, Any] = {
    "id": "compared",
    "question": "Which film has the director who was born earlier, Aurora Falls or Night Harbour?",
    "answers": ["Aurora Falls"],
    "supporting": ["falls", "orr", "harbour", "tross"],
    "type": "bridge_comparison",
    "evidences": [
        ["Aurora Falls", "director", "Lina Orr"],
        ["Night Harbour", "director", "Ada Tross"],
        ["Lina Orr", "date of birth", "12 May 1944"],
        ["Ada Tross", "date of birth", "3 March 1950"],
    ],
}
PARTS: dict[str, Any] = {
    "id": "parts",
    "question": "Where did the composer of Aurora Falls die?",
    "answers": ["Brno"],
    "supporting": ["falls", "vesely"],
    "decomposition": [
        {"question": "Aurora Falls >> composer", "answer": "Jan Vesely"},
        {"question": "Where did #1 die?", "answer": "Brno"},
    ],
}
BRIDGE: dict[str, Any] = {
    "id": "bridge",
    "question": "In which city did the director of the drama film Aurora Falls study?",
    "answers": ["Graz"],
    "supporting": ["falls", "orr"],
    "type": "bridge",
}
YES: dict[str, Any] = {
    "id": "yes",
    "question": "Are Lina Orr and Ada Tross both Italian directors?",
    "answers": ["yes"],
    "supporting": ["orr", "tross"],
    "type": "comparison",
}
SPAN: dict[str, Any] = {
    "id": "span",
    "question": "Where does Ada Tross live?",
    "answers": ["Bergen"],
    "supporting": ["tross"],
}
OTHER_SPAN: dict[str, Any] = {
    "id": "other span",
    "question": "For which film is Ada Tross known?",
    "answers": ["Night Harbour"],
    "supporting": ["tross"],
}
QUESTIONS = [TRIPLES, COMPARED, PARTS, BRIDGE, YES, SPAN, OTHER_SPAN]
DESCRIBED: dict[str, Any] = {
    "id": "tross",
    "title": "Ada Tross",
    "text": DOCUMENTS[3]["text"],
    "sentences": [
        "Ada Tross (born 3 March 1950) is an Italian director, known for Night Harbour.",
        "She lives in Bergen.",
    ],
    "relations": [
        {"subject": "Ada Tross", "relation": "date of birth", "object": "3 March 1950", "sentences": [0]},
        {"subject": "Ada Tross", "relation": "country of citizenship", "object": "Italian", "sentences": [0]},
        {"subject": "Night Harbour", "relation": "director", "object": "Ada Tross", "sentences": [0]},
    ],
}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def library(folder: Path) -> Library:
    from agent.sources.corpus.source import build_index

    build_index([write(folder / "documents.jsonl", list(DOCUMENTS))], folder / "index")
    return Library(folder / "index")
