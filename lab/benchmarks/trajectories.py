"""Real outputs of other people's models, read under the profile that fits each of them, and counted."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from agent.errors import SetupError
from agent.evidence import Passage
from agent.loop.observation import show
from agent.plan import Node
from agent.protocols import TextProtocol, protocol_named
from agent.trace.transcript import Said, Transcript, Verdict, explain, said_by

FILE: Final = "cases.jsonl"
_SEPARATED: Final = re.compile(r"(?P<title>[^\n]{1,300}?)   (?P<text>.*)", re.DOTALL)
"""A passage of R1-Searcher's KILT corpus: three spaces stand between title and text."""
_PROMPT: Final = re.compile(r"(?=<\|im_start\|>system\n)")
_DOCUMENT: Final = re.compile(r"(?:^|(?<=\n))\(\d+\)(.*?)\n(?=\(\d+\)|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Fit:
    """Rows of one format under one protocol."""

    format: str
    protocol: str
    fits: bool
    """Whether the protocol is that of the format; else nothing is expected of it."""
    rows: int
    verdicts: dict[Verdict, int]
    plans: int
    rejected_plans: int
    documents: int
    """Traces that hold search results, and nothing else of the environment's."""
    rendered: int
    """Of these, those whose documents our renderer writes to the byte."""


_SEARCHED: Final = re.compile(r"A Google search for '(.*?)' found \d+ results:\n\n## Web Results\n(.*)", re.DOTALL)
_ENTRIES: Final = re.compile(r"\n\n(?=\d+\. \[)")
_ENTRY: Final = re.compile(r"\d+\. \[(.*?)\]\((\S*?)\)(?:\nDate published: ([^\n]*))?\n(?:\n(.*))?", re.DOTALL)

_FITTING: Final[dict[str, str]] = {
    "r1-searcher": "r1-searcher",
    "webdancer": "tongyi",
    "search-r1": "search-r1",
    "smolagents-tool-calling": "recall",
    "deepresearcher-tool-io": "deep-researcher",
}
"""Format → the profile that it is of, or the nearest one."""
_NEAR: Final = frozenset({"smolagents-tool-calling", "deepresearcher-tool-io"})
"""Formats that no profile is of, read under the nearest one."""
_ELSE: Final = "cairn"


def measure(folder: Path) -> list[Fit]:
    """Read every trajectory below a folder.

    Args:
        folder: holds folders `traj_*`, each with a `cases.jsonl`: `format`, and `raw` or `messages`.

    Raises:
        SetupError: there is none.
    """
    rows: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob(f"traj_*/{FILE}")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = cast("dict[str, Any]", json.loads(line))
            rows.setdefault(str(row["format"]), []).extend(_apart(row))
    if not rows:
        raise SetupError(f"{folder} holds no trajectories; name a folder with traj_*/{FILE} in it")
    return [_fit(name, rows[name]) for name in sorted(rows)]


def read(row: dict[str, Any], protocol: TextProtocol) -> Transcript:
    """One row as a transcript."""
    said: str | list[Said]
    said = said_by(row["messages"], protocol=protocol) if "messages" in row else str(row["raw"])
    return explain(said, protocol=protocol, question=str(row.get("question", "")))


Found = list[tuple[str, list[Passage]]]
"""Queries, each with what it found."""


def renders(transcript: Transcript, protocol: TextProtocol, found_in: Callable[[str], Found]) -> bool:
    """Whether all that the environment said is what our loop would say of the same passages, to the byte."""
    observations = [part for part in transcript.parts if part.role == "information"]
    return bool(observations) and all(render(found_in(part.said), protocol) == part.text for part in observations)


def render(found: Found, protocol: TextProtocol) -> str:
    """What our loop would say of what was found."""
    nodes = [Node(id=f"N{place}", query=query, source="all") for place, (query, _) in enumerate(found)]
    by_node = {
        node.id: [passage.model_copy(update={"node": node.id}) for passage in passages]
        for node, (_, passages) in zip(nodes, found, strict=True)
    }
    most = sum(len(passages) for _, passages in found)
    return show(by_node, [], protocol=protocol, seen=(), limit=most, fits=lambda text: True, nodes=nodes).text


def documents_in(text: str) -> Found:
    """The passages in a documents block of R1-Searcher's.

    Its retriever gives lines of a corpus. Those of KILT are a title and a text, and are taken apart here; others are
    given as they are, as passages without a title.
    """
    found = [match[1] for match in _DOCUMENT.finditer(text)]
    return [("", [_document(number, document) for number, document in enumerate(found, start=1)])]


def _document(number: int, document: str) -> Passage:
    apart = _SEPARATED.fullmatch(document)
    title, text = (apart["title"], apart["text"]) if apart else ("", document)
    return Passage(id=str(number), source="wiki", title=title, text=text)


def results_in(text: str) -> Found:
    """The search results in a tool response of WebDancer's, which Tongyi's has the form of; nothing for a page."""
    answers = [_SEARCHED.fullmatch(answer) for answer in text.split("\n=======\n")]
    return [
        (answer[1], [_result(place, entry) for place, entry in enumerate(_ENTRIES.split(answer[2]))])
        for answer in answers
        if answer
    ]


def _result(place: int, entry: str) -> Passage:
    read = _ENTRY.fullmatch(entry)
    if read is None:
        return Passage(id=str(place), source="web", title="", text=entry)
    return Passage(id=str(place), source="web", title=read[1], url=read[2], date=read[3] or "", text=read[4] or "")


def _apart(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The rollouts of a row: a text that holds several has a chat prompt before each."""
    texts = [text for text in _PROMPT.split(str(row.get("raw", ""))) if text.strip()]
    return [row | {"raw": text} for text in texts] if len(texts) > 1 else [row]


def _fit(name: str, rows: list[dict[str, Any]]) -> Fit:
    protocol = protocol_named(_FITTING.get(name, _ELSE))
    read_rows = list(_read_all(rows, protocol))
    verdicts: Counter[Verdict] = Counter(transcript.verdict for transcript in read_rows)
    found_in = _FOUND_IN.get(name)
    with_documents = [t for t in read_rows if found_in and _holds(t, found_in)]
    return Fit(
        format=name,
        protocol=protocol.name,
        fits=name in _FITTING and name not in _NEAR,
        rows=len(rows),
        verdicts=dict(verdicts),
        plans=sum(role == "search" for transcript in read_rows for role in transcript.roles),
        rejected_plans=sum(transcript.rejected_plans for transcript in read_rows),
        documents=len(with_documents),
        rendered=sum(renders(transcript, protocol, found_in) for transcript in with_documents if found_in),
    )


_FOUND_IN: Final[dict[str, Callable[[str], Found]]] = {"r1-searcher": documents_in, "webdancer": results_in}


def _holds(transcript: Transcript, found_in: Callable[[str], Found]) -> bool:
    """Whether it has observations, and all of them can be parsed."""
    found = [found_in(part.said) for part in transcript.parts if part.role == "information"]
    return bool(found) and all(found)


def _read_all(rows: list[dict[str, Any]], protocol: TextProtocol) -> Iterator[Transcript]:
    return (read(row, protocol) for row in rows)
