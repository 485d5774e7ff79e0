"""Episodes of the oracle on the whole little world: the context that the loop would make, and its branches.

Nothing here runs a loop: the world is asked in order, and the loop's own parts say how it is shown. A test holds every
episode against the loop itself.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from agent.evidence import Passage
from agent.loop.observation import show, show_parents
from agent.plan import Plan, parse_plan
from agent.protocols import TextProtocol
from agent.sources.base import Source
from agent.world import Question, World
from agent.world.world import ShelfSource
from train.sft.oracle import NotShown, Unreachable
from train.sft.oracle.poor import Poverty, Told, poor_teachers
from train.sft.oracle.teacher import Teacher
from train.sft.segments import Piece

_MANY = 1_000_000


@dataclass(frozen=True)
class Fork:
    """A branch: where it leaves the episode, and what follows there."""

    at: int
    """Pieces of the episode that it begins with."""
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Episode:
    """One question, answered."""

    pieces: tuple[Piece, ...]
    forks: tuple[Fork, ...] = ()


def episode(world: World, question: Question, protocol: TextProtocol, *, fill: bool = False) -> Episode:
    """What the loop makes of a question when the policy is the oracle.

    Raises:
        Unreachable: the protocol cannot answer it.
        NotShown: what its searches show is not enough to answer it rightly.
    """
    return _Making(world, question, protocol, Teacher(question, protocol, world.document, fill=fill)).make()


def poor_episode(told: Told, question: Question, protocol: TextProtocol, how: Poverty) -> Episode:
    """What the loop makes of a question when the policy copies well and chooses badly.

    Raises:
        Unreachable: the question cannot be answered so under this protocol.
    """
    for teacher in poor_teachers(question, protocol, told, how):
        with suppress(NotShown, Unreachable):
            return _Making(told.world, question, protocol, teacher).make()
    raise Unreachable(f"there is no trajectory with {how} for it")


class _Making:
    def __init__(self, world: World, question: Question, protocol: TextProtocol, teacher: Teacher) -> None:
        self._world, self._protocol, self._teacher = world, protocol, teacher
        self._sources: Mapping[str, ShelfSource] = world.sources()
        self._pieces = [Piece("prompt", protocol.prompt_text(question.question, history=question.history))]
        self._forks: list[Fork] = []
        self._shown: list[Passage] = []

    def make(self) -> Episode:
        while True:
            turn = self._teacher.turn()
            self._pieces.append(Piece("policy", turn.text))
            if turn.ends == "answer":
                return Episode(tuple(self._pieces), tuple(self._forks))
            self._search(turn.text)

    def _search(self, text: str) -> None:
        opening, closing = self._protocol.opening("search"), self._protocol.closing("search")
        written = text.rpartition(opening)[2].removesuffix(closing)
        sources: Mapping[str, Source] = self._sources
        plan = parse_plan(written, protocol=self._protocol, sources=sources)
        found, filled = self._run(plan)
        shown = show(
            found,
            [],
            protocol=self._protocol,
            seen=self._shown,
            limit=_MANY,
            fits=lambda _: True,
            queries=filled,
        )
        self._pieces.append(Piece("environment", shown.text))
        self._shown.extend(shown.passages)
        self._teacher.see(shown.passages)

    def _run(self, plan: Plan) -> tuple[dict[str, list[Passage]], dict[str, str]]:
        """What every node finds, and the queries that were filled in."""
        found: dict[str, list[Passage]] = {}
        filled: dict[str, str] = {}
        children = {child for child, _ in plan.references}
        for place, node in enumerate(plan.nodes):
            query = node.query
            if node.id in children:
                parents = {parent: found.get(parent, []) for parent in node.parents}
                query = self._fill(place, node.id, parents)
                if query == self._protocol.skip:
                    found[node.id] = []
                    continue
                filled[node.id] = query
            hits = self._sources[node.source].shelf.find(query, limit=self._protocol.passages)
            found[node.id] = [hit.model_copy(update={"node": node.id}) for hit in hits]
        return found, filled

    def _fill(self, place: int, node: str, parents: Mapping[str, Sequence[Passage]]) -> str:
        """The query of a node that waited for its parents, written in a branch."""
        said = show_parents(parents, protocol=self._protocol, fits=lambda _: True)
        told = [passage for passages in parents.values() for passage in passages[:2]]
        text = self._teacher.fill(self._teacher.lines[place], told)
        pieces = (
            Piece("environment", said),
            Piece("loop", self._protocol.fill_text(node)),
            Piece("policy", text),
        )
        self._forks.append(Fork(len(self._pieces), pieces))
        return text.removesuffix(self._protocol.closing("fill"))
