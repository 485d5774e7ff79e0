"""A move, read from what a model wrote: a function call, JSON, the protocol's tags, or a call written as text.

Models differ in how they say the same, so everything that can be meant is taken; what cannot is a `NoMove` whose text
says what was wrong.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from agent.errors import PlanError
from agent.plan.json import as_list, as_object, read_values
from agent.policies.ladder.moves import AnswerMove, CitedSentence, Move, SearchMove, queries_of
from agent.policies.ladder.replies import ModelReply, NoMove

MOST_QUERIES: Final = 4
_MOST_STATEMENTS: Final = 12
_TAGGED: Final = re.compile(r"<(search|answer)>(.*?)(?:</\1>|$)", re.DOTALL | re.IGNORECASE)
_EVIDENCE: Final = re.compile(r"<evidence>(.*?)</evidence>", re.DOTALL | re.IGNORECASE)
_ACTION: Final = re.compile(
    r"^[^\S\n]*(?:action\s*:\s*)?(search|finish|answer)\s*(?:\[(.*?)\]\s*$|:\s*(\S.*))", re.IGNORECASE | re.MULTILINE
)
"""On a line of its own; no run of blanks or empty lines is tried from each of its characters."""
_MARKER: Final = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)]|[A-Za-z]:)\s*")
_CITES: Final = re.compile(r"\s{0,3}[\[【]\s*(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\s*[\]】]")
_QUERY_KEYS: Final = ("queries", "query", "search", "q", "plan", "searches")
_ANSWER_KEYS: Final = ("answer", "text", "final_answer", "response", "result")
_MOST_TEXT: Final = 20_000


def move_in(reply: ModelReply) -> Move:
    """The move that a reply makes.

    Raises:
        NoMove: there is none.
    """
    for call in reply.calls:
        if move := _of_call(call.name, _object_in(call.arguments)):
            return move
    text = reply.text[:_MOST_TEXT]
    move = _of_tags(text) or _of_json(text) or _of_actions(text)
    if move is None:
        raise NoMove(_why(reply, text))
    return move


def _why(reply: ModelReply, text: str) -> str:
    if reply.refusal:
        return "it refused"
    if reply.calls:
        return f"the call of {reply.calls[0].name[:40]!r} can't be read"
    if text:
        return "it wrote neither a search nor an answer"
    return "it reasoned and said nothing" if reply.reasoning or reply.content else "it said nothing"


def _of_call(name: str, arguments: Mapping[str, Any] | None) -> Move | None:
    if arguments is None:
        return None
    if name == "answer":
        return _answer_of(arguments)
    return _search_of(arguments) if "search" in name.casefold() else _search_of(arguments) or _answer_of(arguments)


def _of_tags(text: str) -> Move | None:
    for match in _TAGGED.finditer(text):
        role, held = match[1].casefold(), match[2].strip()
        if role == "answer" and held:
            found = _EVIDENCE.search(text)
            return AnswerMove(held, tuple(statements(found[1])) if found else ())
        if role == "search" and (move := _search_in(held)):
            return move
    return None


def _search_in(text: str) -> SearchMove | None:
    """Queries, one a line or as JSON."""
    if (given := _object_in(text)) is not None and (move := _search_of(given)):
        return move
    lines = (_MARKER.sub("", line) for line in text.splitlines())
    queries = queries_of(lines, most=MOST_QUERIES)
    return SearchMove(queries) if queries else None


def _of_json(text: str) -> Move | None:
    """The first JSON object that means something, alone or among words, with or without a call around it."""
    for given in _objects_in(text):
        inner = given.get("arguments", given.get("parameters"))
        if isinstance(inner, str):
            inner = _object_in(inner)
        name = given.get("name", given.get("tool", given.get("function", given.get("action", ""))))
        arguments = as_object(inner) if inner is not None else given
        if isinstance(name, str) and name and arguments is not None and (move := _of_call(name, arguments)):
            return move
        if move := _search_of(given) or _answer_of(given):
            return move
    return None


def _of_actions(text: str) -> Move | None:
    """`Action: search[…]`, `SEARCH: …`, `ANSWER: …`."""
    searches: list[str] = []
    for match in _ACTION.finditer(text):
        held = (match[2] or match[3] or "").strip()
        if match[1].casefold() == "search":
            searches.append(held)
        elif held and not searches:
            return AnswerMove(held)
    queries = queries_of(searches, most=MOST_QUERIES)
    return SearchMove(queries) if queries else None


def _search_of(given: Mapping[str, Any]) -> SearchMove | None:
    for key in _QUERY_KEYS:
        texts = [text for item in as_list(given.get(key)) for text in _texts(item)]
        if queries := queries_of(texts, most=MOST_QUERIES):
            return SearchMove(queries)
    return None


def _texts(item: Any) -> Iterator[str]:
    if isinstance(item, str):
        yield from item.splitlines()
    elif (row := as_object(item)) is not None and isinstance(said := row.get("query", row.get("q")), str):
        yield said


def _answer_of(given: Mapping[str, Any]) -> AnswerMove | None:
    for key in _ANSWER_KEYS:
        value = given.get(key)
        text = str(value) if isinstance(value, int | float) else value
        if isinstance(text, str) and text.strip():
            return AnswerMove(text.strip(), tuple(_evidence_of(given.get("evidence"))))
    return None


def _evidence_of(value: Any) -> Iterator[CitedSentence]:
    for item in as_list(value if value is not None else [])[:_MOST_STATEMENTS]:
        if isinstance(item, str):
            yield from statements(item)
        elif (row := as_object(item)) is not None:
            text = row.get("claim", row.get("text", row.get("quote")))
            cites = as_list(row.get("passages", row.get("passage", row.get("cites", []))))
            numbers = tuple(n for n in cites if isinstance(n, int) and not isinstance(n, bool) and 0 < n < 10_000)
            if isinstance(text, str) and text.strip():
                yield CitedSentence(_CITES.sub("", text).strip(), numbers or numbers_in(text))


def statements(text: str) -> Iterator[CitedSentence]:
    """One statement a line, with the numbers in brackets that it cites."""
    for line in text.splitlines()[:_MOST_STATEMENTS]:
        said = _CITES.sub("", _MARKER.sub("", line)).strip()
        if said:
            yield CitedSentence(said, numbers_in(line))


def numbers_in(text: str) -> tuple[int, ...]:
    """The numbers in brackets, in their order."""
    numbers = (int(number) for group in _CITES.findall(text) for number in re.findall(r"\d+", group))
    return tuple(dict.fromkeys(numbers))


def _object_in(text: str) -> dict[str, Any] | None:
    return next(_objects_in(text), None)


def _objects_in(text: str) -> Iterator[dict[str, Any]]:
    """JSON objects in a text; each begins at a brace that is inside of no other object."""
    at = text.find("{")
    for _ in range(8):
        if at < 0:
            return
        end = _end_of(text, at)
        try:
            values = [value for value, _ in read_values(text[at:end])]
        except PlanError:
            values = []
        for value in values:
            if isinstance(value, dict):
                yield cast(dict[str, Any], value)
        at = text.find("{", end if values else at + 1)


def _end_of(text: str, at: int) -> int:
    """Behind the brace that closes the one at `at`; the text's end where none does."""
    depth, quoted, escaped = 0, False, False
    for place in range(at, len(text)):
        character = text[place]
        if escaped:
            escaped = False
        elif quoted:
            quoted, escaped = character != '"', character == "\\"
        elif character == '"':
            quoted = True
        elif character in "{}":
            depth += 1 if character == "{" else -1
            if not depth:
                return place + 1
    return len(text)
