"""The model that writes and answers: any OpenAI-compatible endpoint, with bounded tries and failures that have a kind.

What it replies is kept where it could be read, and not requested again. A failure of one request is data; an endpoint
that is gone ends the step in a sentence, and the same command goes on.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from pydantic import SecretStr

from agent.errors import PolicyError, PolicyErrorKind, ReplyUnread, SetupError, first_of
from agent.outbound.address import Address, OptionNames
from agent.outbound.llm import LlmClient, LlmCounts
from agent.outbound.llm_errors import HOPELESS
from agent.outbound.reply_cache import ReplyCache, reply_key
from agent.outbound.retries import BATCH, Sleep
from train.data.duplicates import Show
from train.evaluation.extract import without_reasoning

READINGS: Final = 3
"""Of one request whose reply is not in the form that was requested."""
MOST_LOST: Final = 5
"""Requests in a row without an answer, until the endpoint counts as gone."""
_LOST: Final = frozenset[PolicyErrorKind]({"timeout", "rate", "server", "connection"})
_OPTIONS: Final = OptionNames(key="CAIRN_API_KEY, or the variable that --api-key-env names,")

_T = TypeVar("_T")
_J = TypeVar("_J")


@dataclass(frozen=True, kw_only=True)
class WriterOptions:
    """Which model writes and answers, and how it is requested."""

    url: str
    """Of its endpoint, usually ending in /v1."""
    model: str
    key: SecretStr = field(default=SecretStr(""), repr=False)
    seconds: float = 120.0
    """For one try."""
    tries: int = 3
    concurrency: int = 8
    """Requests on their way at the same time."""
    leave_failed: bool = False
    """Do without what the endpoint did not answer, instead of stopping."""
    sleep: Sleep = asyncio.sleep

    def __post_init__(self) -> None:
        """Refuse what cannot be requested.

        Raises:
            SetupError: no http address, or no model.
        """
        Address.of(self.url)
        if not self.model:
            raise SetupError("name the model that writes with --model; its server lists them under /models")


class WriterModel:
    """One model for one build. Use it as an async context."""

    def __init__(self, options: WriterOptions, replies: ReplyCache) -> None:
        """Take note of an endpoint; nothing is sent yet.

        Args:
            options: which it is.
            replies: where its replies are kept.
        """
        self.options = options
        self._client = LlmClient(
            base_url=options.url,
            model=options.model,
            api_key=options.key.get_secret_value(),
            seconds=options.seconds,
            retries=replace(BATCH, most=options.tries - 1, sleep=options.sleep),
            cache=replies,
            options=_OPTIONS,
        )
        self._lost = 0

    @property
    def title(self) -> str:
        return f"the model {self.options.model} at {self._client.base_url}"

    @property
    def counts(self) -> LlmCounts:
        """What was requested in this session."""
        return self._client.counts

    async def __aenter__(self) -> "WriterModel":
        return self

    async def __aexit__(self, *ended: object) -> None:
        await self._client.aclose()

    async def ask(
        self, task: str, data: Mapping[str, Any], read: Callable[[str], _T], *, temperature: float = 0.0
    ) -> _T:
        """Ask until a reply can be read, or the tries are used up.

        Args:
            task: what the model is to do, in words.
            data: which goes as one JSON object behind it.
            read: from a reply to what it says; raises ValueError, whose sentence goes back to the model.
            temperature: of the sampling.

        Raises:
            PolicyError: there is no answer (`kind` says why), or none that can be read.
            SetupError: the endpoint refuses the key, does not know the model, or is gone.
        """
        prompt = f"{task}\n\n{json.dumps(data, ensure_ascii=False)}"
        key = reply_key(self.options.model, str(temperature), prompt)
        why = ""
        for _ in range(READINGS):
            hint = f"\n\nYour last reply could not be used: {why}. Reply again, in the form above." if why else ""
            try:
                return await self._read(prompt + hint, read, key=key, temperature=temperature)
            except ReplyUnread as error:
                why = str(error)
        raise PolicyError(f"none of {READINGS} replies could be used; of the last one, {why}", kind="malformed")

    async def _read(self, prompt: str, read: Callable[[str], _T], *, key: str, temperature: float) -> _T:
        """One reply, kept or new.

        Raises:
            PolicyError: there is none; ReplyUnread where it cannot be read.
            SetupError: no further request would be answered.
        """
        self._check_there("it gave no answer")
        before = self.counts.requests
        try:
            return await self._client.ask(
                [{"role": "user", "content": prompt}],
                lambda reply: read(without_reasoning(reply)),
                key=key,
                temperature=temperature,
            )
        except PolicyError as error:
            if error.status in HOPELESS:
                raise SetupError(str(error)) from error
            if error.kind in _LOST:
                self._lost += 1
                self._check_there(str(error))
            raise
        finally:
            if self.counts.requests > before:
                self._lost = 0

    def _check_there(self, why: str) -> None:
        if self._lost >= MOST_LOST:
            raise SetupError(
                f"the endpoint {self._client.base_url} is gone: {MOST_LOST} requests in a row failed, the last because "
                f"{why}; what was answered is kept: run the same command again when it is back"
            )


async def each(
    jobs: Sequence[_J],
    do: Callable[[_J], Awaitable[_T]],
    *,
    concurrency: int,
    leave_failed: bool,
    show: Show,
) -> list[_T | PolicyError]:
    """Do all jobs, some of them at the same time; results in the order of the jobs.

    Args:
        jobs: what the requests are about.
        do: one of them, with one request after the other.
        concurrency: jobs that are begun and not done, at most.
        leave_failed: give a request without an answer as its failure; otherwise it ends the step.
        show: called with how many are done.

    Raises:
        SetupError: the endpoint is gone or refuses everything, or requests were not answered.
    """
    results: dict[int, _T | PolicyError] = {}
    waiting = iter(enumerate(jobs))

    async def work() -> None:
        for place, job in waiting:
            try:
                results[place] = await do(job)
            except PolicyError as failed:
                results[place] = failed
            show(len(results), len(jobs))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(jobs))):
                group.create_task(work())
    except ExceptionGroup as errors:
        raise first_of(errors, SetupError) from None
    found = [results[place] for place in range(len(jobs))]
    lost = [one for one in found if isinstance(one, PolicyError) and one.kind in _LOST]
    if lost and not leave_failed:
        raise SetupError(
            f"{len(lost)} of {len(jobs)} requests were not answered ({lost[-1]}); what was answered is kept: run the "
            "same command again to ask only those, or with --leave-failed to do without them"
        )
    return found


def why_failed(failed: PolicyError) -> str:
    """Why a question is left out, in the words of a table."""
    if failed.kind == "malformed":
        return "the model's reply was not in the form that was requested"
    return f"the model did not answer ({failed.kind})"
