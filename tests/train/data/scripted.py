"""A writer on 127.0.0.1 that follows a script: what it answers, and from which documents, can be foretold exactly.

Its questions ask for the marks of two documents, which are words of their texts; it answers one where it sees both, but
for some that it "knows" and some that one document is "enough" for, chosen by a hash.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.train.evaluation.far import AgentRequest, FarAgent, Given, chat, far_agent
from train.data.model import WriterOptions
from train.data.prompts import CLOSED_BOOK, FROM_DOCUMENTS
from train.data.records import Doc


def mark(text: str) -> str:
    """A word that stands for a text: of its longest ones, the first in the alphabet."""
    words = {word.strip(".,;:()\"'[]").lower() for word in text.split()}
    return min((word for word in words if word.isalnum()), key=lambda word: (-len(word), word), default="nothing")


def begin(text: str) -> str:
    """The beginning of a text, as a question about it has it."""
    return f"({text[:40]}…)"


def knows(question: str) -> bool:
    return _draw(f"knows {question}", 7)


def one_is_enough(question: str) -> bool:
    return _draw(f"enough {question}", 5)


def _draw(text: str, of: int) -> bool:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % of == 0


@dataclass
class Writer:
    """Counts its requests, and answers them."""

    beginnings: Mapping[str, str]
    """The beginning of each text → its mark."""
    requests: Counter[str] = field(default_factory=Counter[str])
    """By the task."""

    def __call__(self, request: AgentRequest) -> Given:
        task, data = read_prompt(request.question)
        if task.startswith("You write"):
            self.requests["write"] += 1
            return chat(json.dumps(self.written(task, data["documents"])))
        if task in (CLOSED_BOOK, FROM_DOCUMENTS):
            self.requests["by heart" if task == CLOSED_BOOK else "documents"] += 1
            return chat(self.answer(data["question"], data.get("documents", ())))
        self.requests["grade"] += 1
        return chat("incorrect")

    def written(self, task: str, documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """About the first document, and the first of another source."""
        first = documents[0]
        other = next((one for one in documents[1:] if one["source"] != first["source"]), documents[1])
        names = f"{first['title']} {begin(first['text'])} and {other['title']} {begin(other['text'])}"
        one, two = mark(first["text"]), mark(other["text"])
        held = {"documents": [first["number"], other["number"]]}
        if "multiple choice:" in task:
            options = [f"{two} {one} {n}" for n in "uvw"] + [f"{one} {two}"]
            return held | {"question": f"Which marks have {names}?", "options": options, "right": options[3:]}
        return held | {
            "question": f"{'Why' if 'asks why' in task else 'What'} are the marks of {names}?",
            "answer": f"{one} {two}",
        }

    def answer(self, question: str, documents: Sequence[Mapping[str, Any]]) -> str:
        held = sum(begin(one["text"]) in question for one in documents)
        if not documents and not knows(question):
            return "UNKNOWN"
        if documents and held < 2 and not (held and one_is_enough(question)):
            return "UNKNOWN"
        if "Options:" in question:
            return "D"
        found = sorted((question.index(text), said) for text, said in self.beginnings.items() if text in question)
        return " ".join(said for _, said in found)


def read_prompt(prompt: str) -> tuple[str, dict[str, Any]]:
    """The task, and the data behind it, which are one line."""
    line = next(line for line in reversed(prompt.split("\n")) if line.startswith('{"'))
    return prompt[: prompt.rindex(line)].strip(), json.loads(line)


@contextmanager
def writer_server(docs: Sequence[Doc]) -> Generator[tuple[Writer, FarAgent]]:
    """A writer that can read these documents."""
    writer = Writer({begin(doc.text): mark(doc.text) for doc in docs})
    with far_agent(writer) as server:
        yield writer, server


async def no_wait(_: float) -> None:
    """Between two tries."""


def writer_options(
    server: FarAgent, *, tries: int = 2, concurrency: int = 4, leave_failed: bool = False
) -> WriterOptions:
    return WriterOptions(
        url=server.url,
        model="writer",
        tries=tries,
        seconds=10,
        concurrency=concurrency,
        leave_failed=leave_failed,
        sleep=no_wait,
    )


_TOPICS = {
    "volcano": "lava ash crater eruption magma basalt",
    "election": "ballot senate campaign turnout coalition mandate",
    "protein": "folding residue helix enzyme lattice binding",
    "glacier": "moraine meltwater crevasse ice firn serac",
}


def topics(each: int = 3, sources: Sequence[str] = ("news", "arxiv")) -> list[Doc]:
    """Documents of some sources about four things; those of a topic have many words in common."""
    return [
        Doc(
            id=f"{source}-{topic}-{number}", source=source, title=f"{topic} {number}", text=_text(topic, source, number)
        )
        for topic in _TOPICS
        for source in sources
        for number in range(each)
    ]


def _text(topic: str, source: str, number: int) -> str:
    special = [hashlib.sha256(f"{topic} {source} {number} {n}".encode()).hexdigest() for n in range(30)]
    words = _TOPICS[topic].split()
    mixed = (f"{words[n % len(words)]} {some[:6]}" for n, some in enumerate(special))
    return f"{special[0][:14]} of the {topic}: {' '.join(mixed)}."
