"""A real general model behind a real server, reached through `cairn serve` and the OpenAI client, streamed.

The model has 135 M parameters and no training for any protocol: it is given the lowest rung, and it answers all the same.
"""

import json
import re
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
from openai import OpenAI

from tests.processes import running

CAIRN: Final = Path(sys.executable).with_name("cairn")
DOCUMENTS: Final = (
    ("Winter Harbour", "Winter Harbour is a 1987 drama film that was directed by Paula Ferri."),
    ("Paula Ferri", "Paula Ferri (born 4 May 1950 in Genoa) is an Italian film director."),
    ("Norvik Verlag", "Norvik Verlag is a publishing house in Oslo. It was founded in 1962 by Greta Sund."),
    ("Greta Sund", "Greta Sund (4 May 1931 - 2 June 1999) was a Norwegian publisher who was born in Molde."),
    ("Glass Orchard", "Glass Orchard is a 1994 comedy film. It was written by Ida Kranz."),
    ("Port Elling", "Port Elling is a town with 12,400 inhabitants. Its mayor is Tomas Reyk."),
)
_STORED_SECONDS: Final = 20
QUESTIONS: Final = (
    ("Who directed Winter Harbour?", "Paula Ferri"),
    ("Where was Paula Ferri born?", "Genoa"),
    ("Who founded Norvik Verlag?", "Greta Sund"),
    ("Who wrote the film Glass Orchard?", "Ida Kranz"),
    ("Who is the mayor of Port Elling?", "Tomas Reyk"),
    ("Which film came out first, Winter Harbour or Glass Orchard?", "Winter Harbour"),
)


@contextmanager
def served(base_url: str, model: str, folder: Path) -> Generator[str]:
    """The address of a server of Cairn that asks this model about the documents."""
    rows = [{"id": str(at), "title": title, "text": text} for at, (title, text) in enumerate(DOCUMENTS)]
    corpus = folder / "documents.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    command = [CAIRN, "serve", "--base-url", base_url, "--model", model, "--corpus", corpus, "--port", "0"]
    environment = {"PATH": f"{CAIRN.parent}:/usr/bin:/bin", "HOME": str(folder), "CAIRN_STORE": "memory"}
    environment |= {"OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    with running([str(word) for word in command], env=environment, cwd=folder) as program:
        said = program.wait_for(lambda: re.search(r"http://127\.0\.0\.1:\d+", program.said))
        yield said[0]


def streamed(client: OpenAI, question: str) -> tuple[str, str]:
    """What the client's user reads of the answer, and why it ended."""
    create: Any = client.chat.completions.create
    text, finish = "", ""
    for chunk in create(model="cairn", messages=[{"role": "user", "content": question}], stream=True):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
    return text, finish


def check(address: str) -> None:
    """Every question is searched for and answered, some of them rightly, and each trace says on which rung."""
    with OpenAI(base_url=f"{address}/v1", api_key="none", timeout=240) as client:
        said = [streamed(client, question) for question, _ in QUESTIONS]
    assert [finish for _, finish in said] == ["stop"] * len(QUESTIONS)
    right = [gold in text for (text, _), (_, gold) in zip(said, QUESTIONS, strict=True)]
    assert sum(right) >= 2, said  # it is a very small model
    traces = _traces(address)
    for trace in traces:
        assert trace["usage"]["searches"] >= 1
        assert trace["usage"]["policy_tokens"] > 0
        assert trace["rungs"]
        assert trace["steps"][-1]["reason"] == "answered"


def _traces(address: str) -> Sequence[dict[str, Any]]:
    """Of each question; a run is stored a moment after its client has read the answer."""
    with httpx2.Client(base_url=address, timeout=20, trust_env=False) as client:
        until = time.monotonic() + _STORED_SECONDS
        while len(runs := client.get("/api/runs").json()["runs"]) < len(QUESTIONS) and time.monotonic() < until:
            time.sleep(0.05)
        assert len(runs) == len(QUESTIONS)
        return [client.get(f"/api/runs/{run['id']}").json()["trace"] for run in runs]
