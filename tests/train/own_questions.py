"""A reader's own documents and questions, as docs/own-model.md asks for them: 20 and 50, about films and their people."""

import json
from pathlib import Path
from typing import Any, Final

_FILMS: Final = (
    "Winter Harbour", "Glass Orchard", "The Salt Letter", "Northern Static", "A Quiet Ledger",
    "Copper Weather", "The Ninth Ferry", "Paper Lanterns", "Low Tide Radio", "The Cartographer",
)  # fmt: skip
_PEOPLE: Final = (
    "Paula Ferri", "Ida Kranz", "Tomas Reyk", "Greta Sund", "Nils Aber",
    "Mara Oduya", "Jonas Vell", "Ines Coro", "Pavel Dunn", "Lotte Brix",
)  # fmt: skip
_CITIES: Final = ("Genoa", "Molde", "Utrecht", "Bergen", "Riga", "Porto", "Graz", "Cork", "Turku", "Ghent")


def write_own(folder: Path) -> None:
    """Write `documents.jsonl` and `questions.jsonl`."""
    documents: list[dict[str, Any]] = []
    questions: list[dict[str, Any]] = []

    def ask(question: str, answer: str, *supporting: str) -> None:
        number = f"q{len(questions) + 1}"
        questions.append({"id": number, "question": question, "answers": [answer], "supporting": supporting})

    for place, (film, person, city) in enumerate(zip(_FILMS, _PEOPLE, _CITIES, strict=True)):
        year, born, work, life = 1980 + place, 1940 + place, f"film-{place}", f"person-{place}"
        text = f"{film} is a {year} film that was directed by {person}. It was shot in {_CITIES[(place + 3) % 10]}."
        documents.append({"id": work, "title": film, "text": text})
        text = f"{person} is a film director. {person} was born in {city} in {born}."
        documents.append({"id": life, "title": person, "text": text})
        ask(f"Who directed {film}?", person, work)
        ask(f"In what year was the film {film} made?", str(year), work)
        ask(f"Where was {film} shot?", _CITIES[(place + 3) % 10], work)
        ask(f"In which city was {person} born?", city, life)
        ask(f"Where was the director of {film} born?", city, work, life)
    for name, rows in (("documents", documents), ("questions", questions)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
