"""Fills: a query that holds `#A` is finished by the policy, in a branch of the context, once A has been answered."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from agent.errors import ContextFull
from agent.evidence import Passage
from agent.loop.budget_tracker import Allowance
from agent.loop.context import Tape
from agent.loop.execute import Found
from agent.loop.observation import show_parents
from agent.loop.recorder import Recorder
from agent.plan import Node, Plan
from agent.plan.text import MAX_QUERY_CHARS
from agent.protocols.base import TextProtocol
from agent.trace import Filled, Skipped

FILL_TOKENS: Final = 512
"""Tokens that one fill may have; a query is much shorter."""
_HELD: Final = 64
"""Tokens that are held back for the query when its parents' passages are cut to the room that the context has."""


class _NotFilled(Exception):
    """The node is skipped; the sentence says why."""


class Fills:
    """The fills of one plan. Several may be written at the same time, each in a branch of its own."""

    def __init__(
        self,
        tape: Tape,
        plan: Plan,
        *,
        round: int,
        protocol: TextProtocol,
        continues: bool,
        allowance: Allowance,
        recorder: Recorder,
        marks: Sequence[str] = (),
    ) -> None:
        """Take the plan as the policy wrote it.

        Args:
            tape: the context, which ends with the plan; nothing may be appended to it while the plan runs.
            plan: with every parent, also those that will not be asked.
            round: number of the round.
            protocol: says how a fill is spelled.
            continues: whether the policy can go on inside its own turn.
            allowance: the fills share what is left of the policy's tokens equally, so that none races another one.
            recorder: of the trace.
            marks: tokens of the policy's tokenizer, which passages must not spell.
        """
        children = {child for child, _ in plan.references} if protocol.fills else set[str]()
        self._parents = {node.id: node.parents for node in plan.nodes if node.id in children}
        self._ids = [node.id for node in plan.nodes]
        self._tape = tape
        self._round = round
        self._protocol = protocol
        self._continues = continues
        self._limit = allowance.limit
        self._share = min(FILL_TOKENS, allowance.policy_tokens // len(children)) if children else 0
        self._tokens = min(self._share, protocol.turn_tokens or self._share)
        self._recorder = recorder
        self._marks = marks
        self._branches: dict[str, Tape] = {}
        self.queries: dict[str, str] = {}
        """Node → the query that the policy wrote."""

    async def fill(self, node: Node, found: Found) -> Node | None:
        """A node as it is asked; None where it is skipped.

        Raises:
            PolicyError: the engine failed.
        """
        if node.id not in self._parents:
            return node
        try:
            query = self._checked(await self._ask(node, found), node)
        except _NotFilled as why:
            self._recorder.step(Skipped(round=self._round, node=node.id, why=str(why)))
            return None
        self.queries[node.id] = query
        self._recorder.step(Filled(round=self._round, node=node.id, query=query))
        return node.model_copy(update={"query": query})

    def commit(self, *, since: int) -> None:
        """Write the branches onto the trace in the plan's order, whichever of them was done first."""
        for node in self._ids:
            if node in self._branches:
                self._branches[node].commit(node=node, since=since)

    async def _ask(self, node: Node, found: Found) -> str:
        """What the policy wrote between the tags of a fill, or as the whole turn of a chat."""
        if self._tokens <= 0:
            raise _NotFilled("the budget of policy tokens has ended")
        tape = self._branches[node.id] = self._tape.fork(f"{self._round}.{node.id}")
        try:
            self._show(tape, {parent: found.get(parent, []) for parent in self._parents[node.id]}, node)
            tokens = min(self._tokens, self._limit - tape.tokens)
            block, cut = await tape.sample(
                stop=[self._protocol.closing("fill")], max_tokens=max(tokens, 1), until=("fill",)
            )
        except ContextFull:
            raise _NotFilled("the context has no room for its parents' passages") from None
        if block is not None:
            return block.text
        if cut:
            raise _NotFilled(self._why_cut(tokens))
        last = tape.drain()
        if self._continues or last is None or last.tagged:
            raise _NotFilled("its query was not closed")
        return last.text

    def _show(self, tape: Tape, parents: Mapping[str, Sequence[Passage]], node: Node) -> None:
        room = self._limit - tape.tokens - min(_HELD, self._tokens)
        room = min(room, self._protocol.budget_tokens or room)
        said = show_parents(
            parents,
            protocol=self._protocol,
            fits=lambda text: tape.fits(text, room),
            tokens=self._marks,
        )
        if not said:
            raise ContextFull("not one passage of a parent fits")
        if self._continues:
            tape.tell(said)
            tape.open("fill", self._protocol.fill_text(node.id))
        else:
            tape.tell(said)
            tape.tell(self._protocol.ask_fill_text(node.id), by="loop")

    def _why_cut(self, tokens: int) -> str:
        if tokens < self._tokens:
            return "the context has no room for its query"
        if tokens < min(FILL_TOKENS, self._protocol.turn_tokens or FILL_TOKENS):
            return "the budget of policy tokens has ended"
        return f"its query was not closed within {tokens} tokens"

    def _checked(self, text: str, node: Node) -> str:
        """The query on one line.

        Raises:
            _NotFilled: it cannot be asked.
        """
        query = " ".join(text.split()).removesuffix(f"({node.source})").rstrip()
        if mark := next((mark for mark in self._protocol.all_marks if mark in text), ""):
            raise _NotFilled(f"its query holds the mark {mark!r}")
        if query.casefold() == self._protocol.skip.casefold():
            raise _NotFilled("the policy skipped it")
        query = re.sub(rf"^{re.escape(node.id)}\s*:\s*", "", query)
        if not query:
            raise _NotFilled("its query is empty")
        if len(query) > MAX_QUERY_CHARS:
            raise _NotFilled(f"its query has {len(query)} characters; at most {MAX_QUERY_CHARS} can be asked")
        asked = node.model_copy(update={"query": query, "parents": self._parents[node.id]})
        if reference := next((parent for _, parent in Plan(nodes=(asked,)).references), ""):
            raise _NotFilled(f"its query still holds '#{reference}'")
        return query
