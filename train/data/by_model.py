"""The steps from bundles to questions by a model: written, then filtered. What it replied before is not asked again."""

import asyncio
from dataclasses import dataclass
from time import perf_counter

from train.data.bundling import Grounds
from train.data.by_grammar import drawn
from train.data.filters import Filters, passed
from train.data.folder import counted
from train.data.model import Model
from train.data.recipe import DataRecipe
from train.data.records import Candidate
from train.data.replies import Replies
from train.data.steps import Made, Steps
from train.data.writing import written
from train.evaluation.endpoint import Sleep, Where


@dataclass(frozen=True)
class Asking:
    """The model that writes and answers, and how it is asked."""

    where: Where
    concurrency: int = 8
    """Requests on their way at the same time."""
    leave_failed: bool = False
    """Do without what nobody answered, instead of stopping."""
    sleep: Sleep = asyncio.sleep


async def questions_by_model(steps: Steps, recipe: DataRecipe, asking: Asking, ground: Grounds) -> list[Candidate]:
    """The questions that are left in the end.

    Raises:
        SetupError: the endpoint is gone or refuses everything, nothing that it wrote can be used, or the folder cannot
            be written.
    """
    with Replies(steps.folder.path) as replies:
        async with Model(asking.where, replies, sleep=asking.sleep) as model:
            await _write(steps, recipe, asking, ground, model)
            return await _filter(steps, recipe, asking, ground, model)


async def _write(steps: Steps, recipe: DataRecipe, asking: Asking, ground: Grounds, model: Model) -> None:
    if steps.done("writing"):
        return
    began, bundles = perf_counter(), drawn(ground.bundles, recipe)
    kept, dropped = await written(
        bundles,
        ground.docs,
        model,
        recipe,
        concurrency=asking.concurrency,
        leave_failed=asking.leave_failed,
        show=steps.telling("writing"),
    )
    told = {"bundles": len(bundles)} | counted(candidate.type for candidate in kept) | _asked(model)
    steps.keep("writing", kept, Made(len(bundles) * len(recipe.kinds), len(kept), dropped, told), began=began)


async def _filter(steps: Steps, recipe: DataRecipe, asking: Asking, ground: Grounds, model: Model) -> list[Candidate]:
    filters = Filters(model, ground.docs, ground.bundles, diverse=recipe.bundles == "diverse")
    found = steps.read("writing", Candidate)
    for name, check in (("by heart", filters.by_heart), ("together", filters.together), ("alone", filters.alone)):
        if not steps.done(name):
            began, before = perf_counter(), model.counts.requests
            kept, dropped = await passed(
                found,
                check,
                concurrency=asking.concurrency,
                leave_failed=asking.leave_failed,
                show=steps.telling(name),
            )
            told = {"requests": float(model.counts.requests - before)}
            steps.keep(name, kept, Made(len(found), len(kept), dropped, told), began=began)
        found = steps.read(name, Candidate)
    return found


def _asked(model: Model) -> dict[str, float]:
    """What was asked for it in this sitting."""
    counts = model.counts
    return {
        "requests": counts.requests,
        "replies kept from before": counts.kept,
        "replies that could not be used": counts.unread,
        "prompt tokens": counts.prompt_tokens,
        "completion tokens": counts.completion_tokens,
    }
