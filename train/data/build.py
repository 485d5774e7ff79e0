"""A build, from documents to questions in their order. The same call goes on with one that broke off."""

import asyncio
from functools import partial
from pathlib import Path

from agent.errors import SetupError
from agent.parallel.spread import HERE, Spread
from agent.sources.corpus.folder import locked
from train.data.bundling import grounds
from train.data.by_grammar import questions_by_grammar
from train.data.by_model import questions_by_model
from train.data.finish import Finished, finished
from train.data.folder import STEPS, Folder, writing
from train.data.inputs import Inputs, WorldInput
from train.data.model import WriterOptions
from train.data.recipe import GRAMMAR, DataRecipe
from train.data.steps import Show, Steps
from train.data.vectors import Embed, embedder, in_lists
from train.safety.manifest import MANIFEST, kept_manifest


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
