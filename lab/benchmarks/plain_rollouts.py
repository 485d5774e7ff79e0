"""What rollouts cost without this package's engine: plain batched generation turn by turn, and one search at a time.

It is the usual `rollout_func`: all contexts wait until each of them has its turn, `model.generate` reads every context
again, and searches follow one another. Only `bench` uses it; the loop is the same, so both sample alike texts.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import transformers

from agent.policies.base import Sampling
from agent.policies.hub_form import HubForm
from agent.policies.token_context import Sampled, TokenContext
from agent.protocols.base import TextProtocol
from agent.sources.base import SearchRequest, SearchResult, Source


@dataclass(frozen=True)
class Serial:
    """A source that one rollout searches at a time, and that needs some time for it."""

    source: Source
    lock: asyncio.Lock | None
    """None: any rollout may search at any time."""
    seconds: float
    spent: list[float]
    """What each search took, without the time for which it waited for others; a source adds them here."""

    async def search(self, request: SearchRequest) -> SearchResult:
        async with self.lock or nullcontext():
            began = time.perf_counter()
            await asyncio.sleep(self.seconds)
            found = await self.source.search(request)
            self.spent.append(time.perf_counter() - began)
            return found


@dataclass(eq=False)
class _Turn:
    ids: Sequence[int]
    ends: list[int]
    max_tokens: int
    done: asyncio.Future[list[int]]


class PlainPolicy:
    """`model.generate` over all contexts at once. `rollouts` is set to their number, and each `leave`s."""

    name = "plain"
    continues = True
    instructed = False

    def __init__(self, model: Any, form: HubForm) -> None:
        self.rollouts = 0
        self._model = model
        self._form = form
        self._waiting: list[_Turn] = []

    @property
    def context_tokens(self) -> int:
        return self._form.context_tokens

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> TokenContext:
        limit = self.context_tokens
        return TokenContext(self, self._form.codec, protocol, question, limit=limit, history=history, date=date)

    def sample(
        self, ids: Sequence[int], sampling: Sampling, *, ends: frozenset[int], max_tokens: int
    ) -> AsyncGenerator[list[Sampled]]:
        """As a sampler; log-probabilities are 0."""
        return self.sample_until(ids, sampling, ends=ends, stop=(), max_tokens=max_tokens)

    async def sample_until(
        self, ids: Sequence[int], sampling: Sampling, *, ends: frozenset[int], stop: Sequence[str], max_tokens: int
    ) -> AsyncGenerator[list[Sampled]]:
        """The same; stop texts are single tokens."""
        marks = [number for text in stop if (number := self._form.codec.id_of(text)) is not None]
        turn = _Turn(ids, [*ends, *marks], max_tokens, asyncio.get_running_loop().create_future())
        self._waiting.append(turn)
        self._go_when_all_wait(sampling)
        try:
            said = await turn.done
        finally:
            if turn in self._waiting:  # its rollout was cut while it waited
                self._waiting.remove(turn)
        yield [(number, 0.0) for number in said]

    def leave(self) -> None:
        """A rollout has ended."""
        self.rollouts -= 1
        self._go_when_all_wait(Sampling(temperature=1.0))

    async def aclose(self) -> None:
        """Nothing is held."""

    def _go_when_all_wait(self, sampling: Sampling) -> None:
        if self._waiting and len(self._waiting) >= self.rollouts:
            turns, self._waiting = self._waiting, []
            for turn, said in zip(turns, self._generate(turns, sampling), strict=True):
                if not turn.done.done():
                    turn.done.set_result(said)

    @torch.inference_mode()
    def _generate(self, turns: Sequence[_Turn], sampling: Sampling) -> list[list[int]]:
        longest = max(len(turn.ids) for turn in turns)
        pad = int(self._model.config.pad_token_id)
        ids = torch.tensor([[pad] * (longest - len(turn.ids)) + list(turn.ids) for turn in turns])
        mask = torch.tensor([[0] * (longest - len(turn.ids)) + [1] * len(turn.ids) for turn in turns])
        made = self._model.generate(
            input_ids=ids.to(self._model.device),
            attention_mask=mask.to(self._model.device),
            max_new_tokens=max(turn.max_tokens for turn in turns),
            do_sample=True,
            temperature=sampling.temperature,
            top_k=0,
            top_p=1.0,
            stopping_criteria=transformers.StoppingCriteriaList([_Over(turns, longest)]),
            pad_token_id=pad,
        )[:, longest:].tolist()
        return [_until(row, turn) for row, turn in zip(made, turns, strict=True)]


class _Over(transformers.StoppingCriteria):
    """Ends each row where its own turn ends: one that has to answer now ends elsewhere than one that may search."""

    def __init__(self, turns: Sequence[_Turn], start: int) -> None:
        self._turns = turns
        self._start = start
        """Columns of the prompts."""

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        """Which rows are over, [rows], of ids [rows, columns]."""
        sampled = input_ids.shape[1] - self._start
        last: list[int] = input_ids[:, -1].tolist()
        over = [
            number in turn.ends or sampled >= turn.max_tokens for number, turn in zip(last, self._turns, strict=True)
        ]
        return torch.tensor(over, device=input_ids.device)


def _until(row: list[int], turn: _Turn) -> list[int]:
    """Up to and with the token that ends the turn."""
    end = next((at + 1 for at, number in enumerate(row) if number in turn.ends), len(row))
    return row[: min(end, turn.max_tokens)]
