"""Episodes of the oracle on the little world: the loop runs, and the oracle's turns are its policy."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from typing import Final

from agent.evidence import Passage
from agent.loop.agent import Agent
from agent.loop.budgets import Budgets
from agent.plan import Plan
from agent.policies.base import Chunk, Sampling
from agent.protocols import TextProtocol
from agent.sources.select import choose
from agent.trace import Author, Event, Gathered, Planned, Searched, Segment, Trace
from agent.world import Question, World
from train.common.habit import Habit, Noise
from train.sft.oracle import NotShown, Unreachable
from train.sft.oracle.habits import HabitExpert
from train.sft.oracle.noisy import NoisyExpert
from train.sft.oracle.teacher import Teacher

_MANY: Final = 1_000_000
_BUDGETS: Final = Budgets(searches=_MANY, passages=_MANY, policy_tokens=_MANY, seconds=_MANY)


@dataclass(frozen=True)
class EpisodePiece:
    """A segment of a context before it is tokens."""

    by: Author
    text: str
    ids: tuple[int, ...] | None = None
    """As an engine had them, for a tokenizer that reads the same text from them."""


@dataclass(frozen=True)
class Fork:
    """A branch: where it leaves the episode, and what follows there."""

    at: int
    """Pieces of the episode that it begins with."""
    pieces: tuple[EpisodePiece, ...]


@dataclass(frozen=True)
class Episode:
    """One question, answered."""

    pieces: tuple[EpisodePiece, ...]
    forks: tuple[Fork, ...] = ()


def episode(world: World, question: Question, protocol: TextProtocol, *, fill: bool = False) -> Episode:
    """What the loop makes of a question when the policy is the oracle.

    Raises:
        Unreachable: the protocol cannot answer it.
        NotShown: what its searches show is not enough to answer it rightly.
    """
    return _episode_of(
        oracle_rollout(world, question, protocol, Teacher(question, protocol, world.document, fill=fill))
    )


def noisy_episode(expert: NoisyExpert, question: Question, protocol: TextProtocol, noise: Noise) -> Episode:
    """What the loop makes of a question when the policy copies well and chooses badly.

    Raises:
        Unreachable: the question cannot be answered so under this protocol.
    """
    return _first(expert.world, question, protocol, expert.teachers(question, protocol, noise), shows=noise)


def habitual_episode(
    expert: HabitExpert, question: Question, protocol: TextProtocol, habits: Collection[Habit]
) -> Episode:
    """What the loop makes of a question when the policy has these habits.

    Raises:
        Unreachable: the question cannot be answered so under this protocol.
    """
    teachers = expert.teachers(question, protocol, habits)
    return _first(expert.world, question, protocol, teachers, shows=", ".join(habits))


def _first(
    world: World, question: Question, protocol: TextProtocol, teachers: Iterable[Teacher], *, shows: str
) -> Episode:
    """The episode of the first teacher that comes to an end."""
    for teacher in teachers:
        with suppress(NotShown, Unreachable):
            return _episode_of(oracle_rollout(world, question, protocol, teacher))
    raise Unreachable(f"there is no trajectory with {shows} for it")


def oracle_rollout(
    world: World, question: Question, protocol: TextProtocol, teacher: Teacher, *, only: Sequence[str] = ()
) -> Trace:
    """What the loop makes of a question when a teacher writes the turns.

    Args:
        world: that is searched.
        question: of the world.
        protocol: of the rollout.
        teacher: of this question.
        only: sources that answer; empty: all of the world.

    Raises:
        Unreachable, NotShown: the teacher comes to no answer.
    """
    protocol = protocol.model_copy(update={"fills": "fill" in protocol.tags})
    policy = _OraclePolicy(teacher, protocol)
    sources = choose(world.sources(), only) if only else world.sources()
    agent = Agent(policy, protocol, sources, budgets=_BUDGETS)
    trace = asyncio.run(agent.run(agent.new_trace(question.question, history=question.history), emit=policy.observe))
    assert trace.stopped is not None
    assert trace.stopped.reason == "answered", trace.stopped.detail
    return trace


def _episode_of(trace: Trace) -> Episode:
    forks = tuple(
        Fork(len(_pieces(trace.segments[: branch.segment + 1], "main")), _pieces(trace.segments, name))
        for name, branch in trace.branches.items()
    )
    return Episode(_pieces(trace.segments, "main"), forks)


def _pieces(segments: Sequence[Segment], branch: str) -> tuple[EpisodePiece, ...]:
    return tuple(EpisodePiece(segment.by, segment.text) for segment in segments if segment.branch == branch)


@dataclass
class _OraclePolicy:
    """A policy whose turns a teacher writes. Its texts have no tokens, so that everything fits."""

    teacher: Teacher
    protocol: TextProtocol
    name: str = "oracle"
    context_tokens: int = _MANY
    continues: bool = True
    instructed: bool = False
    _plan: Plan = field(default=Plan(nodes=()))
    _found: dict[str, tuple[Passage, ...]] = field(default_factory=dict[str, tuple[Passage, ...]])

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> "_OracleContext":
        return _OracleContext(self, protocol.prompt_text(question, history=tuple(history)))

    async def aclose(self) -> None:
        """There is nothing to close."""

    def observe(self, event: Event) -> None:
        """What the searches of a round find, and what the policy is shown of it.

        Raises:
            NotShown: it misleads.
        """
        match event:
            case Planned():
                self._plan, self._found = event.plan, {}
            case Searched():
                self._found[event.node] = event.passages
            case Gathered():
                self.teacher.see(event.passages)
            case _:
                pass

    def fill(self, opening: str) -> str:
        """The query of the node that the loop has opened a block for."""
        place, node = next(
            (place, node)
            for place, node in enumerate(self._plan.nodes)
            if opening.endswith(self.protocol.fill_text(node.id))
        )
        best = [passage for parent in node.parents for passage in self._found.get(parent, ())[:2]]
        return self.teacher.fill(self.teacher.lines[place], best)


class _OracleContext:
    tokens = 0
    ended_turn = False

    def __init__(self, policy: _OraclePolicy, prompt: str) -> None:
        self._policy = policy
        self._forked = False
        self.segments = [Segment(by="prompt", text=prompt)]

    async def generate(self, sampling: Sampling, *, stop: Sequence[str], max_tokens: int) -> AsyncGenerator[Chunk]:
        text = self._policy.fill(self.segments[-1].text) if self._forked else self._policy.teacher.turn().text
        self.append(text, by="policy")
        yield Chunk(text)

    def append(self, text: str, *, by: Author) -> Segment:
        self.segments.append(Segment(by=by, text=text))
        return self.segments[-1]

    def fork(self) -> "_OracleContext":
        forked = copy(self)
        forked._forked, forked.segments = True, list(self.segments)
        return forked

    def count(self, text: str) -> int:
        return 0
