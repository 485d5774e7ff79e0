"""The models that the operator lets answer from evidence, all at one endpoint. A request names one, and never a URL."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from agent.errors import QuestionError, SetupError
from agent.rstool import Downstream, EvidenceBundle, answer_with
from agent.settings import CairnSettings
from agent.trace import Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI


SECONDS: Final = 120.0
"""Of silence that is borne. The client's own ten minutes, three times over, would hold a slot for half an hour."""


_MOST_TOKENS: Final = 10**9
"""Of one answer: whatever more an endpoint claims is none of a key's business."""


def _count_nowhere(usage: Usage) -> None:
    """Nobody is limited."""


def _tokens(claimed: object) -> int:
    """What an endpoint says that it used, which may be anything."""
    return min(max(0, claimed), _MOST_TOKENS) if isinstance(claimed, int) else 0


class Answering:
    """A client of the operator's endpoint, with the models that may be asked there."""

    def __init__(self, client: "AsyncOpenAI", models: tuple[str, ...]) -> None:
        self._client = client
        self.models = models
        self.count: Callable[[Usage], None] = _count_nowhere
        """Called with the tokens of each answer, for the key of the client that asked for it."""

    async def answer(self, bundle: EvidenceBundle, model: str) -> Downstream:
        """Let one of the models answer; what goes wrong there is an outcome. Cancelling this closes the request."""
        answer = await answer_with(bundle, self._client, model)
        self.count(Usage(prompt_tokens=_tokens(answer.prompt_tokens), policy_tokens=_tokens(answer.completion_tokens)))
        return answer

    async def aclose(self) -> None:
        await self._client.close()


def check_model(answering: Answering | None, model: str) -> Answering:
    """Who answers with this model.

    Raises:
        QuestionError: the operator allows no model, or not this one.
    """
    if answering is None:
        raise QuestionError(
            "no model answers from the evidence here; the operator names some with answer_url and answer_models"
        )
    if model not in answering.models:
        raise QuestionError(f"the model {model!r} may not answer here; there are: {', '.join(answering.models)}")
    return answering


def answering_of(settings: CairnSettings) -> Answering | None:
    """The endpoint that the settings name, or none.

    Raises:
        SetupError: an endpoint without models, or models without an endpoint.
    """
    if not settings.answer_url and not settings.answer_models:
        return None
    if not settings.answer_url or not settings.answer_models:
        raise SetupError(
            "for answers of another model set both answer_url and answer_models, for example "
            'answer_url = "http://127.0.0.1:11434/v1" and answer_models = ["llama3.2:3b"]'
        )
    from agent.outbound.address import Address
    from agent.outbound.client import openai_client

    key = settings.answer_key.get_secret_value() or "none"
    client = openai_client(Address.of(settings.answer_url), api_key=key, seconds=SECONDS, retries=1)
    return Answering(client, settings.answer_models)
