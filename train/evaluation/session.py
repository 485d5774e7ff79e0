"""One evaluation from settings to figures: what is asked, who answers, where the results are kept."""

import asyncio
import dataclasses
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path

from agent import __version__
from agent.build import build_agent
from agent.build_sources import uses_world
from agent.errors import SetupError
from agent.policies.base import Policy
from agent.rollout import Agent
from agent.settings import CairnSettings
from agent.sources.corpus.hybrid import HybridSource
from agent.sources.corpus.source import CorpusSource
from agent.sources.questions import gold_found
from agent.trace import Trace
from agent.world import World, load_world
from agent.world.reader import first_passage_answer
from train.evaluation.questions import Question, fingerprint, read_questions, take, world_questions
from train.evaluation.report import Figures, markdown, summarise
from train.evaluation.run import OnResult, Result, evaluate, score
from train.evaluation.store import Run

REPORT = "report"

Show = Callable[[int, int, float], None]
"""Is told how many questions are done, of how many, and the EM so far."""


def _silent(done: int, total: int, em: float) -> None:
    """Nobody watches."""


class Evaluation:
    def __init__(
        self,
        settings: CairnSettings,
        questions: Path | None = None,
        *,
        baseline: str | None = None,
        limit: int | None = None,
        concurrency: int = 16,
        seed: int = 0,
        out: Path | None = None,
        policy: Policy | None = None,
    ) -> None:
        """Read what is asked.

        Args:
            settings: of the agent.
            questions: a question list; without it the questions of the settings' world are asked.
            baseline: `closed-book` forbids searching; `first-passage` reads one passage of the world perfectly.
            limit: ask only the first ones.
            concurrency: rollouts at the same time.
            seed: for sampling.
            out: folder for traces, results and report.
            policy: instead of the one that the settings name.

        Raises:
            SetupError: questions that cannot be read, or that do not fit the rest.
        """
        if questions is None and settings.corpus is not None:
            raise SetupError("a corpus has no questions of its own; name them with --questions FILE")
        if questions is not None and baseline == "first-passage":
            raise SetupError("the baseline first-passage is of the little world's own questions; leave out --questions")
        self._settings, self._path, self._baseline = settings, questions, baseline
        self._concurrency, self._seed, self._out, self._policy = concurrency, seed, out, policy
        listed = read_questions(questions) if questions else world_questions(self._world.questions)
        if not listed:
            raise SetupError(f"the world {settings.world} has no questions; name some with --questions FILE")
        self._fingerprint = fingerprint(listed)
        self.questions = take(listed, limit)

    @property
    def title(self) -> str:
        asked = self._path.name if self._path else self._world.name
        return f"{asked}: {self._baseline or self._settings.protocol}"

    @cached_property
    def _world(self) -> World:
        return load_world(self._settings.world)

    def run(self, show: Show = _silent) -> Figures:
        """Ask everything that was not scored before, and sum up.

        Raises:
            SetupError: something that the settings name cannot be used, or the engine fails on everything.
        """
        if self._baseline == "first-passage":
            return self._report(_first_passages(self._world, self.questions), self._described(None))
        agent = self._agent()
        described = self._described(agent)
        run = Run(self._out, described) if self._out else None
        done = {q.id: run.results[q.id] for q in self.questions if run and q.id in run.results}
        asyncio.run(self._ask(agent, done, run.recording() if run else nullcontext(_keep_nothing), show))
        return self._report([done[q.id] for q in self.questions], described)

    def _agent(self) -> Agent:
        """The agent without its scope sentence: also real questions go through the whole of it."""
        agent = dataclasses.replace(build_agent(self._settings, policy=self._policy), scope=None)
        if self._baseline == "closed-book":
            return dataclasses.replace(agent, budgets=dataclasses.replace(agent.budgets, rounds=0))
        return agent

    async def _ask(
        self, agent: Agent, done: dict[str, Result], recording: AbstractContextManager[OnResult], show: Show
    ) -> None:
        waiting = [question for question in self.questions if question.id not in done]
        right = sum(result.em for result in done.values())
        with recording as keep:

            def on_result(result: Result, trace: Trace) -> None:
                nonlocal right
                keep(result, trace)
                done[result.id] = result
                right += result.em
                show(len(done), len(self.questions), right / len(done))

            show(len(done), len(self.questions), right / max(len(done), 1))
            try:
                await evaluate(agent, waiting, concurrency=self._concurrency, on_result=on_result, seed=self._seed)
            finally:
                await agent.aclose()

    def _described(self, agent: Agent | None) -> dict[str, str]:
        """What makes two runs the same, for the report and for going on with a run."""
        settings = self._settings
        described = {
            "cairn": __version__,
            "questions": str(self._path or f"world {self._world.name}"),
            "questions_sha256": self._fingerprint,
            "baseline": self._baseline or "",
        }
        if agent is None:
            return described
        return described | {
            "searched": _searched(settings, agent),
            "sources": ",".join(agent.sources),
            "protocol": f"{agent.protocol.name} {agent.protocol.version}",
            "policy": agent.policy.name,
            "checkpoint": str(settings.checkpoint or ""),
            "base_url": settings.base_url,
            "temperature": str(settings.temperature),
            "budgets": json.dumps(dataclasses.asdict(agent.budgets)),
            "seed": str(self._seed),
        }

    def _report(self, results: Sequence[Result], described: dict[str, str]) -> Figures:
        figures = summarise(results, described | {"concurrency": str(self._concurrency)})
        if self._out:
            try:
                self._out.mkdir(parents=True, exist_ok=True)
                text = json.dumps(figures, indent=2, ensure_ascii=False) + "\n"
                (self._out / f"{REPORT}.json").write_text(text, encoding="utf-8")
                (self._out / f"{REPORT}.md").write_text(markdown(figures, self.title), encoding="utf-8")
            except OSError as error:
                raise SetupError(f"the report cannot be written to {self._out}: {error.strerror or error}") from error
        return figures


def _keep_nothing(result: Result, trace: Trace) -> None:
    """The results stay in memory."""


def _first_passages(world: World, questions: Sequence[Question]) -> list[Result]:
    """What a perfect reader of the first passage answers, with the question as the query."""
    planned = {question.id: question for question in world.questions}
    return [
        score(question, first_passage_answer(world, planned[question.id])).model_copy(
            update={
                "searches": 1,
                "stopped": "answered",
                "gold_found": len(
                    gold_found(question.supporting, [p.id for p in world.find("all", question.question, limit=1)])
                ),
            }
        )
        for question in questions
    ]


def _searched(settings: CairnSettings, agent: Agent) -> str:
    """What answered the searches, exactly enough to tell two runs apart; of the live web nobody can."""
    if uses_world(settings):
        return f"world {settings.world}"
    corpora = {s.card.sha256 for s in agent.sources.values() if isinstance(s, CorpusSource | HybridSource)}
    parts = [f"corpus {sha256}" for sha256 in sorted(corpora)]
    parts += [f"graph {settings.kg}"] if settings.kg else []
    parts += ["live"] if settings.is_live else []
    return ", ".join([*parts, *settings.plugins])
