"""Questions about bundles, written by a model: one of each kind about each bundle. They are not judged here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from agent.errors import PolicyError, SetupError
from train.data.duplicates import Show
from train.data.folder import counted
from train.data.model import WriterModel, each, why_failed
from train.data.prompts import WrittenQuestion, read_written, shown, write_task
from train.data.recipe import DataRecipe, Kind
from train.data.records import Bundle, Candidate, Doc
from train.evaluation.metrics import normalise

NOTHING_TO_JOIN = "the model saw nothing to put together"
REPEATED = "it repeats a question in the same words"


@dataclass(frozen=True)
class WritingJob:
    """One question that is to be written."""

    bundle: Bundle
    kind: Kind


async def written(
    bundles: Sequence[Bundle],
    docs: Mapping[str, Doc],
    model: WriterModel,
    recipe: DataRecipe,
    *,
    concurrency: int,
    leave_failed: bool,
    show: Show,
) -> tuple[list[Candidate], dict[str, int]]:
    """The questions, and why there is none where one was wanted.

    Raises:
        SetupError: the endpoint is gone, requests were not answered, or nothing that it wrote can be used.
    """
    sources = 1 if recipe.bundles == "same" else 2

    async def write(wanted: WritingJob) -> WrittenQuestion:
        held = [docs[key] for key in wanted.bundle.documents]
        read = partial(read_written, docs=held, kind=wanted.kind, sources=sources)
        data = {"documents": shown(held, numbers=True)}
        return await model.ask(write_task(wanted.kind), data, read, temperature=recipe.temperature)

    jobs = [WritingJob(bundle, kind) for bundle in bundles for kind in recipe.kinds]
    found = await each(jobs, write, concurrency=concurrency, leave_failed=leave_failed, show=show)
    kept: dict[str, Candidate] = {}
    whys: list[str] = []
    for wanted, said in zip(jobs, found, strict=True):
        if isinstance(said, PolicyError):
            whys.append(why_failed(said))
        elif said.skip:
            whys.append(NOTHING_TO_JOIN)
        elif (key := normalise(said.text)) in kept:
            whys.append(REPEATED)
        else:
            kept[key] = _candidate(wanted, said, docs)
    failed = [one for one in found if isinstance(one, PolicyError)]
    if failed and len(failed) == len(found):
        raise SetupError(
            f"{model.title} wrote no question that can be used: {failed[0]}; name another one with --model"
        )
    return list(kept.values()), counted(whys)


def _candidate(wanted: WritingJob, said: WrittenQuestion, docs: Mapping[str, Doc]) -> Candidate:
    supporting = tuple(wanted.bundle.documents[number - 1] for number in dict.fromkeys(said.documents))
    return Candidate(
        id=f"{wanted.bundle.id}-{wanted.kind}",
        question=said.text,
        answers=said.answers,
        type=wanted.kind,
        bundle=wanted.bundle.id,
        supporting=supporting,
        sources=tuple(sorted({docs[key].source for key in supporting})),
        options=said.options,
    )
