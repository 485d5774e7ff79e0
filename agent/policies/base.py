"""The seam between the loop, which sees text, and an engine, which may also keep tokens."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, Protocol, TypeVar, runtime_checkable

from agent.protocols.base import TextProtocol
from agent.sanitize.sanitize import unusual_tokens
from agent.trace import Author, RungUsed, Segment


@dataclass(frozen=True)
class Sampling:
    """How to sample. Temperature 0 is greedy."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    """0: no limit."""
    seed: int = 0


@dataclass(frozen=True)
class Chunk:
    """Text as it was sampled, with ids and log-probabilities from engines that give them."""

    text: str
    ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    cut: bool = False
    """On a last chunk: the engine ended because `max_tokens` were sampled. Needed only where it gives no ids."""

    @property
    def tokens(self) -> int:
        """How many it has, estimated where the engine gives no ids."""
        return len(self.ids) or -(-len(self.text) // 4)


class Context(Protocol):
    """One context that only grows."""

    @property
    def segments(self) -> list[Segment]:
        """Every piece of the context in order; text with ids was never encoded twice."""
        ...

    @property
    def tokens(self) -> int:
        """Length of the whole context in tokens (estimated where the engine does not report it)."""
        ...

    @property
    def ended_turn(self) -> bool:
        """Whether the policy ended the turn that it sampled last itself, with the token that ends one."""
        ...

    def generate(self, sampling: Sampling, *, stop: Sequence[str], max_tokens: int) -> AsyncGenerator[Chunk]:
        """Continue the context until one of `stop` was sampled (its text is included), the policy ends its turn, or
        `max_tokens` were sampled. What was sampled becomes one `policy` segment, also when the caller closes early.

        Raises:
            PolicyError: the engine failed; ContextFull where there is no room.
        """  # noqa: D205 - one sentence over two lines
        ...

    def append(self, text: str, *, by: Author) -> Segment:
        """Put text into the context that the policy did not sample. Special tokens in it are plain text."""
        ...

    def fork(self) -> "Context":
        """A context of its own that starts as a copy of this one; changes to one don't affect the other."""
        ...

    def count(self, text: str) -> int:
        """Tokens that the text would take if the environment said it (an estimate where the engine reports none)."""
        ...


@runtime_checkable
class Prepared(Protocol):
    """A policy that must ask something of its engine before the first context is opened."""

    async def prepare(self) -> None:
        """Ask it, the first time; afterwards it does nothing.

        Raises:
            PolicyError: the engine does not answer, or is not what the settings say.
        """
        ...


@runtime_checkable
class Probed(Protocol):
    """A policy whose engine can be gone while this process lives."""

    async def probe(self) -> None:
        """Ask the engine for a sign of life; nothing is sampled.

        Raises:
            PolicyError: it gives none.
        """
        ...


@runtime_checkable
class Trained(Protocol):
    """A policy whose checkpoint says how it was trained."""

    @property
    def passages(self) -> Mapping[str, int]:
        """Passages per search in training, by protocol, where it differs from the protocol's."""
        ...


@runtime_checkable
class Dated(Protocol):
    """A policy whose checkpoint says whether passages had dates in training."""

    @property
    def dates(self) -> bool: ...


@runtime_checkable
class Spelled(Protocol):
    """A policy whose tokenizer is at hand."""

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """Every token that its tokenizer has beside those of plain text."""
        ...


@runtime_checkable
class Chosen(Protocol):
    """A policy that hands some protocols to another policy; known after `prepare`."""

    def for_protocol(self, protocol: TextProtocol) -> "Policy": ...


@runtime_checkable
class OnRungs(Protocol):
    """A context of a general model, which says how that is spoken to, and shows passages in its own way."""

    @property
    def rungs(self) -> Sequence[RungUsed]: ...

    @property
    def protocol(self) -> TextProtocol: ...


def special_tokens_of(policy: object) -> tuple[str, ...]:
    """The special tokens of a policy's tokenizer that do not look like one; none where it is not known."""
    return _unusual(policy.special_tokens) if isinstance(policy, Spelled) else ()


@lru_cache(maxsize=16)
def _unusual(tokens: tuple[str, ...]) -> tuple[str, ...]:
    return unusual_tokens(tokens)


class Policy(Protocol):
    """What continues a context. One that is `Prepared`, too, is prepared before `open`: see `open_context`."""

    @property
    def name(self) -> str: ...

    @property
    def context_tokens(self) -> int:
        """The longest context that the engine takes."""
        ...

    @property
    def continues(self) -> bool:
        """Whether it can go on inside its own turn. A chat engine that cannot gets a user turn instead."""
        ...

    @property
    def instructed(self) -> bool:
        """Whether its prompt needs the protocol's rules (a general chat model), or it was trained on the protocol."""
        ...

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> Context:
        """Open a context with the protocol's prompt; `date` is today's, for prompts that hold it."""
        ...

    async def aclose(self) -> None: ...


async def prepared(policy: Policy, protocol: TextProtocol) -> Policy:
    """The policy that speaks a protocol, ready to open contexts.

    Raises:
        PolicyError: the engine does not answer.
    """
    if isinstance(policy, Prepared):
        await policy.prepare()
    return policy.for_protocol(protocol) if isinstance(policy, Chosen) else policy


async def open_context(
    policy: Policy,
    protocol: TextProtocol,
    question: str,
    *,
    history: Sequence[tuple[str, str]] = (),
    date: str = "",
) -> Context:
    """Prepare the policy, where it wants that, and open a context.

    Raises:
        PolicyError: the engine does not answer; ContextFull where the question is longer than the context.
    """
    ready = await prepared(policy, protocol)
    return ready.open(protocol, question, history=history, date=date)


P = TypeVar("P", bound=Policy)


@dataclass(frozen=True)
class WrappedPolicy(Generic[P]):
    """A base for policies that change what another one samples: it has the name and the properties of `policy`.

    A subclass defines `open` and `aclose`.
    """

    policy: P

    @property
    def name(self) -> str:
        return self.policy.name

    @property
    def context_tokens(self) -> int:
        return self.policy.context_tokens

    @property
    def continues(self) -> bool:
        return self.policy.continues

    @property
    def instructed(self) -> bool:
        return self.policy.instructed
