"""Agent Lightning's own runner and store over Cairn's agent; the last line that it prints is what is in the store.

It runs in an environment that has Agent Lightning and none of Cairn's libraries.
"""

import asyncio
import json
import sys
from typing import Any

import agentlightning as agl

from train.environments.lightning import CairnAgent
from train.environments.process import EnvironmentFailed, RolloutMasked

TRIES = 2
"""Of a rollout that fails."""


async def run(said: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Each task once by Agent Lightning's runner, as an algorithm would have it; the last one fails, and again."""
    agent = CairnAgent(python=said["python"], **settings)
    store = agl.InMemoryLightningStore()
    llm = agl.LLM(endpoint=said["url"], model="theirs", sampling_parameters={"temperature": 0.0, "seed": 1})
    await store.update_resources("default", {"policy": llm})
    config = agl.RolloutConfig(max_attempts=TRIES, retry_condition=["failed"])
    for task in agent.dataset():
        await store.enqueue_rollout(input=task, mode="train", resources_id="default", config=config)
    most = len(agent.dataset()) + TRIES - 1
    runner = agl.LitAgentRunner(agl.OtelTracer(), max_rollouts=most, poll_interval=0.05, heartbeat_interval=0)
    with runner.run_context(agent=agent, store=store):
        await runner.iter()
        rollouts = [await stored(store, rollout) for rollout in await store.query_rollouts()]
        return {"rollouts": rollouts, "why": await why(runner, agent.dataset()[-1])}


async def stored(store: agl.LightningStore, rollout: agl.Rollout) -> dict[str, Any]:
    """What an algorithm reads."""
    spans = await store.query_spans(rollout.rollout_id, attempt_id="latest")
    calls = agl.TracerTraceToTriplet().adapt(spans) if spans else []
    return {
        "question": rollout.input["question"],
        "status": rollout.status,
        "attempts": len(await store.query_attempts(rollout.rollout_id)),
        "reward": agl.find_final_reward(spans),
        "prompts": [call.prompt["token_ids"] for call in calls],
        "responses": [call.response["token_ids"] for call in calls],
        "logprobs": [len(call.response["logprobs"]) for call in calls],
        "rewards": [call.reward for call in calls],
    }


async def why(runner: agl.LitAgentRunner[Any], task: dict[str, Any]) -> str:
    """Why a task fails, from its single step."""
    try:
        await runner.step(task)
    except RolloutMasked as error:
        return str(error)
    return ""


def refused(python: str, **settings: Any) -> str:
    try:
        CairnAgent(python=python, **settings)
    except EnvironmentFailed as error:
        return str(error)
    return ""


def main() -> None:
    said: dict[str, Any] = json.loads(sys.argv[1])
    result: dict[str, Any] = {name: asyncio.run(run(said, said[name])) for name in ("ids", "chat")}
    result["refused"] = refused(said["python"], protocl="cairn")
    sys.stdout.write(f"\n{json.dumps(result)}\n")


main()
