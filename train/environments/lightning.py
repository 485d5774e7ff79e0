"""Cairn for Agent Lightning: an agent whose rollout is Cairn's loop, and the dataset of its questions.

The loop runs in a process of its own and calls the LLM of the resources that the algorithm gives. Where that gives
token ids, each text that the policy sampled becomes a span with its ids, so no text is tokenized again.
"""

import asyncio
import json
import time
from typing import Any, Final

import agentlightning as agl

from train.environments.process import EnvironmentFailed, EnvironmentProcess, environment_of

_CALL: Final = "openai.chat.completion"
"""Name of a span that Agent Lightning's adapter takes for a call of the model."""
_PASSED_ON: Final = ("temperature", "top_p", "seed")


class CairnAgent(agl.LitAgent[dict[str, Any]]):
    """Runs Cairn's loop for each task of `dataset`."""

    def __init__(self, *, python: str = "", llm: str = "", **settings: Any) -> None:
        """Start the environment.

        Args:
            python: of the environment that Cairn is installed in; "": this one.
            llm: name of the resource that is the policy; "": the only LLM there is.
            settings: see docs/environments.md.

        Raises:
            EnvironmentFailed: the settings cannot be used; the sentence says why.
        """
        super().__init__()
        self._settings, self._python, self._llm = settings, python, llm
        self._environment()

    def dataset(self) -> list[dict[str, Any]]:
        """The tasks: `number`, `question` and `answers` of each."""
        return [{"number": number, **task} for number, task in enumerate(self._environment().tasks)]

    async def rollout_async(
        self, task: dict[str, Any], resources: agl.NamedResources, rollout: agl.Rollout
    ) -> agl.RolloutRawResult:
        """Run one rollout; gives the spans of what was sampled, and that of the reward with its parts.

        Raises:
            RolloutMasked: infrastructure failed. Agent Lightning marks the attempt as failed; it has no reward.
            EnvironmentFailed: a resource that cannot be used, or the environment ended.
        """
        llm = self._policy(resources)
        if unknown := sorted(set(llm.sampling_parameters) - set(_PASSED_ON)):
            raise EnvironmentFailed(
                f"the sampling parameter {unknown[0]!r} cannot be passed on; there are: {', '.join(_PASSED_ON)}. "
                "How much is sampled is in `budgets` of Cairn's settings"
            )
        environment = await asyncio.to_thread(self._environment)
        begun = time.time()
        result = await environment.run(
            task["number"],
            base_url=llm.get_base_url(rollout.rollout_id, rollout.attempt.attempt_id),
            model=llm.model,
            api_key=llm.api_key or "",
            **llm.sampling_parameters,
        )
        spans = [_span(turn, f"{rollout.rollout_id}-{at}", begun + at / 1e6) for at, turn in enumerate(result["turns"])]
        reward = {"reward": result["reward"], **result["parts"]}
        return [*spans, agl.emit_reward(reward, primary_key="reward", propagate=False)]

    def _environment(self) -> EnvironmentProcess:
        return environment_of(self._settings, python=self._python)

    def _policy(self, resources: agl.NamedResources) -> agl.LLM:
        found = {name: one for name, one in resources.items() if isinstance(one, agl.LLM)}
        if self._llm in found:
            return found[self._llm]
        if self._llm or len(found) != 1:
            wanted = f"an LLM named {self._llm!r}" if self._llm else "one LLM; name one of several with `llm`"
            raise EnvironmentFailed(f"the resources must hold {wanted}; they hold: {', '.join(found) or 'none'}")
        return next(iter(found.values()))


def _span(turn: dict[str, Any], name: str, at: float) -> agl.SpanCoreFields:
    """A turn as the span of a call. The adapter matches the reward, which is later, to the last of them."""
    return agl.SpanCoreFields(
        name=_CALL,
        status=agl.TraceStatus(status_code="OK"),
        attributes={
            "gen_ai.response.id": name,
            "prompt_token_ids": turn["prompt_ids"],
            "response_token_ids": turn["response_ids"],
            "logprobs.content": json.dumps([{"logprob": logprob} for logprob in turn["logprobs"]]),
        },
        start_time=at,
        end_time=at,
    )
