"""From nothing to a served agent, stage by stage: what is done stays done, and each second is counted."""

from collections.abc import Sequence
from pathlib import Path
from shutil import rmtree

from agent.cores import cores
from agent.errors import CorpusError, SetupError
from agent.sources.corpus.folder import locked
from train.tiny.ledger import Ledger
from train.tiny.recipe import SHIPPED, read_recipes
from train.tiny.report import write_report
from train.tiny.stages import HUB, STAGES, Place, Stage
from train.tiny.watch import Watch


def make(out: Path, *, recipe: Path = SHIPPED, resume: bool = False, processes: int = 0, threads: int = 0) -> Ledger:
    """Go the whole way.

    Args:
        out: the folder of everything.
        recipe: a file of `kind = "tiny"`.
        resume: go on with what stands in `out`.
        processes: of the supervised part; 0: one for each core, as many as the recipe can share work among.
        threads: in all; 0: one for each core, four at most.

    Raises:
        SetupError: something cannot be used, a stage failed, or it was interrupted (what is done is kept).
    """
    import torch

    out = out.resolve()
    recipes = read_recipes(recipe, start=out / "sft" / HUB)
    most = 1 if torch.cuda.is_available() else recipes.sft.optimizer.batches_per_step
    if processes > most:
        raise SetupError(f"{processes} processes would have nothing to share: at most {most} can work on a step here")
    processes = processes or min(most, cores())
    threads = threads or min(4, cores())
    ledger = Ledger.opened(out, name=recipes.tiny.name, recipes=recipes.said(), processes=processes, resume=resume)
    place = Place(recipes, out, processes, threads, ledger, Watch(ledger))
    try:
        with locked(out):
            ledger.write()
            for number, stage in enumerate(STAGES):
                torch.set_num_threads(threads)
                _stage(place, stage, STAGES[number + 1 :])
    except CorpusError as error:
        raise SetupError(f"another run is writing to {out}; wait for its end, or name another --out") from error
    return ledger


def _stage(place: Place, stage: Stage, later: Sequence[Stage]) -> None:
    """Do a stage that is not done, and tell how long it took."""
    ledger, watch = place.ledger, place.watch
    if ledger.entry(stage.name).done and (place.out / stage.leaves).exists():
        watch.say(f"{stage.title}: done before")
        return
    if ledger.entry(stage.name).done or not ledger.entry(stage.name).sittings:
        ledger.forget([stage.name])
        for folder in stage.folders:
            rmtree(place.out / folder, ignore_errors=True)
    ledger.forget(each.name for each in later)
    with watch.stage(stage.title), ledger.timing(stage.name) as entry:
        stage.work(place, entry)
    write_report(ledger)
    watch.say(f"{stage.title}: {entry.said} ({entry.seconds:,.0f} s)")
