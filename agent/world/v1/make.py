"""Worlds of generator 1, as they were when the frozen list test-v1 and the first checkpoint were made."""

import random
from collections.abc import Iterable, Mapping, Sequence

from agent.world.card import WorldCard
from agent.world.names import Split, bare_name
from agent.world.records import Document, Lookup, Question, QuestionType
from agent.world.v1.pages import write_documents
from agent.world.v1.questions import MIX, QuestionWriter
from agent.world.v1.universe import Size, make_universe
from agent.world.world import World


def make_world(
    seed: int,
    *,
    split: Split,
    people: int = 110,
    questions: int = 0,
    name: str = "",
    mix: Mapping[QuestionType, float] = MIX,
) -> World:
    """Generate a world and `questions` questions about it, in the shares of `mix`. The same seed gives the same world.

    A question is kept only if its gold plan, searched for real, finds what it needs.
    """
    rng = random.Random(f"cairn world {split} {seed}")
    universe = make_universe(rng, split=split, size=Size.of(people))
    documents = write_documents(universe, rng)
    world = World.of(name or f"{split}-{seed}", documents)
    writer = QuestionWriter(universe, documents, rng)
    kinds = _shuffled_kinds(questions, mix, rng)
    return World(world.name, world.documents, tuple(_draw_all(world, writer, kinds)), world.shelves)


def _shuffled_kinds(total: int, mix: Mapping[QuestionType, float], rng: random.Random) -> list[QuestionType]:
    """How many of each type, exactly in the shares of the mix (what rounding leaves goes to the first), shuffled."""
    counts: dict[QuestionType, int] = {kind: int(total * share) for kind, share in mix.items()}
    counts["chain1"] = counts.get("chain1", 0) + total - sum(counts.values())
    kinds: list[QuestionType] = [kind for kind, count in counts.items() for _ in range(count)]
    rng.shuffle(kinds)
    return kinds


def _draw_all(world: World, writer: QuestionWriter, kinds: Sequence[QuestionType]) -> Iterable[Question]:
    asked: set[str] = set()
    for number, kind in enumerate(kinds):
        for _ in range(2000):
            question = writer.draw(kind, f"{world.name}-{number}")
            if question is None or question.question in asked:
                continue
            checked = _searched(world, question)
            if checked is not None:
                asked.add(checked.question)
                yield checked
                break
        else:
            raise ValueError(f"this world is too small for {len(kinds)} questions: no new {kind} can be drawn")


def _searched(world: World, question: Question) -> Question | None:
    """The question with its trap marked, or None where a search of its plan misses the gold document."""
    trap = False
    for lookups in question.plan:
        for lookup in lookups:
            found = {p.id for source in lookup.sources for p in world.find(source, lookup.query, limit=2)}
            # Alone in its round, a look-up is also asked in other words.
            queries = (lookup.query, lookup.rephrased) if len(lookups) == 1 else (lookup.query,)
            joint = {p.id for query in queries for p in world.find("all", query, limit=3)}
            if lookup.gold not in found or lookup.gold not in joint:
                return None
            trap = trap or any(_misleads(world.document(key), lookup) for key in found)
    return question.model_copy(update={"trap": trap})


def _misleads(document: Document, lookup: Lookup) -> bool:
    """Whether a document is outdated on this look-up, or about a namesake of its subject."""
    outdated = any(
        s.outdated and s.subject == lookup.subject and s.relation == lookup.relation for s in document.states
    )
    subjects = {s.subject for s in document.states}
    name = bare_name(lookup.subject)
    return outdated or any(bare_name(s) == name and s != lookup.subject for s in subjects)


def first_card(name: str, seed: int, *, split: Split, people: int) -> WorldCard:
    """What world.json says of a world of this generator, before it is counted."""
    return WorldCard(name=name, generator=1, seed=seed, split=split, people=people, documents=0, questions=0, files={})
