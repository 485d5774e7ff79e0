"""Who answers in an evaluation: the agent in this process, or any other, which may fail."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent.errors import AgentError, QuestionError, SetupError
from agent.loop.agent import Agent
from agent.models.base import hash_of
from agent.policies.model_folder import ABOUT
from agent.settings import CairnSettings
from agent.trace import Trace
from train.evaluation.answer import AgentAnswer
from train.evaluation.questions import GoldQuestion
from train.evaluation.result import Failure

Said = Trace | AgentAnswer


class AskFailed(AgentError):
    """There is no answer to one question, for a reason outside of the agent's own doing; `kind` says which."""

    def __init__(self, kind: Failure, why: str) -> None:
        super().__init__(why)
        self.kind: Failure = kind


class Respondent(Protocol):
    """An agent that takes many questions at the same time."""

    async def ask(self, question: GoldQuestion) -> Said:
        """Ask one question, with the earlier turns that it leans on.

        Raises:
            AskFailed: there is no answer to this one.
            SetupError: there will be none to any other, either.
        """
        ...

    async def aclose(self) -> None:
        """Let go of everything that is held."""
        ...


@dataclass(frozen=True)
class Rollouts:
    """The agent in this process: each question is one rollout."""

    agent: Agent
    seed: int = 0
    """Of the run: each question draws by one of its own, made from it, so that no two hang together."""

    async def ask(self, question: GoldQuestion) -> Trace:
        """What fails in an engine or a source is on the trace, not raised."""
        try:
            trace = self.agent.new_trace(
                question.question, history=question.history, seed=own_seed(self.seed, question.id)
            )
        except QuestionError as error:
            raise SetupError(f"the question {question.id!r} cannot be put to the agent: {error}") from error
        return await self.agent.run(trace)

    async def aclose(self) -> None:
        await self.agent.aclose()


def own_seed(seed: int, question: str) -> int:
    """The seed of one question, by its id: whatever order they come in, and however many there are."""
    return int.from_bytes(hashlib.sha256(f"{seed} {question}".encode()).digest()[:6], "big")


def contents_of(settings: CairnSettings, agent: Agent, *, policy_named: bool) -> dict[str, str]:
    """Hashes of what answers and of what is searched by its path: under the same path there may be another one later.

    Args:
        settings: of the agent.
        agent: in this process.
        policy_named: whether the settings name its policy.

    Raises:
        CheckpointError: a file cannot be read.
    """
    protocol = agent.protocol.model_dump_json(exclude_defaults=True)
    model = _model_of(settings) if policy_named else None
    return {
        "model_sha256": hash_of(model) if model else "",
        "graph_sha256": hash_of(settings.kg) if settings.kg else "",
        "protocol_sha256": hashlib.sha256(protocol.encode()).hexdigest(),
    }


def _model_of(settings: CairnSettings) -> Path | None:
    """What holds the model that is named by its folder; an exported one's cairn.json has the hash of its every file."""
    if settings.policy == "embedded":
        return settings.checkpoint / ABOUT if settings.checkpoint else None
    folder = Path(settings.model)
    return folder if settings.policy != "openai" and folder.is_dir() else None
