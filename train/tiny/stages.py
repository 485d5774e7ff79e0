"""The stages of the way from nothing to a served agent: each is a function of the place where all of it happens.

They call what `cairn world`, `cairn train`, `cairn checkpoint`, `cairn eval` and `cairn serve` call.
"""

import gc
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import devnull
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent.errors import SetupError
from train.tiny.ledger import Entry, Figures, Ledger
from train.tiny.recipe import Recipes
from train.tiny.served import ask_started
from train.tiny.watch import Watch
from train.tiny.worlds import FOLDER, wanted, write

if TYPE_CHECKING:
    from train.evaluation.report import Figures as Scores
    from train.evaluation.session import SoFar
    from train.sft.run import Progress

HUB: Final = "hub"
EXPORTED: Final = "ct2"
BEFORE: Final = "sft"
AFTER: Final = "rl"


@dataclass(frozen=True)
class Place:
    """Where it happens, and with what."""

    recipes: Recipes
    out: Path
    processes: int
    threads: int
    """Of all processes together."""
    ledger: Ledger
    watch: Watch

    def figure(self, stage: str, name: str) -> float | str:
        """What an earlier stage told."""
        return self.ledger.entry(stage).figures[name]


@dataclass(frozen=True)
class Stage:
    name: str
    title: str
    work: Callable[[Place, Entry], None]
    """Does it, and writes into the entry what came out."""
    folders: tuple[str, ...]
    """It makes these; they are removed before it begins anew."""
    leaves: str
    """What stands in the end, beside its mark in the report."""


def worlds(place: Place, entry: Entry) -> None:
    """Write three worlds and check them."""
    listed = wanted(place.recipes)
    documents = questions = 0
    for number, world in enumerate(listed):
        place.watch.show(number, len(listed), "worlds", world.name)
        card = write(world, place.recipes.sft.data, place.out / FOLDER / world.name)
        documents, questions = documents + card.documents, questions + card.questions
        entry.figures[f"{world.name}_questions"] = float(card.questions)
    entry.figures["documents"] = float(documents)
    entry.said = f"{len(listed)} worlds, {documents:,} documents, {questions:,} questions, all sound"


def sft(place: Place, entry: Entry) -> None:
    """Train on the oracle's trajectories, in several processes, from nothing or from the recipe's start."""
    from train.checkpoints.card import write_card
    from train.common.process_group import with_crew
    from train.tiny.learning import Hearing, learn

    recipe, folder = place.recipes.sft, place.out / "sft"
    if not (folder / "state.pt").exists():  # killed before anything was saved: what was logged would stand there twice
        shutil.rmtree(folder, ignore_errors=True)

    def hear(progress: "Progress") -> None:
        said = f"loss {progress.policy_loss:.3f}, right {progress.accuracy:.3f}"
        place.watch.show(progress.tokens / 1000, recipe.optimizer.tokens / 1000, "k tokens", said)

    told = with_crew(place.processes, learn, recipe, folder, Hearing(hear))
    if told is None:
        raise SetupError("interrupted, and saved: the same command with --resume goes on")
    gc.collect()
    entry.figures.update(told)
    write_card(folder, recipe, {}, folder / HUB, file=f"train/recipes/{place.recipes.tiny.sft}")
    entry.said = (
        f"{told['tokens'] / 1e6:.1f} M tokens, {told['tokens_per_second']:,.0f} a second; "
        f"{told.get('dev_trajectories_right', 0.0):.3f} of held-out trajectories right in every token"
    )


def rl(place: Place, entry: Entry) -> None:
    """Reinforcement learning from there. A run that stops itself leaves the policy of before, and is told."""
    from train.rl.run import RlRun
    from train.rl.states import newest_state
    from train.safety.rules import Collapsed

    recipe, folder = place.recipes.rl, place.out / "rl"
    state = newest_state(folder)
    if state is None:
        shutil.rmtree(folder, ignore_errors=True)

    def hear(step: int, figures: Mapping[str, float]) -> None:
        if "trainer/dev_em" in figures:
            entry.figures[f"dev_em_step_{step}"] = round(figures["trainer/dev_em"], 4)
        reward = figures.get("reward/total")  # of a step whose every rollout is masked there is none
        if reward is not None:
            entry.figures.setdefault("reward_first", round(reward, 4))
            entry.figures["reward_last"] = round(reward, 4)
        place.watch.show(step, recipe.steps, "steps", "all masked" if reward is None else f"reward {reward:.3f}")

    try:
        done = RlRun(recipe, folder, threads=place.threads).go(hear, resume=state is not None)
    except Collapsed as error:
        entry.figures["stopped"] = str(error)
        entry.said = f"stopped itself: {error}"
        return
    if not done:
        raise SetupError("interrupted, and saved: the same command with --resume goes on")
    first, last = (entry.figures.get(name) for name in ("reward_first", "reward_last"))
    reward = "every rollout was masked" if first is None else f"reward of a batch {first:.3f} → {last:.3f}"
    entry.said = f"{recipe.learning.name}, {recipe.steps} steps; {reward}"


def choose(place: Place, entry: Entry) -> None:
    """Export both policies and ask them the same questions of a world that neither saw; the better one is kept."""
    from train.checkpoints.export import export_checkpoint

    scores: dict[str, Scores] = {}
    for name in (BEFORE, AFTER):
        hub, folder = place.out / name / HUB, place.out / "dev" / name
        if not hub.is_dir():
            continue
        export_checkpoint(hub, folder / EXPORTED, "int8", name=place.recipes.tiny.name)
        world = str(place.out / FOLDER / "dev")
        scores[name] = _evaluated(place, folder / EXPORTED, world, folder / "eval", limit=0)
        entry.figures |= _main(scores[name], f"{name}_")
    best = max(scores, key=lambda name: (scores[name]["em"], scores[name]["f1"], name == BEFORE))
    entry.figures["best"] = best
    told = [f"{label} {scores[name]['em']:.3f}" for name, label in _LABELS.items() if name in scores]
    entry.said = f"EM {', '.join(told)} of {scores[best]['n']} questions; kept: {_LABELS[best]}"


_LABELS: Final = {BEFORE: "before RL", AFTER: "after RL"}


def export(place: Place, entry: Entry) -> None:
    """Put the better policy where `--model` finds it, in the hub's form and in int8."""
    from train.checkpoints.export import export_checkpoint

    best = str(place.figure("dev", "best"))
    shutil.copytree(place.out / best / HUB, place.out / HUB, dirs_exist_ok=True)
    made = export_checkpoint(place.out / HUB, place.out / EXPORTED, "int8", name=place.recipes.tiny.name)
    size = sum((place.out / EXPORTED / file).stat().st_size for file in made.manifest.files)
    entry.figures["megabytes"] = round(size / 1e6, 2)
    entry.said = f"int8, {size / 1e6:.1f} MB, speaks {', '.join(made.manifest.protocols)}"


def test(place: Place, entry: Entry) -> None:
    """Ask what is exported the questions of the test list, once, and write the results into its card."""
    from train.checkpoints.card import with_results, write_card

    tiny = place.recipes.tiny
    scores = _evaluated(place, place.out, tiny.test, place.out / "test", limit=tiny.test_questions)
    entry.figures |= _main(scores)
    entry.figures |= {f"em_{kind}": group["em"] for kind, group in scores["by_type"].items()}
    low, high = scores["em_interval"]
    entry.said = f"EM {scores['em']:.3f} ({low:.3f} – {high:.3f}), F1 {scores['f1']:.3f}, {scores['n']} questions"
    results = {f"{tiny.test}, {place.recipes.sft.protocols[0]}": scores}
    for folder in (place.out / HUB, place.out / EXPORTED):
        if place.figure("dev", "best") == AFTER:
            with_results(place.out / "rl", results, folder)
        else:
            write_card(place.out / "sft", place.recipes.sft, results, folder, file=f"train/recipes/{tiny.sft}")


def serve(place: Place, entry: Entry) -> None:
    """Start what was made as a person would, and ask it one question of the world that it is served with."""
    from agent.world import load_world
    from train.evaluation.questions import world_questions

    world = place.out / FOLDER / "served"
    question = world_questions(load_world(world).questions)[0]
    place.watch.show(0, 1, "question")
    said = ask_started(place.out, world, question)
    entry.figures |= {"question": said.question, "answer": said.answer, "gold": said.gold}
    entry.figures |= {"start_seconds": said.start_seconds, "answer_seconds": said.answer_seconds}
    verdict = "right" if said.right else f"the answer is {said.gold}"
    entry.said = f"asked: {said.question} It said: {said.answer.strip()} ({verdict})"


STAGES: Final = (
    Stage("worlds", "worlds", worlds, (FOLDER,), f"{FOLDER}/served/world.json"),
    Stage("sft", "SFT", sft, ("sft",), "sft/hub/model.safetensors"),
    Stage("rl", "reinforcement learning", rl, ("rl",), "rl/manifest.json"),
    Stage("dev", "dev, before and after RL", choose, ("dev",), f"dev/{BEFORE}/eval/report.json"),
    Stage("export", "export", export, (HUB, EXPORTED), f"{EXPORTED}/cairn.json"),
    Stage("test", "test", test, ("test",), "test/report.json"),
    Stage("serve", "served agent", serve, (), f"{EXPORTED}/cairn.json"),
)


def _evaluated(place: Place, model: Path, world: str, out: Path, *, limit: int) -> "Scores":
    """Ask a policy the questions of a world; what was answered before an interruption is not asked again."""
    from agent.settings import load_settings
    from train.evaluation.chosen import Choice
    from train.evaluation.session import Evaluation

    settings = load_settings(Path(devnull), model=str(model), world=world)

    def hear(so_far: "SoFar") -> None:
        em = "–" if so_far.em is None else f"{so_far.em:.3f}"
        place.watch.show(so_far.done, so_far.total, "questions", f"EM {em}")

    scores = Evaluation(settings, choice=Choice(limit=limit or None), out=out).run(hear)
    if not scores["n"]:
        raise SetupError(f"no question of {world} could be scored: {scores['failures']}")
    return scores


def _main(scores: "Scores", prefix: str = "") -> Figures:
    low, high = scores["em_interval"]
    plain = {"em": scores["em"], "em_low": low, "em_high": high, "f1": scores["f1"], "n": float(scores["n"])}
    return {f"{prefix}{name}": value for name, value in plain.items()}
