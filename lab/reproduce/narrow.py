"""The embedded policy with fewer queries a search than it writes: a search ends behind the last that it may have."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from agent.errors import SetupError
from agent.policies.base import Sampling, WrappedPolicy
from agent.policies.embedded import EmbeddedPolicy
from agent.policies.token_context import Sampled, TokenContext
from agent.protocols import TextProtocol


@dataclass(frozen=True)
class NarrowPolicy(WrappedPolicy[EmbeddedPolicy]):
    """For protocols with a line or a separator for each query. The closing mark is put where the next query begins."""

    queries: int

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> TokenContext:
        """Open a context.

        Raises:
            SetupError: the protocol has one query a search.
        """
        if protocol.plan not in ("lines", "queries"):
            raise SetupError(f"the protocol {protocol.name!r} has no queries side by side to be cut short")
        codec, limit = self.policy.checkpoint.codec, self.context_tokens
        sampler = _Narrow(self, protocol)
        return TokenContext(sampler, codec, protocol, question, limit=limit, history=history, date=date)

    async def aclose(self) -> None:
        await self.policy.aclose()


@dataclass(frozen=True)
class _Narrow:
    owner: NarrowPolicy
    protocol: TextProtocol

    async def sample(
        self, ids: Sequence[int], sampling: Sampling, *, ends: frozenset[int], max_tokens: int
    ) -> AsyncGenerator[list[Sampled]]:
        policy, codec = self.owner.policy, self.owner.policy.checkpoint.codec
        opening, closing = self.protocol.opening("search"), self.protocol.closing("search")
        single = codec.id_of(closing)
        closed = (single,) if single is not None else codec.encode(closing)
        stream, text = codec.stream(), ""
        async with aclosing(policy.sample(ids, sampling, ends=ends, max_tokens=max_tokens)) as batches:
            async for batch in batches:
                for number, logprob in batch:
                    text += stream.feed(number)
                    _, searching, written = text.rpartition(opening)
                    if searching and closing not in written and self._queries(written) >= self.owner.queries:
                        last = [(number, logprob)] if text.endswith("\n") else []
                        yield [*last, *((mark, 0.0) for mark in closed)]
                        return
                    yield [(number, logprob)]

    def _queries(self, written: str) -> int:
        """Queries that are whole."""
        if self.protocol.plan == "lines":
            return written.lstrip().count("\n")
        return written.count(self.protocol.separator)
