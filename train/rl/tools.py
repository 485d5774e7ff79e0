"""What the rewards of a run may ask outside of trace and task, as its recipe says."""

from pathlib import Path

from agent.settings import CairnSettings
from train.evaluation.judge import Judge, JudgeSettings
from train.rewards.base import Tools
from train.rewards.outside import EndpointJudge, EndpointReader, LocalReader
from train.rl.recipe import Judge as Named
from train.rl.recipe import RlRecipe


def tools_of(recipe: RlRecipe, out: Path) -> Tools:
    """Judge and reader; what they say is kept in the run's folder.

    Raises:
        SetupError: an endpoint or a folder that cannot be used.
    """
    reader = None
    if recipe.local_reader is not None:
        reader = LocalReader.load(recipe.local_reader)
    elif recipe.reader is not None:
        reader = EndpointReader(_asked(recipe.reader, out / "replies" / "reader"))
    judge = None
    if recipe.judge is not None:
        judge = EndpointJudge(_asked(recipe.judge, out / "replies" / "judge"), graded=recipe.judge.graded)
    return Tools(judge=judge, reader=reader)


def _asked(named: Named, folder: Path) -> Judge:
    """The key is that of the agent's settings, so that it stands in no recipe."""
    folder.mkdir(parents=True, exist_ok=True)
    key = CairnSettings().api_key
    return Judge(JudgeSettings(base_url=named.base_url, model=named.model, key=key), folder=folder)
