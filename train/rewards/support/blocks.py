"""The blocks of a finished rollout, read from its segments: who wrote each, and whether it is whole.

What the policy sampled is read as the loop reads it. The environment's block counts only where the environment wrote
it: `<result>` in the policy's own text is text.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from agent.protocols.base import Role, TextProtocol
from agent.protocols.parse import Block, TagReader
from agent.trace import Segment, Trace


@dataclass(frozen=True)
class ContextBlock:
    """One block of the rollout's own context; branches have none."""

    role: Role
    text: str
    by: Literal["policy", "environment"] = "policy"
    tagged: bool = True
    """False for the policy's text outside of all tags."""
    closed: bool = True
    """Whether the policy closed it."""
    forced: bool = False
    """Whether the loop opened it, because a budget had ended."""

    @property
    def whole(self) -> bool:
        """Whether the policy wrote both of its tags, or the protocol's own text the first of them."""
        return self.tagged and self.closed and not self.forced

    @property
    def blank(self) -> bool:
        return self.by == "policy" and not self.text.strip()


def blocks_of(trace: Trace, protocol: TextProtocol) -> tuple[ContextBlock, ...]:
    """The blocks in their order.

    What follows the end of a turn in the same segment was never read by the loop. Tags there count all the same,
    text does not: a token may hold the end of a closing tag and a line break.
    """
    found: list[ContextBlock] = []
    opened: Role | None = None
    forced = False
    for policy, run in _runs(segment for segment in trace.segments if segment.branch == "main"):
        if policy:
            found += _sampled(run, protocol, opened=opened, forced=forced)
            opened, forced = None, False
            continue
        for segment in run:
            if segment.by == "environment" and protocol.opening("information") in segment.text:
                found.append(ContextBlock("information", segment.text, by="environment"))
        opened, forced = _opened(run[-1], protocol)
    return tuple(found)


def shape(blocks: Iterable[ContextBlock], *, untagged: str = "text") -> str:
    """The roles as one text, each with a space behind it, for a regular expression.

    A block that is not whole has "?" behind its role, so no expression takes it.

    Args:
        blocks: of a rollout.
        untagged: what text outside of all tags is called; protocols call it "thought".
    """
    return "".join(f"{_called(block, untagged)} " for block in blocks)


def has_shape(blocks: Iterable[ContextBlock], pattern: str, *, untagged: str = "text") -> bool:
    return re.fullmatch(pattern, shape(blocks, untagged=untagged)) is not None


def _called(block: ContextBlock, untagged: str) -> str:
    if not block.tagged:
        return untagged
    return block.role if block.whole else f"{block.role}?"


def _runs(segments: Iterable[Segment]) -> Iterator[tuple[bool, list[Segment]]]:
    """Neighbours that the policy sampled, and neighbours that it did not."""
    run: list[Segment] = []
    for segment in segments:
        if run and (run[-1].by == "policy") != (segment.by == "policy"):
            yield run[-1].by == "policy", run
            run = []
        run.append(segment)
    if run:
        yield run[-1].by == "policy", run


def _opened(segment: Segment, protocol: TextProtocol) -> tuple[Role | None, bool]:
    """The block that is open behind a segment, and whether it is the loop that forced it."""
    if segment.by == "prompt":
        return protocol.opened, False
    if segment.by == "loop":
        if protocol.begins and segment.text.endswith(protocol.begins):
            return protocol.opened, False
        marks = protocol.policy_marks
        role: Role | None = next((role for role, mark in marks.items() if segment.text.endswith(mark.open)), None)
        return role, role is not None
    return None, False


def _sampled(
    run: list[Segment], protocol: TextProtocol, *, opened: Role | None, forced: bool
) -> Iterator[ContextBlock]:
    if opened is not None and run[0].text.lstrip().startswith(protocol.opening(opened)):
        opened, forced = None, False  # an engine that was not given the prompt's own opening tag
    reader = TagReader(protocol.policy_marks, opened=opened)
    ends = set(protocol.stops) - ({"search"} if protocol.several else set())
    first, ended = True, False
    for block, closed in _read(reader, run):
        if block.tagged or not ended:
            yield ContextBlock(block.role, block.text, tagged=block.tagged, closed=closed, forced=forced and first)
        first = False
        ended = ended or (block.tagged and closed and block.role in ends)


def _read(reader: TagReader, run: list[Segment]) -> Iterator[tuple[Block, bool]]:
    for segment in run:
        yield from ((part, True) for part in reader.feed(segment.text) if isinstance(part, Block))
    yield from ((part, False) for part in reader.close() if isinstance(part, Block))
