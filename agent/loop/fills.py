"""Fills: a query that holds `#A` is finished by the policy, in a branch of the context, once A has been answered."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from agent.errors import ContextFull
from agent.evidence import Passage
from agent.loop.context import ContextWriter
from agent.loop.execute import Found
from agent.loop.observation import show_parents
from agent.loop.state import RolloutState
from agent.plan import Node, Plan
from agent.plan.text import MAX_QUERY_CHARS
from agent.trace import Filled, Skipped

FILL_TOKENS: Final = 512
"""Tokens that one fill may have; a query is much shorter."""
_HELD: Final = 64
"""Tokens that are held back for the query when its parents' passages are cut to the room that the context has."""


class _NotFilled(Exception):
    """The node is skipped; the sentence says why."""


class Fills:
    """The fills of one plan. Several may be written at the same time, each in a branch of its own."""

    def __init__(self, state: RolloutState, plan: Plan, *, round: int) -> None:
        """Take the plan as the policy wrote it, at the end of the context; nothing may be appended while it runs.

        Args:
            state: what is left of the policy's tokens is shared equally by the fills, so that none races another one.
            plan: with every parent, also those that will not be searched for.
            round: number of the round.
        """
        children = {child for child, _ in plan.references} if state.protocol.fills else set[str]()
        self._parents = {node.id: node.parents for node in plan.nodes if node.id in children}
        self._ids = [node.id for node in plan.nodes]
        self._state = state
        self._round = round
        share = min(FILL_TOKENS, state.budget.policy_tokens // len(children)) if children else 0
        self._tokens = min(share, state.protocol.turn_tokens or share)
        self._branches: dict[str, ContextWriter] = {}
        self.queries: dict[str, str] = {}
        """Node → the query that the policy wrote."""

    async def fill(self, node: Node, found: Found) -> Node | None:
        """The node with its query filled in; None where it is skipped.

        Raises:
            PolicyError: the engine failed.
        """
        if node.id not in self._parents:
            return node
        try:
            query = self._checked(await self._ask(node, found), node)
        except _NotFilled as why:
            self._state.recorder.step(Skipped(round=self._round, node=node.id, why=str(why)))
            return None
        self.queries[node.id] = query
        self._state.recorder.step(Filled(round=self._round, node=node.id, query=query))
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
        protocol = self._state.protocol
        writer = self._branches[node.id] = self._state.writer.fork(f"{self._round}.{node.id}")
        try:
            self._show(writer, {parent: found.get(parent, []) for parent in self._parents[node.id]}, node)
            tokens = min(self._tokens, self._state.budget.limit - writer.tokens)
            block, cut = await writer.sample(
                stop=[protocol.closing("fill")], max_tokens=max(tokens, 1), until=("fill",)
            )
        except ContextFull:
            raise _NotFilled("the context has no room for its parents' passages") from None
        if block is not None:
            return block.text
        if cut:
            raise _NotFilled(self._why_cut(tokens))
        last = writer.drain()
        if self._state.continues or last is None or last.tagged:
            raise _NotFilled("its query was not closed")
        return last.text

    def _show(self, writer: ContextWriter, parents: Mapping[str, Sequence[Passage]], node: Node) -> None:
        protocol = self._state.protocol
        room = self._state.budget.limit - writer.tokens - min(_HELD, self._tokens)
        room = min(room, protocol.budget_tokens or room)
        text = show_parents(
            parents, protocol=protocol, fits=lambda text: writer.fits(text, room), tokens=self._state.tokens
        )
        if not text:
            raise ContextFull("not one passage of a parent fits")
        writer.say(text)
        if self._state.continues:
            writer.open("fill", protocol.fill_text(node.id))
        else:
            writer.say(protocol.ask_fill_text(node.id), by="loop")

    def _why_cut(self, tokens: int) -> str:
        if tokens < self._tokens:
            return "the context has no room for its query"
        if tokens < min(FILL_TOKENS, self._state.protocol.turn_tokens or FILL_TOKENS):
            return "the budget of policy tokens has ended"
        return f"its query was not closed within {tokens} tokens"

    def _checked(self, text: str, node: Node) -> str:
        """The query on one line.

        Raises:
            _NotFilled: it cannot be searched.
        """
        query = " ".join(text.split()).removesuffix(f"({node.source})").rstrip()
        if mark := next((mark for mark in self._state.protocol.all_marks if mark in text), ""):
            raise _NotFilled(f"its query holds the mark {mark!r}")
        if query.casefold() == self._state.protocol.skip.casefold():
            raise _NotFilled("the policy skipped it")
        query = re.sub(rf"^{re.escape(node.id)}\s*:\s*", "", query)
        if not query:
            raise _NotFilled("its query is empty")
        if len(query) > MAX_QUERY_CHARS:
            raise _NotFilled(f"its query has {len(query)} characters; at most {MAX_QUERY_CHARS} can be searched")
        filled = node.model_copy(update={"query": query, "parents": self._parents[node.id]})
        if reference := next((parent for _, parent in Plan(nodes=(filled,)).references), ""):
            raise _NotFilled(f"its query still holds '#{reference}'")
        return query
