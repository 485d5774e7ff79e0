"""A teacher that scores the policy's own tokens, and the advantage that each token gets from it.

The policy samples x from itself, and the teacher says how likely each token was to it. The gradient of the reverse
Kullback-Leibler divergence at a token, KL(policy ‖ teacher), is the mean of (log p − log q) ∇ log p over samples, where
p is the policy's probability and q the teacher's. So log q − log p, held fixed, is an advantage like any other: clips,
averages, engines and states stay those of reinforcement learning.

Sources: MiniLLM (arXiv 2306.08543), GKD (2306.13649); imitating only where the answer is wrong: DGPO (2508.20324).
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Protocol, cast

from tokenizers import Tokenizer

from agent.errors import PolicyError, SetupError
from agent.outbound.address import OptionNames
from agent.settings import CairnSettings
from agent.settings.local_file import refuse_plain_key
from train.models.pretrained import base_folder
from train.rewards.registry import reward_of
from train.rl.batch import RolloutReward, WeightedRow, rows_of
from train.rl.recipe import RlRecipe
from train.rl.rollouts import RolloutResult
from train.rl.teacher_settings import TeacherSettings

_AT_ONCE: Final = 16
"""Requests at a server."""
_PROBE: Final = "Search: 1987, “Winter Harbour”\n<answer> Ærø — naïve </answer>"
"""A text that two vocabularies hardly spell alike."""


Scored = tuple[RolloutResult, RolloutReward, tuple[float, ...]]
"""A rollout, its reward, and its advantages."""


class TeacherModel(Protocol):
    """A model with the policy's vocabulary."""

    async def logprobs(self, rows: Sequence[WeightedRow]) -> list[tuple[float, ...]]:
        """The log-probability of each token of each row, given those before it; 0 where its weight is.

        Raises:
            SetupError: there are none; the sentence says why.
        """
        ...

    async def aclose(self) -> None:
        """Let go of everything that is held."""
        ...


async def open_teacher(recipe: RlRecipe) -> TeacherModel:
    """The teacher of a recipe.

    Raises:
        SetupError: it cannot be loaded or reached, or has another vocabulary than the policy.
    """
    said = recipe.teacher
    assert said is not None
    tokenizer = Tokenizer.from_file(str(base_folder(recipe.start) / "tokenizer.json"))
    if not said.base_url:
        from train.rl.local_teacher import LocalTeacher

        return LocalTeacher.load(said.model, tokenizer)
    teacher = ServedTeacher(said)
    try:
        await teacher.check(tokenizer)
    except BaseException:
        await teacher.aclose()
        raise
    return teacher


class ServedTeacher:
    """A teacher behind a server that answers `prompt_logprobs`."""

    def __init__(self, said: TeacherSettings) -> None:
        """Take note of the server; the key is `CAIRN_API_KEY`, so that no recipe holds it.

        Raises:
            SetupError: its address is none, or the key would be sent unencrypted.
        """
        from agent.outbound.llm import LlmClient  # half a second of imports that a run without a teacher spares

        settings = CairnSettings()
        key = settings.api_key.get_secret_value()
        refuse_plain_key(said.base_url, key, allowed=settings.plain_http)
        options = OptionNames("base_url in [teacher]", "CAIRN_API_KEY", "model in [teacher]")
        self._client = LlmClient(base_url=said.base_url, model=said.model, api_key=key, options=options)
        self._free = asyncio.Semaphore(_AT_ONCE)

    async def check(self, tokenizer: Tokenizer) -> None:
        """Try one request, and compare how a text is spelt, where the server says it.

        Raises:
            SetupError: it gives no log-probabilities, or has another vocabulary.
        """
        ids = cast("list[int]", tokenizer.encode(_PROBE, add_special_tokens=False).ids)
        request = {"model": self._client.model, "prompt": _PROBE, "add_special_tokens": False}
        try:
            said = await self._client.native("/tokenize", request)
        except PolicyError as error:
            raise _failed(error) from error
        if said is not None and said.get("tokens", ids) != ids:
            raise SetupError(_other_vocabulary(self._client.model))
        await self._scored(ids)

    async def logprobs(self, rows: Sequence[WeightedRow]) -> list[tuple[float, ...]]:
        try:
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(self._one(row)) for row in rows]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [task.result() for task in running]

    async def _one(self, row: WeightedRow) -> tuple[float, ...]:
        async with self._free:
            found = await self._scored(row.ids)
        return tuple(value if weight else 0.0 for value, weight in zip(found, row.weights, strict=True))

    async def _scored(self, ids: Sequence[int]) -> list[float]:
        """Of each id; the first one, which nothing comes before, has 0."""
        request = {"prompt": list(ids), "max_tokens": 1, "temperature": 1, "prompt_logprobs": 0}
        try:
            async with self._client.events("completions", request, ids=len(ids)) as events:
                bodies = [body async for body in events]
            choice: Any = bodies[0]["choices"][0]
            listed: Sequence[Mapping[str, Any] | None] = choice["prompt_logprobs"]
            found = [0.0, *(float(of[str(id)]["logprob"]) for of, id in zip(listed[1:], ids[1:], strict=True) if of)]
            if len(found) != len(ids):
                raise ValueError("a token has none")
        except PolicyError as error:
            raise _failed(error) from error
        except (LookupError, TypeError, ValueError) as error:
            raise SetupError(
                f"the teacher at {self._client.base_url} gives no log-probabilities of a prompt's tokens "
                "(`prompt_logprobs`): serve it with vLLM, or leave out base_url in [teacher] to load it here"
            ) from error
        return found

    async def aclose(self) -> None:
        await self._client.aclose()


@dataclass(frozen=True)
class TaughtRows:
    """The rows of a batch, and how far the policy is from its teacher."""

    rows: list[WeightedRow]
    whole: float
    """What their sum is divided by, as `rows_of` gives it."""
    apart: float
    """The sum over imitating tokens of log p − log q, in nats; over `tokens` an estimate of KL(policy ‖ teacher)."""
    tokens: int


async def taught_rows(
    teacher: TeacherModel,
    said: TeacherSettings,
    scored: Sequence[Scored],
    *,
    level: Literal["token", "sequence"],
    all_rows: bool,
) -> TaughtRows:
    """The rows of rollouts, with the teacher's words in the advantages of those that imitate.

    Args:
        teacher: scores their tokens.
        said: weights, and who imitates.
        scored: rollouts with their rewards and their advantages, as `rows_of` takes them.
        level: of the averages.
        all_rows: also those whose advantages are all 0.

    Raises:
        SetupError: the teacher fails.
    """
    imitate = await _imitating([one for one, _, _ in scored], said)
    pupils = [one for one, yes in zip(scored, imitate, strict=True) if yes]
    others = [one for one, yes in zip(scored, imitate, strict=True) if not yes]
    rows, whole = rows_of(*_columns(pupils), level=level, all_rows=True)
    rest, whole_of_rest = rows_of(*_columns(others), level=level, all_rows=all_rows)
    logprobs = await teacher.logprobs(rows)
    apart = [
        own - given
        for row, values in zip(rows, logprobs, strict=True)
        for own, given, weight in zip(row.logprobs, values, row.weights, strict=True)
        if weight
    ]
    guided = [_guided(row, values, said) for row, values in zip(rows, logprobs, strict=True)]
    return TaughtRows([*guided, *rest], whole + whole_of_rest, sum(apart), len(apart))


async def _imitating(results: Sequence[RolloutResult], said: TeacherSettings) -> list[bool]:
    """All, or those whose answer is wrong (exact match)."""
    if not said.only_wrong:
        return [True] * len(results)
    exact = reward_of("outcome", {"variant": "printed", "answer": "em"})
    scores = [await exact.score(one.trace, one.ask.task, protocol=one.ask.protocol) for one in results]
    return [one is not None and one.parts["answer"] < 1 for one in scores]


def _guided(row: WeightedRow, logprobs: Sequence[float], said: TeacherSettings) -> WeightedRow:
    """A row with what the teacher says in the advantage of each policy token."""
    advantages = [
        said.reward * advantage + said.weight * max(-said.most, min(said.most, given - own)) if weight else 0.0
        for advantage, given, own, weight in zip(row.advantages, logprobs, row.logprobs, row.weights, strict=True)
    ]
    return replace(row, advantages=tuple(advantages))


def _columns(
    scored: Sequence[Scored],
) -> tuple[list[RolloutResult], list[RolloutReward], list[tuple[float, ...]]]:
    return [one for one, _, _ in scored], [one for _, one, _ in scored], [one for _, _, one in scored]


def same_vocabulary(teacher: Tokenizer, policy: Tokenizer, *, name: str) -> None:
    """Refuse a teacher to which the policy's ids are other tokens.

    Raises:
        SetupError: a token of the policy is another one there, or none.
    """
    if not policy.get_vocab().items() <= teacher.get_vocab().items():
        raise SetupError(_other_vocabulary(name))


def _other_vocabulary(name: str) -> str:
    return (
        f"the teacher {name} has another vocabulary than the policy, so it cannot score the policy's tokens: name one "
        "of the same family, or keep its good rollouts as rows with `cairn train distill`"
    )


def _failed(error: PolicyError) -> SetupError:
    return SetupError(f"the teacher failed: {error}; then go on with --resume")
