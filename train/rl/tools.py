"""What the rewards of a run may ask outside of trace and task, as its recipe says; open for as long as the run is."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from agent.errors import SetupError
from agent.outbound.address import OptionNames
from agent.settings import CairnSettings
from agent.settings.local_file import refuse_plain_key
from train.evaluation.judge import Judge, JudgeSettings
from train.rewards.base import EvidenceReader, RewardTools
from train.rewards.support.outside import EndpointJudge, EndpointReader, LocalReader
from train.rewards.support.vectors import Vectors, encoder_vectors, hashed_words
from train.rl.recipe import Embedder, RlRecipe
from train.rl.recipe import JudgeEndpoint as Named


@contextmanager
def tools_of(recipe: RlRecipe, out: Path, *, runner: asyncio.Runner) -> Iterator[RewardTools]:
    """Judge, reader and embedder; what the first two say is kept in the run's folder.

    Args:
        recipe: of the run.
        out: its folder.
        runner: of the event loop in which they are called; in it their connections are closed in the end.

    Raises:
        SetupError: an endpoint, a folder or a model that cannot be used.
    """
    with ExitStack() as open_ones:

        def judge_of(named: Named, folder: Path) -> Judge:
            judge = endpoint_of(named, folder)
            open_ones.callback(lambda: runner.run(judge.aclose()))
            return judge

        reader: EvidenceReader | None = None
        if recipe.local_reader is not None:
            reader = LocalReader.load(recipe.local_reader)
        elif recipe.reader is not None:
            reader = EndpointReader(judge_of(recipe.reader, out / "replies" / "reader"))
        judge = None
        if recipe.judge is not None:
            judge = EndpointJudge(judge_of(recipe.judge, out / "replies" / "judge"), graded=recipe.judge.graded)
        yield RewardTools(judge=judge, reader=reader, vectors=vectors_of(recipe.embedder))


def endpoint_of(named: Named, folder: Path | None = None) -> Judge:
    """A model that rewards may ask. The key is `CAIRN_API_KEY`, so that no recipe holds it.

    Args:
        named: the recipe's.
        folder: where its replies are kept; None: nowhere.

    Raises:
        SetupError: the key would go over plain HTTP, or the kept replies cannot be read.
    """
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    settings = CairnSettings()
    key = settings.api_key
    refuse_plain_key(named.base_url, key.get_secret_value(), allowed=settings.plain_http)
    options = OptionNames("the recipe's base_url", "CAIRN_API_KEY", "model in the recipe")
    return Judge(JudgeSettings(base_url=named.base_url, model=named.model, key=key, options=options), folder=folder)


def vectors_of(embedder: Embedder | None) -> Vectors:
    """How alike texts are: by a model, or by hashed words where none is named.

    Raises:
        SetupError: the model cannot be used.
    """
    if embedder is None:
        return hashed_words
    try:
        return encoder_vectors(embedder.model, device=embedder.device)
    except SetupError as error:
        raise SetupError(
            f"the recipe's [embedder] cannot be used: {error}. Without [embedder], rewards compare hashed words"
        ) from error
