"""Retriever probes: queries with a known answer, sent before and during a run. A dead retriever ends the run at once.

It looks at sources alone. That all searches of a step failed is a rule of the monitors.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from agent.errors import SetupError, SourceError
from agent.plan import DOCUMENTS
from agent.sources.base import SearchRequest, Source, ask
from agent.world import World

_ALL: Final = ("all", DOCUMENTS)
"""Sources of a little world that search what the others hold."""
_TRIED: Final = 20
"""Documents of a source that are tried until one is found by its first words."""
_WORDS: Final = 16


class RetrieverDead(SetupError):
    """A source does not find what it is known to hold."""


class Probe(BaseModel):
    """A query, and what must be among the passages that it finds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    query: str = Field(min_length=1)
    expects: str = Field(min_length=1)
    """The id of a passage, or words of its title or text (small and capital letters are the same)."""
    limit: int = Field(default=5, ge=1)


@dataclass(frozen=True)
class RetrieverProbes:
    """Sends its probes to the sources that a run searches."""

    probes: tuple[Probe, ...]
    every_steps: int = 1
    seconds: float = 20.0
    """For all probes together, as they are sent at once."""

    def is_due(self, step: int) -> bool:
        """Whether they are sent before this step; steps count from 1."""
        return (step - 1) % self.every_steps == 0

    async def check(self, sources: Mapping[str, Source], *, when: str) -> None:
        """Send every probe, all at once.

        Args:
            sources: by name.
            when: for the sentence, for example "before step 12".

        Raises:
            RetrieverDead: one was not answered, or without what it must find.
            SetupError: a probe names an unknown source.
        """
        for probe in self.probes:
            if probe.source not in sources:
                has = ", ".join(sorted(sources))
                raise SetupError(f"a probe names the source {probe.source!r}, and this run has {has}: fix [safety]")
        failures = (self._why_dead(probe, sources[probe.source]) for probe in self.probes)
        for probe, why in zip(self.probes, await asyncio.gather(*failures), strict=True):
            if why:
                raise RetrieverDead(
                    f"the retriever is dead: {when}, {probe.source!r} was searched for {probe.query!r}, and {why}; "
                    "no step is learned from such searches: start the retriever again, then continue with --resume"
                )

    async def _why_dead(self, probe: Probe, source: Source) -> str:
        try:
            found = await ask(source, SearchRequest(probe.query, limit=probe.limit), seconds=self.seconds)
        except SourceError as error:
            return f"it failed ({error.kind}: {error})"
        if found.cached == "stale":
            return "only an old answer of the cache came, because the new search failed"
        if not found.passages:
            return "it found nothing"
        wanted = probe.expects.casefold()
        if any(wanted in f"{p.id}\n{p.title}\n{p.text}".casefold() for p in found.passages):
            return ""
        count = len(found.passages)
        return f"none of its {count} passages holds {probe.expects!r}: is it the index that the run was made for?"


def world_probes(world: World, sources: Sequence[str]) -> tuple[Probe, ...]:
    """A probe for each of these sources of a little world: a document's first words, which must find it."""
    found = (_probe(world, name) for name in dict.fromkeys(sources) if name in world.indexes or name in _ALL)
    return tuple(probe for probe in found if probe)


def _probe(world: World, source: str) -> Probe | None:
    """None where the source holds nothing that its first words find."""
    index = world.sources()[source].index
    held = [d for d in world.documents if source in (d.source, "all") or (source == DOCUMENTS and d.source != "kg")]
    for document in held[:_TRIED]:
        query = " ".join(f"{document.title} {document.text}".split()[:_WORDS])
        if any(passage.id == document.id for passage in index.find(query, limit=5)):
            return Probe(source=source, query=query, expects=document.id)
    return None
