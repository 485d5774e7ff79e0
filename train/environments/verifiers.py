"""Cairn for verifiers (its v1 interface): a taskset of Cairn's questions, and a harness that runs Cairn's loop.

verifiers gives each rollout an endpoint of its own, which records what is sampled and calls the client that it was
given, of an evaluation or of a trainer. Cairn's loop runs in a process of its own and calls that endpoint.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf
from pydantic import Field

from train.environments.process import EnvironmentFailed, EnvironmentProcess, RolloutMasked, environment_of

ID = "cairn-search"
"""verifiers imports the module of this name, `cairn_search`."""


class CairnTasksetConfig(vf.TasksetConfig):
    settings: dict[str, Any] = Field(default_factory=dict)
    """Of the environment: see docs/environments.md."""
    python: str = ""
    """Of the environment that Cairn is installed in; "": the one of verifiers."""


class CairnHarnessConfig(vf.HarnessConfig):
    id: vf.ID = ID
    python: str = ""
    """As the taskset's. No task can name a program to run."""


class CairnData(vf.TaskData):
    number: int
    """Of the task in its environment."""
    answers: list[str]
    """The gold; the policy never sees it."""
    settings: dict[str, Any]
    """Of the environment."""


class CairnTask(vf.Task[CairnData, vf.State, vf.TaskConfig]):
    @vf.reward
    async def cairn(self, trace: vf.Trace) -> dict[str, float]:
        """The parts of Cairn's reward. Their sum is the reward: each has its weight in it already."""
        if "cairn" not in trace.info:
            raise RolloutMasked(
                f"verifiers ended the rollout ({trace.stop_condition}) before Cairn could score it; set `budgets` "
                "instead, which let the policy answer"
            )
        return trace.info["cairn"]["parts"]


class CairnTaskset(vf.Taskset[CairnTask, CairnTasksetConfig]):
    def load(self) -> Iterator[CairnTask]:
        environment = _started(self.config.settings, self.config.python)
        for number, task in enumerate(environment.tasks):
            data = CairnData(
                number=number, prompt=task["question"], answers=task["answers"], settings=self.config.settings
            )
            yield CairnTask(data, self.config.task)


class CairnHarness(vf.Harness[CairnHarnessConfig]):
    """Runs no code of the model: searches and answers are all that it can do, so it needs no container."""

    EXECUTES_CODE = False
    NEEDS_CONTAINER = False
    APPENDS_SYSTEM_PROMPT = True

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: CairnData,
    ) -> vf.ProgramResult:
        """Run Cairn's loop.

        Raises:
            RolloutMasked: infrastructure failed. verifiers records it as an error, and gives no reward.
        """
        if data.system_prompt is not None:
            raise EnvironmentFailed("Cairn's protocol is the system prompt; choose another `protocol` in its settings")
        if self.config.disabled_tools:
            raise EnvironmentFailed("Cairn has sources, and no tools; choose them with `sources` in `data.search`")
        environment = await asyncio.to_thread(environment_of, data.settings, python=self.config.python)
        result = await environment.run(data.number, base_url=endpoint, model=ctx.model, api_key=secret)
        trace.info["cairn"] = {name: result[name] for name in ("parts", "answer", "stopped")}
        trace.record_metrics({name: float(figure) for name, figure in result["figures"].items()})
        return vf.ProgramResult(exit_code=0, stdout=result["answer"] or "", stderr="")


class CairnEnvConfig(vf.SingleAgentEnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class CairnEnv(vf.SingleAgentEnv, vf.Env[CairnEnvConfig]):
    """One agent. Its model's turns end at the protocol's stop texts, also where a trainer renders the messages."""

    def __init__(self, config: CairnEnvConfig) -> None:
        said = config.taskset
        assert isinstance(said, CairnTasksetConfig)
        stop = _started(said.settings, said.python).stops
        own = config.agent.sampling.model_dump(exclude_unset=True) if config.agent.sampling else {}
        harness = config.agent.harness or CairnHarnessConfig(python=said.python)
        sampling = vf.SamplingConfig.model_validate({"stop": stop} | own)
        agent = config.agent.model_copy(update={"sampling": sampling, "harness": harness})
        super().__init__(config.model_copy(update={"agent": agent}))


def load_environment(*, python: str = "", **settings: Any) -> CairnEnv:
    """The environment, ready for `run_episode`, or for `vf-eval` as the taskset `cairn-search`.

    Args:
        python: of the environment that Cairn is installed in; "": this one.
        settings: see docs/environments.md.

    Raises:
        ValueError: the settings cannot be used; the sentence says why.
    """
    taskset = CairnTasksetConfig(id=ID, settings=settings, python=python)
    return CairnEnv(CairnEnvConfig(taskset=taskset))


def _started(settings: dict[str, Any], python: str) -> EnvironmentProcess:
    """The environment's process; what is wrong with its settings is one sentence of a ValueError."""
    try:
        return environment_of(settings, python=python)
    except EnvironmentFailed as error:
        raise ValueError(str(error)) from None
