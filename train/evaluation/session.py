"""One evaluation from settings to figures: which questions, who answers, where the results are kept."""

import asyncio
import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agent import __version__
from agent.build.agent import build_agent
from agent.build.sources import uses_world, with_world
from agent.errors import SetupError
from agent.loop.agent import Agent
from agent.outbound.address import shown
from agent.parallel.spread import spread_of
from agent.policies.base import Policy
from agent.settings import CairnSettings
from agent.sources.base import Source
from agent.sources.corpus.hybrid import HybridSource
from agent.sources.corpus.source import CorpusSource
from agent.trace import Trace
from agent.world import World, load_world
from train.evaluation.baselines import NO_ENDPOINT, FirstPassage, GoldGiven, PlainRag
from train.evaluation.chosen import QuestionChoice
from train.evaluation.cited import Passages
from train.evaluation.gold import GoldBook, TextDocument
from train.evaluation.normalisations import DEFAULT
from train.evaluation.questions import GoldQuestion, fingerprint, read_questions, world_questions
from train.evaluation.report import Figures, summarise
from train.evaluation.report_files import judge_failures, write_report
from train.evaluation.respondents import Respondent, Rollouts, contents_of
from train.evaluation.result import QuestionResult
from train.evaluation.run import MOST_FAILED, OnResult, TooManyFailed, evaluate
from train.evaluation.scoring import Scoring
from train.evaluation.shards import ask_elsewhere, pickled
from train.evaluation.store import opened

if TYPE_CHECKING:
    from train.evaluation.endpoint import EndpointOptions
    from train.evaluation.judge import JudgeSettings

_ROUNDS: Final = {"closed-book": 0, "one-search": 1}
"""Baselines that are the agent itself with fewer rounds."""
LOOKED_THROUGH = 1_000_000
"""Documents of a corpus; a larger one is not read for what it has of the gold."""


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """Of what agent answers are measured, and how."""

    normalisation: str = DEFAULT
    """The one for EM, F1 and cover; the others are measured, too."""
    judge: "JudgeSettings | None" = None
    judge_blocks: bool = False
    """The judge also looks at what was shown and merged."""
    guard: bool = True
    """The agent answers questions outside of its world with a sentence, as users see it."""

    def described(self) -> dict[str, str]:
        """What makes two runs the same; empty for the usual."""
        judge = f"{self.judge.model} at {shown(self.judge.base_url)}" if self.judge else ""
        return {
            "guard": "" if self.guard else "off",
            "normalisation": self.normalisation if self.normalisation != DEFAULT else "",
            "judge": f"{judge}, also of what was shown" if judge and self.judge_blocks else judge,
        }


class SoFar(NamedTuple):
    """How far an evaluation is."""

    done: int
    total: int
    failed: int
    em: float | None
    """Of those that could be scored; None before the first one."""


Show = Callable[[SoFar], None]


def _silent(so_far: SoFar) -> None:
    """Shows nothing."""


def _check_fits(
    settings: CairnSettings, questions: Path | None, *, dataset: str | None, baseline: str | None, endpoint: bool
) -> None:
    if questions is None and settings.corpus is not None:
        raise SetupError("a corpus has no questions of its own; name them with --questions FILE")
    if questions is not None and baseline == "first-passage":
        raise SetupError("the baseline first-passage is of the little world's own questions; leave out --questions")
    if questions is None and dataset is not None:
        raise SetupError("--dataset says in which form a file is published; name the file with --questions")
    if endpoint and baseline:
        raise SetupError("a baseline is of the agent in this process; leave out --baseline, or --endpoint")


class Evaluation:
    def __init__(
        self,
        settings: CairnSettings,
        questions: Path | None = None,
        *,
        dataset: str | None = None,
        choice: QuestionChoice | None = None,
        measured: MeasureOptions | None = None,
        endpoint: "EndpointOptions | None" = None,
        baseline: str | None = None,
        concurrency: int = 16,
        seed: int = 0,
        out: Path | None = None,
        retry_failed: bool = False,
        most_failed: float = MOST_FAILED,
        policy: Policy | None = None,
        sources: Mapping[str, Source] | None = None,
    ) -> None:
        """Read the questions.

        Args:
            settings: of the agent; of an endpoint, only the world; and which processes ask.
            questions: a question list; without it, those of the settings' world.
            dataset: the published form of the question list; left out, it is recognised.
            choice: of the questions; left out, all.
            measured: how; left out, as usual and without a judge.
            endpoint: asks this agent instead of one in this process.
            baseline: one of `cairn eval --baseline`.
            concurrency: questions at the same time.
            seed: for sampling.
            out: folder for traces, results and report.
            retry_failed: ask those again that failed in an earlier run into `out`.
            most_failed: the share of failures over which the rest does not run.
            policy: instead of the one that the settings name.
            sources: instead of those that the settings name, by the names that plans use.

        Raises:
            SetupError: questions that cannot be read, or that do not fit the rest.
        """
        _check_fits(settings, questions, dataset=dataset, baseline=baseline, endpoint=endpoint is not None)
        self._most_failed = most_failed
        self._choice, self._measured = choice or QuestionChoice(), measured or MeasureOptions()
        if policy or sources or self._measured.judge:
            _check_here(settings)
        self._settings, self._path, self._dataset = settings if questions else with_world(settings), questions, dataset
        self._baseline, self._endpoint, self._policy, self._sources = baseline, endpoint, policy, sources
        self._concurrency, self._seed, self._out, self._retry_failed = concurrency, seed, out, retry_failed
        listed = read_questions(questions, dataset) if questions else world_questions(self._world.questions)
        if not listed:
            raise SetupError(f"the world {self._settings.world} has no questions; name some with --questions FILE")
        self._fingerprint = fingerprint(listed)
        self.questions = self._choice.pick(listed)
        self.last_failure = ""
        """Why the last question that failed did, when it has run."""

    @property
    def title(self) -> str:
        questions = self._path.name if self._path else self._world.name
        who = self._endpoint.model if self._endpoint else self._baseline or self._settings.protocol
        return f"{questions}: {who}"

    @cached_property
    def _world(self) -> World:
        return load_world(self._settings.world)

    def run(self, show: Show = _silent) -> Figures:
        """Ask everything that is not answered yet, and sum up.

        Raises:
            SetupError: something that the settings name cannot be used. TooManyFailed: what ended is kept and reported.
        """
        respondent, card, scoring = self.respondent()
        card |= self._measured.described()
        scoring = self._judged(scoring)
        if self._out is None:
            results: dict[str, QuestionResult] = {}

            def keep(result: QuestionResult, trace: Trace | None) -> None:
                results[result.id] = result

            self._ask_waiting(respondent, results, keep, scoring, show)
            return self._report(results, card, scoring)
        with opened(self._out, card) as run:
            try:
                self._ask_waiting(respondent, run.results, run.keep, scoring, show)
            except TooManyFailed as error:
                self._report(run.results, card, scoring)
                again = f"what ended is kept in {self._out}; to continue, run the same command with --retry-failed"
                raise TooManyFailed(f"{error}; {again}") from error
            return self._report(run.results, card, scoring)

    def _ask_waiting(
        self, respondent: Respondent, results: dict[str, QuestionResult], keep: OnResult, scoring: Scoring, show: Show
    ) -> None:
        """Ask what has no result. `keep` puts each one into `results`, too."""
        mine = {question.id for question in self.questions}
        before = [result for id, result in results.items() if id in mine]
        retried = {result.id for result in before if self._retry_failed and result.status == "failed"}
        waiting = [question for question in self.questions if question.id not in results or question.id in retried]
        counted = [result for result in before if result.id not in retried]
        failed = sum(result.status == "failed" for result in counted)
        done, right = len(counted), sum(result.metrics.get("em") or 0.0 for result in counted)

        def on_result(result: QuestionResult, trace: Trace | None) -> None:
            nonlocal done, failed, right
            keep(result, trace)
            done, failed = done + 1, failed + (result.status == "failed")
            right += result.metrics.get("em") or 0.0
            report()

        def report() -> None:
            scored = done - failed
            show(SoFar(done, len(self.questions), failed, right / scored if scored else None))

        report()
        with spread_of(self._settings) as spread:
            if spread.here:
                asyncio.run(self._ask_here(respondent, waiting, scoring, on_result))
                return
            asyncio.run(respondent.aclose())
            ask_elsewhere(spread, self._arguments(), waiting, concurrency=self._concurrency, on_result=on_result)

    async def _ask_here(
        self, respondent: Respondent, questions: list[GoldQuestion], scoring: Scoring, on_result: OnResult
    ) -> None:
        try:
            if scoring.judge and questions:
                await scoring.judge.check()
            await self.ask(respondent, questions, scoring, on_result)
        finally:
            await respondent.aclose()
            if scoring.judge:
                await scoring.judge.aclose()

    async def ask(
        self, respondent: Respondent, questions: Sequence[GoldQuestion], scoring: Scoring, on_result: OnResult
    ) -> None:
        """Ask some of the questions; `respondent` gives who, and how the answers are scored. Neither is closed.

        Raises:
            TooManyFailed, SetupError: see `evaluate`.
        """
        await evaluate(
            respondent,
            questions,
            scoring=scoring,
            concurrency=self._concurrency,
            on_result=on_result,
            most_failed=self._most_failed,
        )

    def _arguments(self) -> bytes:
        """What another process makes this evaluation of."""
        path = self._path.resolve() if self._path else None
        how = {"dataset": self._dataset, "choice": self._choice, "measured": self._measured, "seed": self._seed}
        who = {"endpoint": self._endpoint, "baseline": self._baseline}
        bounds = {"concurrency": self._concurrency, "most_failed": self._most_failed}
        return pickled(self._settings, {"questions": path, **how, **who, **bounds})

    def respondent(self) -> tuple[Respondent, dict[str, str], Scoring]:
        """Who answers, what makes two such runs the same, and how the answers are scored."""
        card = {
            "cairn": __version__,
            "questions": self._path.name if self._path else f"world {self._world.name}",
            "questions_sha256": self._fingerprint,
            "baseline": self._baseline or "",
        }
        if self._baseline == "first-passage":
            return FirstPassage(self._world), card, Scoring(book=self._book(self._world.documents))
        if self._endpoint:
            return self._far(self._endpoint, card)
        if self._baseline == "plain-rag" and self._settings.policy != "openai":
            raise SetupError(NO_ENDPOINT)
        agent = self._agent()
        respondent: Respondent = Rollouts(agent, self._seed)
        if self._baseline == "plain-rag":
            respondent = PlainRag(agent)
        elif self._baseline == "gold-passages":
            respondent = GoldGiven(agent, self._documents(agent), self.questions, seed=self._seed)
        return respondent, card | self._described(agent), Scoring(book=self._searched_book(agent))

    def _judged(self, scoring: Scoring) -> Scoring:
        if self._measured.judge is None:
            return scoring
        from train.evaluation.judge import Judge

        judge = Judge(self._measured.judge, folder=self._out)
        return dataclasses.replace(scoring, judge=judge, judge_blocks=self._measured.judge_blocks)

    def _far(self, where: "EndpointOptions", card: dict[str, str]) -> tuple[Respondent, dict[str, str], Scoring]:
        from train.evaluation.endpoint import Endpoint

        documents = () if self._path else self._world.documents
        gold = (name for question in self.questions for name in question.supporting)
        passages = Passages({document.id: document.url for document in documents}, ids=gold)
        scoring = Scoring(agent=where.model, book=self._book(documents) if documents else None)
        return Endpoint(where, passages=passages), card | where.described(), scoring

    def _agent(self) -> Agent:
        """The agent that users get; without its guard only where the caller wants it so."""
        agent = build_agent(self._settings, policy=self._policy, sources=self._sources)
        if not self._measured.guard:
            agent = dataclasses.replace(agent, scope=None)
        if self._baseline in _ROUNDS:
            budgets = dataclasses.replace(agent.budgets, rounds=_ROUNDS[self._baseline])
            return dataclasses.replace(agent, budgets=budgets)
        return agent

    def _book(self, documents: Iterable[TextDocument]) -> GoldBook:
        return GoldBook.of(self.questions, documents)

    def _documents(self, agent: Agent) -> Iterable[TextDocument]:
        """What is searched, one by one.

        Raises:
            SetupError: it is more than one corpus.
        """
        if uses_world(self._settings):
            return self._world.documents
        if (corpus := self._corpus(agent)) is None:
            raise SetupError("gold passages are given from one corpus: name it with --corpus DIR, and nothing else")
        return corpus.documents()

    def _corpus(self, agent: Agent) -> CorpusSource | HybridSource | None:
        """The corpus that is searched, where nothing else is."""
        corpora = {s.card.sha256: s for s in agent.sources.values() if isinstance(s, CorpusSource | HybridSource)}
        return None if len(corpora) != 1 or self._settings.is_live else next(iter(corpora.values()))

    def _searched_book(self, agent: Agent) -> GoldBook | None:
        """What is searched, where it can be read as a whole."""
        if uses_world(self._settings):
            return self._book(load_world(self._settings.world).documents if self._path else self._world.documents)
        corpus = self._corpus(agent)
        if corpus is None or corpus.card.documents > LOOKED_THROUGH:
            return None
        return self._book(corpus.documents())

    def _described(self, agent: Agent) -> dict[str, str]:
        """The agent, exactly enough to distinguish two runs."""
        settings = self._settings
        kept = contents_of(settings, agent, policy_named=self._policy is None) if self._out else {}
        return kept | {
            "searched": _searched(settings, agent),
            "sources": ",".join(agent.sources),
            "protocol": f"{agent.protocol.name} {agent.protocol.version}",
            "policy": agent.policy.name,
            "checkpoint": str(settings.checkpoint or ""),
            "base_url": shown(settings.base_url),
            "rung": "" if settings.rung == "auto" else settings.rung,
            "temperature": str(agent.sampling.temperature),
            "budgets": json.dumps(dataclasses.asdict(agent.budgets)),
            "seed": f"{self._seed}, of each question its own" if agent.sampling.temperature else str(self._seed),
        }

    def _report(self, results: dict[str, QuestionResult], card: dict[str, str], scoring: Scoring) -> Figures:
        """Sum up what there is, in the order of the questions."""
        ended = [results[question.id] for question in self.questions if question.id in results]
        self.last_failure = next((r.detail for r in reversed(ended) if r.status == "failed"), "")
        settings = card | self._choice.described() | {"concurrency": str(self._concurrency)}
        figures = summarise(ended, settings)
        if scoring.judge:
            before = judge_failures(self._out) if self._out else Counter[str]()
            figures["judge_failures"] = dict(before + scoring.judge.failures)
        if self._out:
            write_report(self._out, figures, ended, title=self.title)
        return figures


def _searched(settings: CairnSettings, agent: Agent) -> str:
    """What answered the searches, exactly enough to distinguish two runs; not for the live web."""
    if uses_world(settings):
        return f"world {settings.world}"
    corpora = {s.card.sha256 for s in agent.sources.values() if isinstance(s, CorpusSource | HybridSource)}
    parts = [f"corpus {sha256}" for sha256 in sorted(corpora)]
    parts += [f"graph {settings.kg}"] if settings.kg else []
    parts += ["live"] if settings.is_live else []
    return ", ".join([*parts, *settings.plugins])


def _check_here(settings: CairnSettings) -> None:
    """Refuse other processes for what only this one has.

    Raises:
        SetupError: the settings want them.
    """
    if not spread_of(settings).here:
        raise SetupError("a judge works in this process alone; leave out --judge-url, or --workers and --work")
