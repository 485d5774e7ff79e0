"""The news of a shard: dated reports that change facts, reports of events, and asides that state nothing."""

import random
from collections.abc import Iterator
from datetime import date, timedelta

from agent.world.difficulty import Difficulty
from agent.world.records import Stated
from agent.world.relations import RELATIONS
from train.world.frames import BACKGROUND, DATELINES, DISTRACTOR_TITLES, FILLERS
from train.world.grammar import capital, fill
from train.world.pages import PageDraft
from train.world.universe import NEWS_FROM, Tenure, Universe, WorldFact

_OLD_NEWS = 0.2
"""Share of changes that the pages know of and that an old report states, too."""
_MONTHS = "January February March April May June July August September October November December".split()


class NewsWriter:
    """Writes every report of a shard, once."""

    def __init__(self, universe: Universe, rng: random.Random, difficulty: Difficulty) -> None:
        self._universe, self._rng, self._difficulty = universe, rng, difficulty

    def write(self, pages: int) -> Iterator[PageDraft]:
        """Reports, and distractors as many as the noise asks of `pages` pages and the reports together."""
        reports = 0
        for fact in self._universe.facts.values():
            for draft in self._reports(fact):
                reports += 1
                yield draft
        for _ in range(round(self._difficulty.noise * (pages + reports))):
            yield self._distractor()

    def _reports(self, fact: WorldFact) -> Iterator[PageDraft]:
        if RELATIONS[fact.relation].sources == ("news",):
            day = date(NEWS_FROM, 1, 6) + timedelta(days=self._rng.randint(0, 500))
            yield self._report(fact, Tenure(fact.object, day.year), None, day)
        for before, now in zip(fact.tenures, fact.tenures[1:], strict=False):
            if now.since >= NEWS_FROM or self._rng.random() < _OLD_NEWS:
                day = date(now.since, 1, 4) + timedelta(days=self._rng.randint(0, 350))
                yield self._report(fact, now, before, day)

    def _report(self, fact: WorldFact, now: Tenure, before: Tenure | None, day: date) -> PageDraft:
        label, entity = self._universe.label, self._universe.entities[fact.subject]
        old = label(before.value) if before else ""
        names = {"o": label(now.value), "old": old, "since": str(before.since) if before else ""}
        title, lead = self._rng.choice(RELATIONS[fact.relation].news).split(" — ", 1)
        parts = [fill(lead, entity, **names)]
        if before and self._rng.random() < 0.5:
            parts.append(fill(self._rng.choice(BACKGROUND), entity, **names))
        parts += self._rng.sample(FILLERS["news"], self._rng.choice((0, 1, 1, 2)))
        text = self._dateline(day) + " ".join(capital(part) for part in parts)
        stated = Stated(
            subject=entity.label,
            relation=fact.relation,
            values=(label(now.value),),
            outdated=bool(now.until),
            since=str(now.since) if before else "",
            follows=old,
        )
        return PageDraft("news", capital(fill(title, entity, **names)), text, (stated,), day.isoformat())

    def _dateline(self, day: date) -> str:
        return self._rng.choice(DATELINES).format(day=f"{day.day} {_MONTHS[day.month - 1]} {day.year}")

    def _distractor(self) -> PageDraft:
        """A page or a report that speaks of something in the words of one of its relations, and states nothing."""
        fact = self._rng.choice(list(self._universe.facts.values()))
        entity = self._universe.entities[fact.subject]
        source = "news" if self._rng.random() < 0.5 else "web"
        day = date(2019, 1, 4) + timedelta(days=self._rng.randint(0, 2600))
        text = [
            capital(fill(self._rng.choice(RELATIONS[fact.relation].distractors), entity)),
            self._rng.choice(FILLERS[entity.kind]) if entity.kind in FILLERS else "",
            self._rng.choice(FILLERS["news"]),
        ]
        title = capital(fill(self._rng.choice(DISTRACTOR_TITLES), entity))
        return PageDraft(source, title, " ".join(part for part in text if part), (), day.isoformat())
