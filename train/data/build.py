"""A build, from documents to questions in their order. The same call goes on with one that broke off."""

import asyncio
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final

from agent.errors import SetupError
from agent.outbound.reply_cache import ReplyCache
from agent.parallel.spread import HERE, Spread
from agent.sources.corpus.folder import locked
from train.data.bundling import Grounds, grounds
from train.data.by_grammar import drawn, questions_by_grammar
from train.data.filters import Filters, passed
from train.data.finish import Finished, finished
from train.data.folder import STEPS, Folder, counted, writing
from train.data.inputs import Inputs, WorldInput
from train.data.model import WriterModel, WriterOptions
from train.data.recipe import GRAMMAR, DataRecipe
from train.data.records import Candidate
from train.data.steps import Made, Show, Steps
from train.data.vectors import Embed, embedder, in_lists
from train.data.writing import written
from train.safety.manifest import MANIFEST, kept_manifest

REPLIES: Final = "replies.jsonl"


def build(
    inputs: Inputs,
    recipe: DataRecipe,
    out: Path,
    *,
    writer: WriterOptions | None = None,
    show: Show = lambda step, done, total: None,
    embed: Embed | None = None,
    spread: Spread = HERE,
) -> Finished:
    """Build questions over several documents, or go on with a build that broke off.

    Args:
        inputs: documents.
        recipe: every setting that decides what comes out.
        out: folder; docs/data.md says what is in it.
        writer: the model that writes; a little world's grammar needs none.
        show: called with how far each step is.
        embed: in the place of the recipe's embedder, in this process.
        spread: whose workers do what is dear and can be shared; what comes out is the same.

    Raises:
        SetupError: something named cannot be used, the folder holds another build, or nothing is left at some step.
            The sentence names the fix.
    """
    if writer is None and (recipe.writer != GRAMMAR or not isinstance(inputs, WorldInput)):
        raise SetupError("only a little world has a grammar: name a model that writes, with --base-url and --model")
    _check_folder(out)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    with locked(out), kept_manifest(out, recipe=recipe, seeds={"data": recipe.seed}, data=recipe.documents) as kept:
        steps = Steps(Folder(out), show, spread)
        load = partial(embedder, recipe.embedder, spread=spread)
        ground = grounds(
            steps, recipe, read=inputs.documents, load=lambda docs: in_lists(embed) if embed else load(docs)
        )
        if writer is not None:
            found = asyncio.run(questions_by_model(steps, recipe, writer, ground))
        else:
            assert isinstance(inputs, WorldInput)
            found = questions_by_grammar(steps, recipe, inputs, ground)
        done = finished(steps, recipe, inputs, found, ground.docs)
        kept.figures = done.figures
        kept.data |= done.hashes
    return done


def _check_folder(out: Path) -> None:
    if not out.exists():
        return
    held = {path.name for path in out.iterdir()} if out.is_dir() else {out.name}
    if held - {".lock"} and not held & {STEPS, MANIFEST}:
        raise SetupError(f"{out} has other files in it; choose another --out")


async def questions_by_model(
    steps: Steps, recipe: DataRecipe, writer: WriterOptions, ground: Grounds
) -> list[Candidate]:
    """The questions that are left in the end.

    They are written, then filtered; the model's earlier replies are kept and used.

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
