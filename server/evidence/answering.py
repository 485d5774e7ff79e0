"""The models that the operator lets answer from evidence, all at one endpoint. A request names one, and never a URL."""

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from agent.errors import QuestionError, SetupError
from agent.rstool import Downstream, EvidenceBundle, answer_with
from agent.settings import CairnSettings
from agent.trace import Usage

if TYPE_CHECKING:
    from agent.outbound.llm import LlmClient


SECONDS: Final = 120.0
"""For one reply: a slot is held all the while."""


class Answering:
    """The clients of these models, by their names."""

    def __init__(self, clients: Iterable["LlmClient"]) -> None:
        self._clients = {client.model: client for client in clients}

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(self._clients)

    async def answer(self, bundle: EvidenceBundle, model: str, *, count: Callable[[Usage], None]) -> Downstream:
        """Let one of the models answer; what goes wrong there is an outcome. Cancelling this closes the request.

        Args:
            bundle: the evidence.
            model: one of `models`.
            count: called with the tokens of the answer, for the key of the client that requested it.
        """
        answer = await answer_with(bundle, self._clients[model])
        count(Usage(prompt_tokens=answer.prompt_tokens, policy_tokens=answer.completion_tokens))
        return answer

    async def aclose(self) -> None:
        async with AsyncExitStack() as stack:
            for client in self._clients.values():
                stack.push_async_callback(client.aclose)


def check_model(answering: Answering | None, model: str) -> Answering:
    """Who answers with this model.

    Raises:
        QuestionError: the operator allows no model, or not this one.
    """
    if answering is None:
        raise QuestionError(
            "no model can answer from the evidence here; the operator can add some with answer_url and answer_models"
        )
    if model not in answering.models:
        raise QuestionError(f"the model {model!r} cannot answer here; choose from: {', '.join(answering.models)}")
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
    from agent.outbound.address import OptionNames
    from agent.outbound.llm import LlmClient
    from agent.outbound.retries import Retries

    return Answering(
        LlmClient(
            base_url=settings.answer_url,
            model=model,
            api_key=settings.answer_key.get_secret_value(),
            seconds=SECONDS,
            retries=Retries(1),
            options=OptionNames("answer_url", "CAIRN_ANSWER_KEY", "answer_models"),
        )
        for model in settings.answer_models
    )
