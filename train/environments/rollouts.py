"""An environment at work: its tasks, and rollouts of Cairn's loop in which the trainer's model is the policy."""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, cast

from agent.build.agent import build_protocol
from agent.build.sources import build_sources, distinct
from agent.errors import SetupError
from agent.loop.agent import Agent, Budgets
from agent.outbound.address import OptionNames
from agent.outbound.llm import LlmClient
from agent.policies.base import Policy, Sampling
from agent.policies.hub_form import HubForm, open_hub_form
from agent.policies.model_folder import as_in_training
from agent.policies.openai_chat import CONTEXT_TOKENS, ChatPolicy
from agent.policies.openai_completions import CompletionsPolicy
from agent.settings.settings import settings_of
from agent.sources.base import Source, close_sources
from agent.sources.questions import GoldQuestion
from agent.trace import Trace
from agent.trace.samples import context_of
from train.environments.settings import EnvironmentSettings
from train.evaluation.datasets import read_dataset
from train.evaluation.judge import Judge
from train.evaluation.questions import world_questions
from train.rewards import EndpointJudge, EndpointReader, LocalReader, RewardTools, Task, reward_of, why_masked
from train.rl.tasks import Ask, source_settings, world_task
from train.rl.tools import endpoint_of, vectors_of

_KEPT: Final = 64
"""Worlds that are held in memory."""
_WORLDS: Final = 1_000_000
"""Of one seed."""
_OPTIONS: Final = OptionNames("address", "key", "model")
_FIGURES: Final = {"rounds", "searches", "passages", "policy_tokens"}
_TOOL: Final = "a judge, a reader or an embedder failed"


@dataclass(frozen=True, kw_only=True)
class ModelEndpoint:
    """Where the trainer's model answers, for one rollout."""

    base_url: str
    model: str
    api_key: str = ""
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    """Left out: by chance, so that rollouts of one question differ."""


class Environment:
    """Tasks by their number, and rollouts of them."""

    def __init__(self, settings: EnvironmentSettings) -> None:
        """Read lists, and open sources and tools; no model is called.

        Raises:
            SetupError: something that the settings name cannot be used.
        """
        self._settings = settings
        self._form: HubForm | None = open_hub_form(settings.tokenizer) if settings.tokenizer else None
        protocol = build_protocol(settings_of(protocol=settings.protocol, prompt_file=settings.prompt_file))
        self.protocol = as_in_training(protocol, Path(settings.tokenizer)) if self._form else protocol
        self._judges: list[Judge] = []
        self._reward = reward_of(settings.reward.name, settings.reward.made, tools=self._tools())
        if unknown := sorted(set(settings.reward.weights) - set(self._reward.parts)):
            parts = ", ".join(self._reward.parts)
            raise SetupError(f"the reward {settings.reward.name!r} has no part {unknown[0]!r}; it has: {parts}")
        budgets = Budgets(**settings.budgets.model_dump(exclude_none=True))
        self._budgets = budgets.with_tokens(budgets.policy_tokens)
        self._world = lru_cache(maxsize=_KEPT)(self._made)
        self._listed: list[Ask] | None = self._list() if settings.data.questions is not None else None
        if self._listed is None:
            self._ask(0)  # a world that cannot be made is reported here

    @cached_property
    def tasks(self) -> list[GoldQuestion]:
        """The questions; a task's number is its place."""
        number = self._settings.tasks if self._listed is None else len(self._listed)
        return [self._ask(task).question for task in range(number)]

    async def run(self, task: int, model: ModelEndpoint) -> dict[str, Any]:
        """Run one rollout, and score it.

        Args:
            task: its number.
            model: the policy of this rollout.

        Returns:
            `masked`: why there is no reward, or ""; `reward`: the sum of `parts`, or None; `answer`; `stopped`;
            `figures`: what the rollout used; `turns`: what was sampled, as `turns_of` has it, where there are ids.

        Raises:
            QuestionError: a question that is too long.
        """
        ask = await asyncio.to_thread(self._ask, task)  # it may have to make a world, which takes a third of a second
        sampling = Sampling(
            temperature=self._settings.temperature if model.temperature is None else model.temperature,
            top_p=self._settings.top_p if model.top_p is None else model.top_p,
        )
        policy = self._policy(model, ask.sources)
        agent = Agent(policy, ask.protocol, ask.sources, self._budgets, sampling)
        seed = random.SystemRandom().getrandbits(31) if model.seed is None else model.seed
        try:
            trace = await agent.run(agent.new_trace(ask.question.question, history=ask.question.history, seed=seed))
        finally:
            await policy.aclose()
        return await self._report(trace, ask)

    async def aclose(self) -> None:
        for judge in self._judges:
            await judge.aclose()
        if self._listed:
            await close_sources(self._listed[0].sources.values())

    async def _report(self, trace: Trace, ask: Ask) -> dict[str, Any]:
        rewarded = await self._reward.score(trace, ask.task, protocol=ask.protocol)
        weights = self._settings.reward.weights
        parts = {name: weights.get(name, 1.0) * part for name, part in rewarded.parts.items()} if rewarded else {}
        return {
            "masked": "" if rewarded else _why(trace),
            "reward": sum(parts.values()) if rewarded else None,
            "parts": parts,
            "answer": trace.answer,
            "stopped": trace.stopped.reason if trace.stopped else "",
            "figures": trace.usage.model_dump(include=_FIGURES),
            "turns": turns_of(trace) if self._form and rewarded else [],
        }

    def _policy(self, model: ModelEndpoint, sources: Mapping[str, Source]) -> Policy:
        endpoint = LlmClient(base_url=model.base_url, model=model.model, api_key=model.api_key, options=_OPTIONS)
        longest = self._settings.budgets.context_tokens
        if self._form is not None:
            return CompletionsPolicy(endpoint, self._form.codec, context_tokens=longest or self._form.context_tokens)
        return ChatPolicy(endpoint, sources=distinct(sources), context_tokens=longest or CONTEXT_TOKENS)

    def _ask(self, task: int) -> Ask:
        if self._listed is not None:
            return self._listed[task]
        number, place = divmod(task, self._settings.data.questions_per_world)
        return self._world(number)[place]

    def _made(self, number: int) -> list[Ask]:
        """The questions of a world."""
        data = self._settings.data
        world = data.world(self._settings.seed * _WORLDS + number, questions=data.questions_per_world)
        sources = cast(Mapping[str, Source], world.sources())
        questions = world_questions(world.questions)
        return [Ask(question, world_task(question, world), self.protocol, sources, world) for question in questions]

    def _list(self) -> list[Ask]:
        """The questions of a list, with sources of their own."""
        data = self._settings.data
        assert data.questions is not None
        found = read_dataset(data.questions, data.dataset).questions[: data.limit or None]
        sources = build_sources(source_settings(data.search))
        return [Ask(question, Task.of(question), self.protocol, sources) for question in found]

    def _tools(self) -> RewardTools:
        settings = self._settings
        judge = reader = None
        if settings.judge is not None:
            self._judges.append(endpoint_of(settings.judge))
            judge = EndpointJudge(self._judges[-1], graded=settings.judge.graded)
        if settings.local_reader is not None:
            reader = LocalReader.load(settings.local_reader)
        elif settings.reader is not None:
            self._judges.append(endpoint_of(settings.reader))
            reader = EndpointReader(self._judges[-1])
        return RewardTools(judge=judge, reader=reader, vectors=vectors_of(settings.embedder))


def turns_of(trace: Trace) -> list[dict[str, list[Any]]]:
    """Each text that the policy sampled, its branches' included: `prompt_ids`, `response_ids`, and their `logprobs`.

    The prompt is all of the context before it, so that a trainer learns the response alone.

    Raises:
        ValueError: a segment has no ids.
    """
    turns: list[dict[str, list[Any]]] = []
    for branch in ("main", *trace.branches):
        before: list[int] = []
        for place in context_of(trace, branch):
            segment = trace.segments[place]
            if segment.ids is None:
                raise ValueError(f"segment {place} has no token ids")
            if segment.by == "policy" and segment.branch == branch:
                logprobs = list(segment.logprobs or ())
                turns.append({"prompt_ids": list(before), "response_ids": list(segment.ids), "logprobs": logprobs})
            before += segment.ids
    return turns


def _why(trace: Trace) -> str:
    """Why a rollout is masked, with what the engine or the source said."""
    why = why_masked(trace) or _TOOL
    detail = trace.stopped.detail if trace.stopped and trace.stopped.reason == "engine" else ""
    return f"{why}: {detail}" if detail else why
