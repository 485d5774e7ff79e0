"""The steps from bundles to questions by a model: written, then filtered. Its earlier replies are kept and used."""

from time import perf_counter
from typing import Final

from agent.outbound.reply_cache import ReplyCache
from train.data.bundling import Grounds
from train.data.by_grammar import drawn
from train.data.filters import Filters, passed
from train.data.folder import counted
from train.data.model import WriterModel, WriterOptions
from train.data.recipe import DataRecipe
from train.data.records import Candidate
from train.data.steps import Made, Steps
from train.data.writing import written

REPLIES: Final = "replies.jsonl"


async def questions_by_model(
    steps: Steps, recipe: DataRecipe, writer: WriterOptions, ground: Grounds
) -> list[Candidate]:
    """The questions that are left in the end.

    Raises:
        SetupError: the endpoint is gone or refuses everything, nothing that it wrote can be used, or the folder cannot
            be written.
    """
    async with WriterModel(writer, ReplyCache(steps.folder.path / REPLIES)) as model:
        await _write(steps, recipe, ground, model)
        return await _filter(steps, recipe, ground, model)


async def _write(steps: Steps, recipe: DataRecipe, ground: Grounds, model: WriterModel) -> None:
    if steps.done("writing"):
        return
    began, bundles = perf_counter(), drawn(ground.bundles, recipe)
    kept, dropped = await written(
        bundles,
        ground.docs,
        model,
        recipe,
        concurrency=model.options.concurrency,
        leave_failed=model.options.leave_failed,
        show=steps.progress("writing"),
    )
    figures = {"bundles": len(bundles)} | counted(candidate.type for candidate in kept) | _requests(model)
    steps.keep("writing", kept, Made(len(bundles) * len(recipe.kinds), len(kept), dropped, figures), began=began)


async def _filter(steps: Steps, recipe: DataRecipe, ground: Grounds, model: WriterModel) -> list[Candidate]:
    filters = Filters(model, ground.docs, ground.bundles, diverse=recipe.bundles == "diverse")
    found = steps.read("writing", Candidate)
    for name, check in (("by heart", filters.by_heart), ("together", filters.together), ("alone", filters.alone)):
        if not steps.done(name):
            began, before = perf_counter(), model.counts.requests
            kept, dropped = await passed(
                found,
                check,
                concurrency=model.options.concurrency,
                leave_failed=model.options.leave_failed,
                show=steps.progress(name),
            )
            figures = {"requests": float(model.counts.requests - before)}
            steps.keep(name, kept, Made(len(found), len(kept), dropped, figures), began=began)
        found = steps.read(name, Candidate)
    return found


def _requests(model: WriterModel) -> dict[str, float]:
    """What was requested for it in this session."""
    counts = model.counts
    return {
        "requests": counts.requests,
        "replies kept from before": counts.kept,
        "replies that could not be used": counts.unread,
        "prompt tokens": counts.prompt_tokens,
        "completion tokens": counts.completion_tokens,
    }
