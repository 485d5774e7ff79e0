"""The policy behind a server that takes token ids through completions, as vLLM's does: ids in, ids out."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from agent.errors import PolicyError
from agent.outbound.completions import finish_of, first_choice, read_tokens
from agent.outbound.llm import MOST_STOPS, LlmClient
from agent.outbound.llm_errors import broke_off
from agent.policies.base import Sampling
from agent.policies.token_context import Sampled, TokenContext
from agent.policies.tokens import Codec
from agent.protocols.base import TextProtocol


class CompletionsPolicy:
    """A model that was trained on the protocol, at an endpoint. It keeps every id that was sampled."""

    continues = True
    instructed = False

    def __init__(self, endpoint: LlmClient, codec: Codec, *, context_tokens: int) -> None:
        """Take note of an endpoint; nothing is sent yet.

        Args:
            endpoint: of the server.
            codec: of the model's tokenizer.
            context_tokens: the longest context that the server takes.
        """
        self.name = endpoint.model
        self.context_tokens = context_tokens
        self._endpoint = endpoint
        self._codec = codec

    @property
    def special_tokens(self) -> tuple[str, ...]:
        return self._codec.special

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> TokenContext:
        """Open a context with the protocol's prompt.

        Raises:
            ContextFull: the question is longer than the context.
        """
        limit = self.context_tokens
        return TokenContext(self, self._codec, protocol, question, limit=limit, history=history, date=date)

    def sample(
        self, ids: Sequence[int], sampling: Sampling, *, ends: frozenset[int], max_tokens: int
    ) -> AsyncGenerator[list[Sampled]]:
        """Continue ids; see `agent.policies.token_context.Sampler`. Closing it closes the connection, which aborts."""
        return self.sample_until(ids, sampling, ends=ends, stop=(), max_tokens=max_tokens)

    async def sample_until(
        self, ids: Sequence[int], sampling: Sampling, *, ends: frozenset[int], stop: Sequence[str], max_tokens: int
    ) -> AsyncGenerator[list[Sampled]]:
        """The same, with stop texts that the server looks for."""
        parameters = _parameters(sampling, ends=ends, stop=stop, max_tokens=max_tokens)
        async with self._endpoint.complete(ids, **parameters) as events, aclosing(events):
            async for event in events:
                new, finish = _read(event)
                if finish:
                    async for _ in events:
                        pass  # a stream that is read to its end leaves its connection for the next turn
                if finish == "abort":
                    raise PolicyError(f"the server at {self._endpoint.base_url} aborted the turn; look at its log")
                if new:
                    yield new
                if finish:
                    return
        raise PolicyError(broke_off(self._endpoint.base_url))

    async def aclose(self) -> None:
        await self._endpoint.aclose()


def _parameters(sampling: Sampling, *, ends: frozenset[int], stop: Sequence[str], max_tokens: int) -> dict[str, Any]:
    """Everything is said, for what is left out a server takes from the model's own generation_config.json."""
    parameters: dict[str, Any] = {
        "max_tokens": max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "repetition_penalty": 1.0,
        "min_p": 0.0,
        "logprobs": 0,
        "return_token_ids": True,
        "add_special_tokens": False,
        "stop_token_ids": sorted(ends),
        "ignore_eos": True,
        "skip_special_tokens": False,
    }
    if stop:
        parameters |= {"stop": list(stop[:MOST_STOPS]), "include_stop_str_in_output": True}
    if sampling.temperature:
        parameters["seed"] = sampling.seed
    return parameters


def _read(event: Mapping[str, Any]) -> tuple[list[Sampled], str]:
    """The tokens of one event, and why the turn ended, if it did.

    Raises:
        OddReply: the ids and log-probabilities do not go together, or are none.
    """
    choice = first_choice(event)
    return (read_tokens(choice), finish_of(choice)) if choice is not None else ([], "")
