"""Oracle trajectories as text: the context that the loop would make, piece by piece."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from agent.evidence import Passage, gather
from agent.protocols import TextProtocol
from agent.trace import Author
from agent.world import Question, World
from train.sft.oracle.first import Oracle


@dataclass(frozen=True)
class Piece:
    """A segment of a context before it is tokens."""

    by: Author
    text: str
    ids: tuple[int, ...] | None = None
    """As an engine had them, for a tokenizer that reads the same text from them."""


def trajectory(world: World, question: Question, protocol: TextProtocol) -> list[Piece]:
    """What the loop makes of a question when the policy is the oracle; a test holds it against the loop itself."""
    return played(world, Oracle(question, protocol))


def played(world: World, oracle: Oracle) -> list[Piece]:
    """What the loop makes of an oracle's turns.

    Raises:
        LookupError: it speaks of a passage that was not shown.
    """
    protocol = oracle.protocol
    pieces = [Piece("prompt", protocol.prompt_text(oracle.question.question))]
    shown: list[Passage] = []
    for number in count():
        pieces.append(Piece("policy", oracle.turn(number, shown)))
        if not oracle.searches(number, shown):
            break
        fresh, found = _search(world, oracle, number, shown)
        shown.extend(fresh)
        lines = [protocol.show(passage) for passage in fresh] or ([protocol.repeated] if found else [])
        pieces.append(Piece("environment", protocol.wrap(lines)))
    return pieces


def _search(world: World, oracle: Oracle, number: int, shown: Sequence[Passage]) -> tuple[tuple[Passage, ...], bool]:
    """The passages that were not shown before, and whether anything was found at all."""
    protocol = oracle.protocol
    found: list[list[Passage]] = []
    for place, (query, source) in enumerate(oracle.queries(number)):
        node = chr(ord("A") + place)
        hits = world.find(source, query, limit=protocol.passages)
        found.append([hit.model_copy(update={"node": node}) for hit in hits])
    if protocol.numbering == "round":
        return gather(found, budget=protocol.budget_chars), any(found)
    fresh = gather(found, budget=protocol.budget_chars, seen=shown, first_number=len(shown) + 1)
    return fresh, any(found)
