"""What a build starts from: files of documents by source, or a little world. It reads, and hashes what it read."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from agent.errors import CorpusError
from agent.world import Question, World, load_world
from agent.world.store import WorldCard, folder_of, frozen_lists, read_card
from train.data.documents import Named, part_of, read_documents, world_documents
from train.data.records import Doc
from train.safety.manifest import hash_of


@dataclass(frozen=True)
class Files:
    """Documents as JSON lines."""

    named: Sequence[Named]

    def hashes(self) -> dict[str, str]:
        """Source and name of each file → SHA-256; those of one name, from several folders, by their whole paths.

        Raises:
            CorpusError: one cannot be read.
        """
        names = Counter((source, path.name) for source, path in self.named)
        try:
            return {
                f"{source or 'documents'} {path.name if names[source, path.name] == 1 else path.as_posix()}": hash_of(
                    path
                )
                for source, path in self.named
            }
        except OSError as error:
            raise CorpusError(f"{error.filename} cannot be read: {error.strerror or error}") from error

    def documents(self) -> list[Doc]:
        return read_documents(self.named)


class WorldInput:
    """A little world with a folder: a frozen list, or one of `cairn world build`."""

    def __init__(self, which: str) -> None:
        """Look at a world's card.

        Raises:
            SetupError: there is no such world.
        """
        self.which = which
        self.card: WorldCard = read_card(folder_of(which))

    @property
    def anywhere(self) -> str:
        """A name that means the same world in every folder."""
        return self.which if self.which in ("test", *frozen_lists()) else str(Path(self.which).resolve())

    @property
    def sha256(self) -> str:
        """Of its documents."""
        return hashlib.sha256(self.card.files["documents.jsonl"].encode()).hexdigest()

    @cached_property
    def world(self) -> World:
        return load_world(self.which)

    def hashes(self) -> dict[str, str]:
        return {f"world {self.card.name}": self.sha256}

    def documents(self) -> list[Doc]:
        return world_documents(self.world)

    @cached_property
    def parts(self) -> dict[int, World]:
        """The world's parts by their numbers; their documents are in the world's order."""
        if self.card.shards == 1:
            return {0: self.world}
        held: dict[int, list[int]] = {}
        for place, document in enumerate(self.world.documents):
            held.setdefault(part_of(document.id), []).append(place)
        every = self.world.documents
        return {
            part: World.of(f"{self.card.name}-{part}", [every[place] for place in places])
            for part, places in sorted(held.items())
        }

    def with_questions(self, questions: Sequence[Question]) -> list[World]:
        """The parts, each with the questions that are of it."""
        by_part: dict[int, list[Question]] = {part: [] for part in self.parts}
        for question in questions:
            by_part[question.shard].append(question)
        return [replace(world, questions=tuple(by_part[part])) for part, world in self.parts.items()]


Inputs = Files | WorldInput
