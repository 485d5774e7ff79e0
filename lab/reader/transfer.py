"""What our evidence is worth to another model: the reader alone, from plain retrieval, and from evidence bundles.

The miniature of R-Search's figure 2. The same reader, the same questions of unseen worlds, and the same room in
characters each time; only what is put into the room differs.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from agent.build.agent import build_agent
from agent.loop.agent import Agent
from agent.rstool import EvidenceBundle, gather
from agent.settings import CairnSettings
from agent.trace import DOUBTED
from agent.world import Question, World, load_world
from lab.reader.examples import with_history
from train.evaluation.questions import world_questions
from train.evaluation.scoring import score_text
from train.evaluation.statistics import Comparison, Interval, bootstrap, compare
from train.reader.pages import ReaderPage, head_of, lay_out, whole_pages
from train.reader.reading import TrainedReader

Condition = Literal["alone", "top_5", "as_many_as_fit", "evidence"]
CONDITIONS: Final[tuple[Condition, ...]] = ("alone", "top_5", "as_many_as_fit", "evidence")
PLAIN: Final[tuple[Condition, ...]] = ("top_5", "as_many_as_fit")
"""One search with the question: as many passages as in the paper, or all that there is room for."""

ROOM: Final = 1600
"""Characters that the reader is given, in every condition."""
TOP: Final = 5
MOST_RETRIEVED: Final = 40
BOUND: Final = 0.10
"""Evidence is to be better than plain retrieval by so much EM, and the interval is to exclude 0."""
_AT_ONCE: Final = 16

Show = Callable[[int, int], None]


@dataclass(frozen=True)
class Scored:
    """One question: EM in each condition, the agent's own, and what the reader was given."""

    id: str
    type: str
    em: dict[Condition, float]
    agent_em: float
    outcome: str
    """Of the bundle."""
    chars: dict[Condition, int]
    gold_given: dict[Condition, float]
    """Share of the gold passages that were given; as evidence, by a claim under their head."""
    said: dict[Condition, str]


@dataclass(frozen=True)
class Transfer:
    """The figures of one world."""

    world: str
    agent: str
    """Who gathered the evidence: policy and protocol."""
    n: int
    em: dict[Condition, Interval]
    agent_em: Interval
    plain: Condition
    """The better one of the two plain retrievals; evidence is compared with it."""
    gain: Comparison
    """Evidence against `plain`: differences are evidence − plain."""
    gain_over_alone: Comparison
    by_type: dict[str, dict[str, float]]
    """Type → EM in each condition, the agent's, and n."""
    chars: dict[Condition, float]
    gold_given: dict[Condition, float]
    outcomes: dict[str, int]

    @property
    def holds(self) -> bool:
        return self.gain.difference.value >= BOUND and self.gain.difference.low > 0

    def as_dict(self) -> dict[str, Any]:
        """Plain names: `em_evidence`, `gain`, `gain_low`, … and everything else as it is."""
        plain: dict[str, Any] = {f"em_{name}": interval.value for name, interval in self.em.items()}
        plain |= {"em_agent": self.agent_em.value, "gain": self.gain.difference.value}
        plain |= {"gain_low": self.gain.difference.low, "gain_high": self.gain.difference.high, "holds": self.holds}
        return plain | asdict(self)


def measure(settings: CairnSettings, reader: TrainedReader, *, limit: int | None = None, show: Show) -> Transfer:
    """Ask the questions of the settings' world in every condition.

    Args:
        settings: of the agent that gathers the evidence; its world has the questions.
        reader: that answers.
        limit: questions, the first ones; None: all.
        show: gets how many rollouts have ended, of how many.
    """
    scored, agent = ask_each(settings, reader, limit=limit, show=show)
    return summarise(load_world(settings.world).name, scored, agent=agent)


def ask_each(
    settings: CairnSettings, reader: TrainedReader, *, limit: int | None = None, show: Show
) -> tuple[list[Scored], str]:
    """Every question on its own, and who gathered the evidence; see `measure`."""
    world = load_world(settings.world)
    questions = world.questions[:limit]
    bundles = asyncio.run(_bundles(build_agent(settings), questions, show))
    scored = [_scored(world, q, bundle, reader) for q, bundle in zip(questions, bundles, strict=True)]
    return scored, f"{bundles[0].policy}, protocol {bundles[0].protocol}"


async def _bundles(agent: Agent, questions: Sequence[Question], show: Show) -> list[EvidenceBundle]:
    done = 0
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(question: Question) -> EvidenceBundle:
        nonlocal done
        async with places:
            bundle = await gather(question.question, agent=agent, history=question.history)
        done += 1
        show(done, len(questions))
        return bundle

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(question)) for question in questions]
    finally:
        await agent.aclose()
    return [task.result() for task in tasks]


def pages_of(bundle: EvidenceBundle) -> dict[ReaderPage, set[str]]:
    """A bundle as the reader takes it: each claim with what is quoted for it, under the source's own head.

    What its source does not say is left out: a reader of this kind has no way to doubt it.

    Returns:
        Page → ids of the sources that it is of.
    """
    sources = {source.number: source for source in bundle.sources}
    pages: dict[ReaderPage, set[str]] = {}
    for claim in bundle.claims:
        if claim.check in DOUBTED:
            continue
        cited = [sources[number] for number in claim.sources]
        for source in cited:
            words = " ".join(quote.text for quote in claim.quotes if quote.source == source.number)
            page = ReaderPage(head_of(source.source, source.date, source.title), f"{claim.text} {words}".strip())
            pages.setdefault(page, set()).add(source.id)
        if not cited:
            pages.setdefault(ReaderPage("", claim.text), set())
    return pages


def evidence_given(bundle: EvidenceBundle) -> tuple[list[ReaderPage], set[str]]:
    """The pages of a bundle that there is room for, and the ids of their sources."""
    pages = pages_of(bundle)
    given = whole_pages(list(pages), chars=ROOM)
    return given, set[str]().union(*(pages[page] for page in given))


def _scored(world: World, question: Question, bundle: EvidenceBundle, reader: TrainedReader) -> Scored:
    (plain,) = world_questions([question])
    found = world.find("all", with_history(question), limit=MOST_RETRIEVED)
    evidence, evidence_ids = evidence_given(bundle)
    given: dict[Condition, list[ReaderPage]] = {
        "alone": [],
        "top_5": whole_pages([ReaderPage.of(p) for p in found[:TOP]], chars=ROOM),
        "as_many_as_fit": whole_pages([ReaderPage.of(p) for p in found], chars=ROOM),
        "evidence": evidence,
    }
    ids: dict[Condition, set[str]] = {
        "alone": set(),
        "top_5": {p.id for p in found[: len(given["top_5"])]},
        "as_many_as_fit": {p.id for p in found[: len(given["as_many_as_fit"])]},
        "evidence": evidence_ids,
    }
    gold = set(question.supporting)
    sheets = [lay_out(with_history(question), given[name], most_words=reader.shape.most_words) for name in CONDITIONS]
    said = dict(zip(CONDITIONS, reader.answers(sheets), strict=True))
    return Scored(
        id=question.id,
        type=question.type,
        em={name: score_text(plain, text).metrics["em"] or 0.0 for name, text in said.items()},
        agent_em=score_text(plain, bundle.answer or "").metrics["em"] or 0.0,
        outcome=bundle.outcome,
        chars={name: sum(page.size for page in given[name]) for name in CONDITIONS},
        gold_given={name: len(gold & ids[name]) / len(gold) if gold else 1.0 for name in CONDITIONS},
        said=said,
    )


def summarise(world: str, scored: Sequence[Scored], *, agent: str = "") -> Transfer:
    """Add up what was scored."""
    by_condition = {name: {s.id: s.em[name] for s in scored} for name in CONDITIONS}
    em: dict[Condition, Interval] = {name: bootstrap(list(by_condition[name].values())) for name in CONDITIONS}
    plain = max(PLAIN, key=lambda name: em[name].value)
    gain = compare(by_condition[plain], by_condition["evidence"])
    over_alone = compare(by_condition["alone"], by_condition["evidence"])
    assert gain is not None, "every question has a figure in every condition"
    assert over_alone is not None, "every question has a figure in every condition"
    types = sorted({s.type for s in scored})
    return Transfer(
        world=world,
        agent=agent,
        n=len(scored),
        em=em,
        agent_em=bootstrap([s.agent_em for s in scored]),
        plain=plain,
        gain=gain,
        gain_over_alone=over_alone,
        by_type={kind: _of_type([s for s in scored if s.type == kind]) for kind in types},
        chars={name: _mean([s.chars[name] for s in scored]) for name in CONDITIONS},
        gold_given={name: _mean([s.gold_given[name] for s in scored]) for name in CONDITIONS},
        outcomes={name: sum(s.outcome == name for s in scored) for name in ("found", "empty", "failed")},
    )


def _of_type(scored: Sequence[Scored]) -> dict[str, float]:
    figures: dict[str, float] = {name: _mean([s.em[name] for s in scored]) for name in CONDITIONS}
    return figures | {"agent": _mean([s.agent_em for s in scored]), "n": len(scored)}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
