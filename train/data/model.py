"""The model that writes and answers: any OpenAI-compatible endpoint, with bounded tries and failures that have a kind.

What it replies is kept where it could be read, and not asked again. A failure of one request is data; an endpoint that
is gone ends the step in a sentence, and the same command goes on.
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from agent.errors import SetupError
from train.data.duplicates import Show
from train.data.replies import Replies
from train.evaluation.asking import AskFailed
from train.evaluation.cited import Passages
from train.evaluation.endpoint import Endpoint, Sleep, Where
from train.evaluation.questions import Question
from train.evaluation.result import Failure

READINGS: Final = 3
"""Of one request whose reply is not in the form that was asked for."""
MOST_LOST: Final = 5
"""Requests in a row that nobody answers, until the endpoint counts as gone."""
_LOST: Final = frozenset[Failure]({"timeout", "rate", "server", "connection"})

_T = TypeVar("_T")
_J = TypeVar("_J")


@dataclass
class Counts:
    """What was asked in this sitting."""

    requests: int = 0
    kept: int = 0
    """Replies that were there already."""
    unread: int = 0
    """Replies that could not be read."""
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Model:
    """One model for one build. Use it as an async context."""

    def __init__(self, where: Where, replies: Replies, *, sleep: Sleep = asyncio.sleep) -> None:
        """Take note of an endpoint; nothing is sent yet.

        Args:
            where: it is; its temperature is that of the writing.
            replies: where they are kept.
            sleep: between tries.
        """
        self.where = where
        self.counts = Counts()
        self._replies, self._sleep = replies, sleep
        self._endpoints: dict[float, Endpoint] = {}
        self._lost = 0

    async def __aenter__(self) -> "Model":
        return self

    async def __aexit__(self, *ended: object) -> None:
        for endpoint in self._endpoints.values():
            await endpoint.aclose()

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
            AskFailed: nobody answers (`kind` says how), or nothing that can be read.
            SetupError: the endpoint refuses the key, does not know the model, or is gone.
        """
        prompt = f"{task}\n\n{json.dumps(data, ensure_ascii=False)}"
        key = hashlib.sha256("\0".join((self.where.model, str(temperature), prompt)).encode()).hexdigest()
        if (known := self._replies.get(key)) is not None:
            with suppress(ValueError):  # of a version that read otherwise
                said = read(known)
                self.counts.kept += 1
                return said
        why = ""
        for _ in range(READINGS):
            mend = f"\n\nYour last reply could not be used: {why}. Reply again, in the form above." if why else ""
            reply = await self._reply(prompt + mend, temperature)
            try:
                said = read(reply)
            except ValueError as error:
                why = str(error)
                self.counts.unread += 1
                continue
            self._replies.keep(key, reply)
            return said
        raise AskFailed("malformed", f"none of {READINGS} replies could be used; of the last one, {why}")

    async def _reply(self, prompt: str, temperature: float) -> str:
        asked = Question(id="prompt", question=prompt, answers=(), unanswerable=True)
        self._still_there("it gave no answer")
        try:
            answer = await self._endpoint(temperature).ask(asked)
        except AskFailed as failed:
            if failed.kind in _LOST:
                self._lost += 1
                self._still_there(str(failed))
            raise
        self._lost = 0
        self.counts.requests += 1
        self.counts.prompt_tokens += answer.prompt_tokens or 0
        self.counts.completion_tokens += answer.completion_tokens or 0
        return answer.said

    def _still_there(self, why: str) -> None:
        if self._lost >= MOST_LOST:
            raise SetupError(
                f"the endpoint {self.where.url} is gone: {MOST_LOST} requests in a row failed, the last because {why}; "
                "what was answered is kept: run the same command again when it is back"
            )

    def _endpoint(self, temperature: float) -> Endpoint:
        if temperature not in self._endpoints:
            where = replace(self.where, temperature=temperature, plain=True, stream=False)
            self._endpoints[temperature] = Endpoint(where, passages=Passages({}), sleep=self._sleep)
        return self._endpoints[temperature]


async def each(
    jobs: Sequence[_J],
    do: Callable[[_J], Awaitable[_T]],
    *,
    concurrency: int,
    leave_failed: bool,
    show: Show,
) -> list[_T | AskFailed]:
    """Do all jobs, some of them at the same time; results in the order of the jobs.

    Args:
        jobs: what is asked about.
        do: one of them, with one request after the other.
        concurrency: jobs that are begun and not done, at most.
        leave_failed: give a request that nobody answered as its failure; otherwise it ends the step.
        show: is told how many are done.

    Raises:
        SetupError: the endpoint is gone or refuses everything, or requests were not answered.
    """
    results: dict[int, _T | AskFailed] = {}
    waiting = iter(enumerate(jobs))

    async def work() -> None:
        for place, job in waiting:
            try:
                results[place] = await do(job)
            except AskFailed as failed:
                results[place] = failed
            show(len(results), len(jobs))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(jobs))):
                group.create_task(work())
    except* SetupError as errors:
        raise _first(errors) from None
    found = [results[place] for place in range(len(jobs))]
    lost = [one for one in found if isinstance(one, AskFailed) and one.kind in _LOST]
    if lost and not leave_failed:
        raise SetupError(
            f"{len(lost)} of {len(jobs)} requests were not answered ({lost[-1]}); what was answered is kept: run the "
            "same command again to ask only those, or with --leave-failed to do without them"
        )
    return found


def _first(errors: BaseExceptionGroup[SetupError]) -> SetupError:
    first: BaseException = errors
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    assert isinstance(first, SetupError)
    return first


def why_failed(failed: AskFailed) -> str:
    """Why a question is left out, in the words of a table."""
    if failed.kind == "malformed":
        return "the model's reply was not in the form that was asked for"
    return f"the model did not answer ({failed.kind})"
