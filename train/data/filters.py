"""The two filters of the paper, by a model: what it knows by heart goes, and what one document alone answers goes.

Before the second, a question must be answered by its documents together; otherwise nothing of it can be trusted.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from agent.errors import PolicyError
from train.data.duplicates import Show
from train.data.folder import counted
from train.data.model import WriterModel, each, why_failed
from train.data.prompts import CLOSED_BOOK, FROM_DOCUMENTS, as_data, read_answer
from train.data.records import Bundle, Candidate, Doc
from train.evaluation.choices import chosen, right_options
from train.evaluation.judge import ANSWER_CHARS, VERDICT, read_verdict
from train.evaluation.metrics import cover

KNOWN: Final = "the model knows the answer without any document"
UNSETTLED: Final = "its documents together do not give the answer"
ONE_DOCUMENT: Final = "one document alone gives the answer"
ONE_SOURCE: Final = "the documents of one source alone give the answer"

Check = Callable[[Candidate], Awaitable[str]]
"""Why a question is dropped; "" where it is not."""


class Filters:
    """Asks a model the questions that were written, with and without documents."""

    def __init__(
        self, model: WriterModel, docs: Mapping[str, Doc], bundles: Sequence[Bundle], *, diverse: bool
    ) -> None:
        """Take what the questions are about.

        Args:
            model: that answers.
            docs: by their ids.
            bundles: that the questions are about.
            diverse: whether the documents of one source must not suffice.
        """
        self._model, self._docs, self._diverse = model, docs, diverse
        self._bundles = {bundle.id: bundle for bundle in bundles}

    async def by_heart(self, candidate: Candidate) -> str:
        return KNOWN if await self._answers(candidate, ()) else ""

    async def together(self, candidate: Candidate) -> str:
        return "" if await self._answers(candidate, candidate.supporting) else UNSETTLED

    async def alone(self, candidate: Candidate) -> str:
        """Each document of the bundle by itself; then those of each source, where they are several."""
        documents = self._bundles[candidate.bundle].documents
        for key in documents:
            if await self._answers(candidate, (key,)):
                return ONE_DOCUMENT
        for source in candidate.sources if self._diverse else ():
            own = tuple(key for key in documents if self._docs[key].source == source)
            if len(own) > 1 and await self._answers(candidate, own):
                return ONE_SOURCE
        return ""

    async def _answers(self, candidate: Candidate, keys: Sequence[str]) -> bool:
        """Whether the model gives the right answer, from these documents or from memory."""
        task = FROM_DOCUMENTS if keys else CLOSED_BOOK
        data = as_data(candidate.question, [self._docs[key] for key in keys])
        said = await self._model.ask(task, data, read_answer)
        if not said:
            return False
        if candidate.options:
            return chosen(said, candidate.options) == right_options(candidate.answers, candidate.options)
        if cover(said, candidate.answers):
            return True
        graded = {
            "question": candidate.question,
            "reference_answers": list(candidate.answers),
            "answer_to_grade": said[:ANSWER_CHARS],
        }
        return await self._model.ask(VERDICT, graded, _verdict)


async def passed(
    candidates: Sequence[Candidate], check: Check, *, concurrency: int, leave_failed: bool, show: Show
) -> tuple[list[Candidate], dict[str, int]]:
    """The questions that a filter lets through, and why the others are dropped.

    Raises:
        SetupError: the endpoint is gone, or requests were not answered.
    """
    found = await each(candidates, check, concurrency=concurrency, leave_failed=leave_failed, show=show)
    whys = [why_failed(why) if isinstance(why, PolicyError) else why for why in found]
    return [one for one, why in zip(candidates, whys, strict=True) if not why], counted([why for why in whys if why])


def _verdict(reply: str) -> bool:
    said = read_verdict(reply)
    if said is None:
        raise ValueError("it is neither correct nor incorrect")
    return said
