"""One context as the loop uses it: what the policy samples is read as it comes, what others say is appended."""

from collections.abc import Collection, Sequence
from contextlib import aclosing
from copy import copy
from typing import Self

from agent.errors import ContextFull
from agent.loop.recorder import Recorder
from agent.policies.base import Chunk, Context, OnRungs, Sampling
from agent.protocols.base import Role, TextProtocol
from agent.protocols.chat import ChatTemplate
from agent.protocols.parse import Block, OpenPiece, TagReader
from agent.trace import Author, Branch, Segment


class ContextWriter:
    """A context, the reader of what is sampled into it, and the recorder of what was read."""

    def __init__(
        self,
        context: Context,
        *,
        protocol: TextProtocol,
        sampling: Sampling,
        recorder: Recorder,
        limit: int | None = None,
        opened: Role | None = None,
        template: ChatTemplate | None = None,
    ) -> None:
        """Take a context that holds a prompt and nothing else.

        Args:
            context: an engine's.
            protocol: says what is a block.
            sampling: how to sample.
            recorder: of the trace.
            limit: tokens that the context may have; None: as many as the engine takes.
            opened: the block that the prompt has opened.
            template: of the chat in which the environment speaks in turns of the user's; None: it speaks inside of the
                policy's own turn.
        """
        self._context = context
        self._protocol = protocol
        self._sampling = sampling
        self._recorder = recorder
        self._limit = limit
        self._template = template
        self._branch = ""
        """Name of the branch; empty for the rollout's own context."""
        self._places: list[int] = []
        """Place in the trace of each segment of the context, as far as they were kept."""
        self._at = 0
        """Number of the segment that is being sampled, or was last, within the context."""
        self._ended_turn = False
        self.start_reading(opened)
        self._keep()
        recorder.count(prompt_tokens=context.tokens)

    @property
    def tokens(self) -> int:
        return self._context.tokens

    @property
    def open_role(self) -> Role | None:
        """The role of the block that is open."""
        return self._reader.open_role

    @property
    def ended_turn(self) -> bool:
        """Whether the policy ended its turn itself, and nothing was said since."""
        return self._ended_turn

    @property
    def block_segments(self) -> Sequence[int]:
        """The places of the segments of the block that is being read, or was read last."""
        kept, trace = len(self._places), len(self._recorder.trace.segments)
        numbers = range(self._block_from, self._at + 1)
        return [self._places[n] if n < kept else trace + n - kept for n in numbers]

    def count(self, text: str) -> int:
        """Tokens that the text would take if the environment said it inside of the policy's turn."""
        return self._context.count(text)

    def fits(self, text: str, room: int) -> bool:
        """Whether `say(text)` takes at most `room` tokens, its turn included."""
        return self._fits_alone(text, room - sum(map(self.count, filter(None, self._frame()))))

    def _fits_alone(self, text: str, room: int) -> bool:
        """No token is shorter than a byte: most texts need not be encoded to know that they fit."""
        return len(text.encode()) <= room or self.count(text) <= room

    async def sample(
        self, *, stop: Sequence[str], max_tokens: int, until: Collection[Role]
    ) -> tuple[Block | None, bool]:
        """Let the policy go on, and read.

        Returns:
            The first block whose role is in `until`, if one closed; and whether the tokens ran out.
        """
        before, started = self.tokens, self._recorder.seconds
        sampled, last, ended = 0, Chunk(""), None
        self._at = len(self._context.segments)
        try:
            async with aclosing(self._context.generate(self._sampling, stop=stop, max_tokens=max_tokens)) as chunks:
                async for last in chunks:
                    self._recorder.first_token()
                    ended = self._read(last, until)
                    if ended is not None:
                        break
        finally:
            sampled = self.tokens - before
            self._ended_turn = self._context.ended_turn
            if isinstance(self._context, OnRungs):
                self._recorder.trace.rungs = tuple(self._context.rungs)
            self._recorder.count(policy_tokens=sampled)
            self._recorder.spent(policy=self._recorder.seconds - started)
            self._at = min(self._at, len(self._context.segments) - 1)  # an engine that had no room said nothing
            self._keep()
        return ended, last.cut or sampled >= max_tokens

    def _read(self, chunk: Chunk, until: Collection[Role]) -> Block | None:
        answering = self.open_role == "answer"
        ended: Block | None = None
        for part in self._reader.feed(chunk.text):
            if isinstance(part, OpenPiece):
                answering = answering or part.role == "answer"
                self._emit(part)
            elif part.tagged and part.role in until:
                ended = part
                break
            else:
                self.close(part)
        if answering:
            self._recorder.count(answer_tokens=chunk.tokens)
        return ended

    def close(self, block: Block) -> None:
        """Record a block that ends no turn."""
        if block.role == "search":
            self.searches.append(block)
        if not self._branch:
            self._recorder.block(block, segments=self.block_segments)

    def drain(self) -> Block | None:
        """Emit what was held back, and record the block that was not closed. Returns that block."""
        last: Block | None = None
        for part in self._reader.close():
            if isinstance(part, OpenPiece):
                self._emit(part)
            else:
                self.close(part)
                last = part
        return last

    def _emit(self, piece: OpenPiece) -> None:
        if not self._branch:  # what several branches say at the same time would be one jumble
            self._recorder.delta(piece.role, piece.text)

    def start_reading(self, opened: Role | None = None, *, alone: bool = False) -> None:
        """Read what comes next with a new reader, which may begin inside a block that was opened for the policy."""
        self._reader = TagReader(self._protocol.policy_marks, opened=opened, alone=alone)
        self._block_from = len(self._context.segments)
        self.searches: list[Block] = []
        """Search blocks that closed and ended no turn."""

    # What others say

    def open(self, role: Role, text: str = "", *, alone: bool = False) -> None:
        """Close the block that is open, if one is, and open another one: these tags are the loop's.

        Args:
            role: of the new block.
            text: the opening tag with what follows it; by default the tag alone.
            alone: any other closing tag ends the block, too.
        """
        closing = self._protocol.closing(self.open_role) if self.open_role else ""
        last = closing or self._context.segments[-1].text
        opening = text or self._protocol.opening(role)
        self.append(closing + ("" if last.endswith("\n") else "\n") + opening, by="loop")
        self.start_reading(role, alone=alone)

    def say(self, text: str, *, by: Author = "environment") -> int | None:
        """Say something to the policy in the protocol's way, and let it go on; returns the place of the segment.

        Raises:
            ContextFull: there is no room for it.
        """
        before, after = self._frame()
        if before:
            self.append(before, by="loop")
        at = self.append(text, by=by)
        if after:
            self.append(after, by="loop")
        self._ended_turn = False
        self.start_reading(self._protocol.opened if self._template else None)
        return at

    def _frame(self) -> tuple[str, str]:
        """What stands around a message: the end of the policy's turn and a turn of the user's, then a new turn."""
        if self._template is None:
            return "", ""
        before, after = self._template.around_user()
        end = "" if self._ended_turn else self._template.end
        return end + self._template.after_end + before, after + self._template.assistant + self._protocol.begins

    def append(self, text: str, *, by: Author) -> int | None:
        """Append text that the policy did not sample. Returns the place of its segment in the trace; None in a branch.

        Raises:
            ContextFull: there is no room for it.
        """
        before, text = self.tokens, text[self._there_already(text) :]
        if self._limit is not None and not self._fits_alone(text, self._limit - before):
            raise ContextFull(f"the context may have {self._limit} tokens and holds {before}")
        self._context.append(text, by=by)
        if by == "environment":
            self._recorder.count(environment_tokens=self.tokens - before)
        self._keep()
        return None if self._branch else self._places[-1]

    def _there_already(self, text: str) -> int:
        """How many characters of white space at the beginning of the text the policy's last token brought already.

        A token that holds the end of a stop text may go on behind it.
        """
        last = self._context.segments[-1]
        said = last.text.rstrip()
        stopped = last.by == "policy" and any(said.endswith(m.close) for m in self._protocol.policy_marks.values())
        space = text[: len(text) - len(text.lstrip())]
        return next((n for n in range(len(space), 0, -1) if last.text.endswith(space[:n])), 0) if stopped else 0

    # Branches

    def fork(self, branch: str) -> Self:
        """A writer for a branch, which starts as a copy of this one; `commit` writes its segments into the trace."""
        forked = copy(self)
        forked._context = self._context.fork()
        forked._branch = branch
        forked._places = list(self._places)
        forked.start_reading()
        return forked

    def commit(self, *, node: str, since: int) -> None:
        """Write a branch onto the trace.

        Args:
            node: that it was made for.
            since: number of the round's first step; the node's steps from there on point at the branch.
        """
        if not self._own():
            return
        shared = len(self._places)
        places = self._recorder.keep(self._own(), branch=self._branch)
        branch = Branch(parent="main", segment=self._places[shared - 1], node=node)
        self._recorder.fork(self._branch, branch, places, since=since)

    def _keep(self) -> None:
        """Bring the trace up to date; a branch waits for its commit, so that a trace does not race."""
        if not self._branch:
            self._places += self._recorder.keep(self._own())

    def _own(self) -> list[Segment]:
        return self._context.segments[len(self._places) :]
