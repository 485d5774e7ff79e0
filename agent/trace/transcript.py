"""What a transcript is under a protocol: block by block, who wrote it, what it requests, and whether it is well-formed.

It reads finished text, of our loop or of another; the loop itself never needs it.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, cast

from agent.errors import PlanError
from agent.plan import DOCUMENTS, Plan, parse_plan
from agent.protocols.answers import answer_in
from agent.protocols.base import Role, TextProtocol
from agent.protocols.parse import Block, TagReader
from agent.protocols.shapes import fits
from agent.trace import Author, Trace

Verdict = Literal["well-formed", "repaired", "rejected"]
Said = tuple[Author, str]

SOURCES: Final = ("web", "news", "arxiv", "wiki", "corpus", "kg", "all", DOCUMENTS)
"""What plans may search where the sources are not given."""
_OPEN: Final = "nothing closes it"
_TAG: Final = re.compile(r"</?([A-Za-z_|][\w|-]{0,40})>")


@dataclass(frozen=True)
class TranscriptPart:
    """One piece of a transcript. `text` is exact: all parts together are the whole."""

    by: Author
    role: str
    """Of a block; `prompt`; `frame` for what stands around a user turn; `invalid` for the reply to an invalid turn;
    `space` for white space that belongs to no block."""
    text: str
    said: str = ""
    """What stands inside of the block's marks."""
    plan: Plan | None = None
    why: str = ""
    """Why the plan of a search cannot run, or what is odd about the part."""
    repaired: bool = False
    """It could be read, but is not exactly as the protocol has it."""

    @property
    def trained(self) -> bool:
        """The loss mask."""
        return self.by == "policy"


@dataclass(frozen=True)
class Transcript:
    """What a whole transcript is."""

    parts: tuple[TranscriptPart, ...]
    answer: str | None
    why: str
    """Why it is not well-formed; empty where it is."""
    unknown_tags: tuple[str, ...] = ()
    """Tags in the policy's text that the protocol does not know."""

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(part.role for part in self.parts if part.role not in ("prompt", "frame", "space"))

    @property
    def rejected_plans(self) -> int:
        return sum(part.role == "search" and part.plan is None for part in self.parts)

    @property
    def verdict(self) -> Verdict:
        """`rejected`: it is not well-formed, or a plan cannot run; `repaired`: something had to be read leniently."""
        if self.why or self.rejected_plans:
            return "rejected"
        return "repaired" if any(part.repaired for part in self.parts) else "well-formed"


def explain(
    said: str | Iterable[Said], *, protocol: TextProtocol, question: str = "", sources: Collection[str] | None = None
) -> Transcript:
    """Say what a transcript is.

    Args:
        said: the whole text, whose authors are guessed; or its pieces, each with its author.
        protocol: that it is read under.
        question: helps to find where the prompt ends.
        sources: that plans may ask; by default every name that there is, and those of the protocol's tools.
    """
    known = sources or (*SOURCES, *(tool.source for tool in protocol.tools.values()))
    pieces = list(guess_authors(said, protocol=protocol, question=question) if isinstance(said, str) else said)
    parts: list[TranscriptPart] = []
    opened = protocol.opened
    for by, text in pieces:
        if by == "policy":
            parts += _policy(text, protocol=protocol, opened=opened, sources=known)
            opened = None
        elif text:
            parts = _closed_by_loop(parts, text, protocol) if by == "loop" else parts
            parts.append(_other(by, text, protocol))
            opened = _opened_by(by, text, protocol)
    marks = set(protocol.all_marks)
    tags = (match for part in parts if part.trained for match in _TAG.finditer(part.text) if match[0] not in marks)
    transcript = Transcript(tuple(parts), _answer(parts, protocol), "", tuple(dict.fromkeys(tag[0] for tag in tags)))
    return replace(transcript, why=_why_not(transcript, protocol))


def said_in(trace: Trace) -> list[Said]:
    """Who said what on the main branch of a trace."""
    return [(segment.by, segment.text) for segment in trace.segments if segment.branch == "main"]


def said_by(messages: Sequence[Any], *, protocol: TextProtocol) -> list[Said]:
    """Who said what in the messages of a chat: what comes before the first assistant turn is the prompt."""
    said: list[Said] = []
    for message in messages:
        role, text = str(message.get("role", "")), str(message.get("content") or "")
        if role == "assistant":
            said.append(("policy", _without_begun(text, protocol)))
        else:
            said.append(("environment" if any(by == "policy" for by, _ in said) else "prompt", text))
    return said


def guess_authors(text: str, *, protocol: TextProtocol, question: str = "") -> Iterator[Said]:
    """Cut a whole text where the protocol's environment speaks: its wrapper and its sentences give it away."""
    at = _end_of_prompt(text, protocol, question)
    if at:
        yield "prompt", text[:at]
    for match in _environment(protocol).finditer(text, at):
        if match.start() > at:
            yield "policy", text[at : match.start()]
        yield "environment", match[0]
        at = match.end()
    if at < len(text):
        yield "policy", text[at:]


def _end_of_prompt(text: str, protocol: TextProtocol, question: str) -> int:
    prompt = protocol.prompt_text(question) if question and not protocol.missing else ""
    if prompt and text.startswith(prompt):
        return len(prompt)
    if protocol.chat is None or not text.startswith(protocol.chat.controls):
        return 0
    at = text.find(protocol.chat.assistant)
    end = at + len(protocol.chat.assistant) if at >= 0 else 0
    return end + len(protocol.begins) if end and text.startswith(protocol.begins, end) else end


def _environment(protocol: TextProtocol) -> re.Pattern[str]:
    """What only the environment says, with the white space that belongs to it."""
    opening, closing = (re.escape(text) for text in (protocol.opening("information"), protocol.closing("information")))
    block = rf"\s*{opening}(?:(?!{opening}).)*?{closing}"
    turns = rf"(?:{block})+\s*" if protocol.deliver == "user" else rf"{block}{_tail(protocol.wrapper)}"
    if protocol.deliver == "user" and protocol.chat is not None:
        end, before = re.escape(protocol.chat.end), re.escape(protocol.chat.around_user()[0])
        after = re.escape(protocol.chat.around_user()[1] + protocol.chat.assistant)
        turns = rf"(?:{end})?\s*(?:{before})?{turns}(?:{after}(?:{re.escape(protocol.begins)})?)?"
    said = [turns, *(re.escape(text) for text in [protocol.invalid] if text)]
    return re.compile("|".join(said), re.DOTALL)


def _tail(wrapper: str) -> str:
    """White space behind the wrapper's closing mark: as much of it as the protocol has, or less."""
    space = wrapper[len(wrapper.rstrip()) :]
    return rf"\s{{0,{len(space)}}}"


def _other(by: Author, text: str, protocol: TextProtocol) -> TranscriptPart:
    if by == "prompt":
        return TranscriptPart(by, "prompt", text)
    before, _, after = protocol.wrapper.partition("{passages}")
    exact = before in text and after in text if protocol.deliver == "user" else _wraps(text, before, after)
    if protocol.invalid and text == protocol.invalid:
        return TranscriptPart(by, "invalid", text)
    opening, closing = protocol.opening("information"), protocol.closing("information")
    if opening not in text:
        return TranscriptPart(by, "frame", text)
    inside = text.partition(opening)[2].rpartition(closing)[0].strip()
    if exact:
        inside = text[text.find(before.lstrip()) + len(before.lstrip()) : text.rfind(after.rstrip())]
    why = "" if exact else "the white space of the wrapper differs"
    return TranscriptPart(by, "information", text, said=inside, why=why, repaired=not exact)


def _opened_by(by: Author, text: str, protocol: TextProtocol) -> Role | None:
    """The block that is open behind what a speaker other than the policy said."""
    if by == "loop":
        return next((role for role, mark in protocol.policy_marks.items() if text.endswith(mark.open)), None)
    return protocol.opened if by == "prompt" or protocol.deliver == "user" else None


def _closed_by_loop(parts: list[TranscriptPart], text: str, protocol: TextProtocol) -> list[TranscriptPart]:
    """The parts, where the loop's text closes the block that the last one is."""
    last = parts[-1] if parts else None
    marks = {role: mark.close for role, mark in protocol.policy_marks.items()}
    if last is None or last.why != _OPEN or not text.startswith(marks[cast("Role", last.role)]):
        return parts
    return [*parts[:-1], replace(last, why="the loop closed it")]


def _wraps(text: str, before: str, after: str) -> bool:
    """Whether the wrapper stands around a text; white space at its outer ends may be the policy's own."""
    return text.lstrip().startswith(before.lstrip()) and text.rstrip().endswith(after.rstrip()) and text == (
        before[: len(before) - len(before.lstrip())] + text.strip() + after[len(after.rstrip()) :]
    )  # fmt: skip


def _without_begun(text: str, protocol: TextProtocol) -> str:
    begins = protocol.begins
    return text.removeprefix(begins) if begins else text


def _policy(
    text: str, *, protocol: TextProtocol, opened: Role | None, sources: Collection[str]
) -> Iterator[TranscriptPart]:
    if opened is not None and text.lstrip().startswith(protocol.opening(opened)):
        opened = None
    for block, exact in _blocks(text, protocol=protocol, opened=opened):
        if block is None:
            yield TranscriptPart("policy", "space", exact)
            continue
        part = TranscriptPart("policy", block.role, exact, said=block.text)
        if block.tagged and protocol.closing(block.role) not in exact:
            interrupted = protocol.tags[block.role].yields
            part = replace(part, why="" if interrupted else _OPEN, repaired=True)
        yield _planned(part, protocol=protocol, sources=sources) if block.role == "search" else part


def _blocks(text: str, *, protocol: TextProtocol, opened: Role | None) -> Iterator[tuple[Block | None, str]]:
    """Each block with its exact text: its marks, and the white space before it; None for what is left at the end."""
    reader = TagReader(protocol.policy_marks, opened=opened)
    start = 0
    at = 0
    for piece in _up_to_ends_of_marks(text, protocol):
        at += len(piece)
        for part in reader.feed(piece):
            if isinstance(part, Block):
                role = reader.open_role
                end = at - len(protocol.opening(role)) if role is not None else at
                yield part, text[start:end]
                start = end
    for part in reader.close():
        if isinstance(part, Block):
            yield part, text[start:]
            return
    if start < len(text):
        yield None, text[start:]


def _up_to_ends_of_marks(text: str, protocol: TextProtocol) -> list[str]:
    """The text in pieces; a mark ends nowhere but at the end of a piece."""
    ends = {mark[-1] for each in protocol.policy_marks.values() for mark in (each.open, each.close)} | {"}"}
    return re.split(f"(?<=[{re.escape(''.join(sorted(ends)))}])", text)


def _planned(part: TranscriptPart, *, protocol: TextProtocol, sources: Collection[str]) -> TranscriptPart:
    try:
        plan = parse_plan(part.said, protocol=protocol, sources=sources)
    except PlanError as error:
        return replace(part, why=str(error))
    lenient = protocol.plan in ("graph", "calls") and not _is_json(part.said)
    return replace(
        part, plan=plan, repaired=part.repaired or lenient, why="it is not strict JSON" if lenient else part.why
    )


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return False
    return True


def _answer(parts: Sequence[TranscriptPart], protocol: TextProtocol) -> str | None:
    said = [part.said for part in parts if part.trained and part.role == "answer"]
    return answer_in(said[-1], protocol) if said else None


def _why_not(transcript: Transcript, protocol: TextProtocol) -> str:
    """Why a transcript is not well-formed: the first reason that a person can act on."""
    roles = [role for role in transcript.roles if role != "invalid"]
    unclosed = next((part for part in transcript.parts if part.why == _OPEN), None)
    forced = any(part.by == "loop" and part.text.endswith(protocol.opening("answer")) for part in transcript.parts)
    reasons: list[tuple[bool, Callable[[], str]]] = [
        (not roles, lambda: "it is empty"),
        ("answer" not in roles, lambda: "it has no answer"),
        (unclosed is not None, lambda: f"nothing closes its block {cast('TranscriptPart', unclosed).role!r}"),
        (forced, lambda: "its answer was forced"),
        (roles.count("answer") > 1, lambda: f"it has {roles.count('answer')} answers"),
        (not transcript.answer, lambda: "its answer is empty, or is in no box that is closed"),
        ("invalid" in transcript.roles, lambda: "it has an invalid turn"),
        (
            not fits(protocol.well_formed, roles),
            lambda: f"its blocks {', '.join(roles)} do not come as the protocol wants them: {protocol.well_formed}",
        ),
    ]
    return next((why() for true, why in reasons if true), "")
