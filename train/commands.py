"""`cairn train` and `cairn checkpoint`. Torch is imported only by a command that needs it."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.console import note, output
from agent.errors import SetupError
from train.checkpoints import commands as commands_checkpoint
from train.common.interrupt import check_folder, stopped_early
from train.common.progress import bar_of, print_trained, step_progress
from train.distill import commands as distill_commands

if TYPE_CHECKING:
    from train.common.process_group import ProcessGroup
    from train.common.recipe import SftRecipe
    from train.ppo.run import PpoRun
    from train.rl.run import RlRun
    from train.sft.run import SftProgress, SftRun


OutOption = Annotated[Path, typer.Option("--out", help="Folder of the run.")]
StartOption = Annotated[
    str | None, typer.Option("--start", help="A checkpoint in the hub's form to begin from, instead of the recipe's.")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")]
ThreadsOption = Annotated[int, typer.Option("--threads", min=0, help="CPU threads in total; 0: torch chooses.")]


train_app = typer.Typer(no_args_is_help=True, help="Train a policy.")
checkpoint_app = typer.Typer(no_args_is_help=True, help="Checkpoints: card, export, push.")


@train_app.command("sft")
def sft(
    recipe: Annotated[Path, typer.Option(help="What to train, as TOML: see train/recipes/.")],
    out: OutOption,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|NAME",
            help="Start from this instead of the recipe's start: a folder in the hub's form or of an adapter, a name "
            "on the hub or of `cairn model list`.",
        ),
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Learn from these rows of `cairn data trajectories` or `train distill`."),
    ] = None,
    adapter: Annotated[
        str,
        typer.Option(
            metavar="RANK|none", help="Train an adapter of this rank beside the start's weights; none: all weights."
        ),
    ] = "",
    resume: ResumeOption = False,
    threads: ThreadsOption = 0,
    processes: Annotated[
        int,
        typer.Option(min=1, help="Processes that share the batches of a step; at most the recipe's batches_per_step."),
    ] = 1,
    shard: Annotated[
        bool, typer.Option("--shard", help="Each of the processes holds a share of the weights (FSDP2), not a copy.")
    ] = False,
) -> None:
    """Train a policy on trajectories, from nothing or from a checkpoint, on CPUs or any GPU that torch sees.

    Before the first step it prints how much memory and time the run will need. Ctrl-C stops after the current step and
    saves; --resume continues and ends in the same weights.

    Example: cairn train sft --recipe train/recipes/tiny_sft.toml --out runs/tiny

    Example: cairn train sft --recipe train/recipes/small.toml --start HuggingFaceTB/SmolLM2-135M-Instruct --rows
    rows.jsonl --out runs/small
    """
    import torch

    from train.common.process_group import run_in_processes
    from train.common.recipe import read_recipe
    from train.sft.sharding import check_sharded
    from train.sft.states import is_begun

    if threads:
        torch.set_num_threads(threads)
    settings = read_recipe(recipe, start=start, rows=rows, adapter=adapter)
    if processes > settings.optimizer.batches_per_step:
        most = settings.optimizer.batches_per_step
        raise SetupError(f"--processes {processes} is too many: batches_per_step of {recipe} is {most}")
    if shard:
        check_sharded(settings, processes)
    check_folder(out, begun=is_begun(out), resume=resume)
    run_in_processes(processes, _train, settings, out, resume, shard)


def _train(process_group: "ProcessGroup", settings: "SftRecipe", out: Path, resume: bool, sharded: bool) -> None:
    """What each process of a run does; the first one shows its progress."""
    from train.sft.run import SftRun

    run = SftRun(settings, out, process_group, sharded=sharded)
    first = process_group.is_main_process
    if resume:
        run.resume()
    if run.done:
        if first:
            note(f"the run in {out} has seen all its tokens; nothing is left to do")
    else:
        _foretell(run)
        if not (_watched(run) if first else run.run(lambda _: None)):
            if first:
                raise stopped_early(out)
            return
    hub = run.save_hub()
    if first:
        print_trained(hub)


def _foretell(run: "SftRun") -> None:
    """Print what the run will need: memory before anything large is computed, then time."""
    from train.sft.needs import sentences_of, speed_of

    if run.process_group.is_main_process:
        for sentence in sentences_of(run):
            note(sentence)
    speed = speed_of(run)
    if run.process_group.is_main_process:
        note(speed.sentence())


def _watched(run: "SftRun") -> bool:
    """Run with a progress bar over tokens."""
    with bar_of("k tokens") as bar:
        task = bar.add_task("training", total=run.recipe.optimizer.tokens // 1000, completed=run.place.tokens // 1000)
        held_out = ""

        def on_progress(progress: "SftProgress") -> None:
            nonlocal held_out
            if progress.dev_trajectories_right is not None:
                held_out = f", dev {progress.dev_trajectories_right:.3f}"
            said = f"step {progress.step}: loss {progress.policy_loss:.3f}, right {progress.accuracy:.3f}{held_out}"
            bar.update(task, completed=progress.tokens // 1000, description=said)

        return run.run(on_progress)


@train_app.command("rl")
def rl(
    recipe: Annotated[Path, typer.Option(help="What to train, as TOML: see train/recipes/ and docs/training.md.")],
    out: OutOption,
    start: StartOption = None,
    resume: ResumeOption = False,
    threads: ThreadsOption = 0,
) -> None:
    """Train a policy with reinforcement learning: GRPO, GDPO or DAPO over rollouts of the agent itself.

    Ctrl-C stops after the current step and saves; --resume goes on from the newest state, also after a kill.

    Example: cairn train rl --recipe train/recipes/tiny_grpo.toml --start runs/weak/hub --out runs/grpo
    """
    from train.rl.recipe import read_rl_recipe

    settings = read_rl_recipe(recipe, start=start)
    import torch

    from train.common.process_group import leave
    from train.rl.run import RlRun

    if threads:
        torch.set_num_threads(threads)
    run = RlRun(settings, out, threads=threads)
    if not _watched_steps(run, lambda step: f"searches {step.get('search/mean', 0):.2f}", resume=resume):
        raise stopped_early(out)
    print_trained(out / "hub")
    leave()


def _watched_steps(run: "RlRun | PpoRun", says: Callable[[Mapping[str, float]], str], *, resume: bool) -> bool:
    """Run with a progress bar over steps, and what the figures of the last one say."""
    with step_progress(run.recipe.steps, run.table) as show:
        dev = ""

        def on_step(step: int, figures: Mapping[str, float]) -> None:
            nonlocal dev
            if "trainer/dev_em" in figures:
                dev = f", dev EM {figures['trainer/dev_em']:.3f}"
            show(step, f"reward {figures.get('reward/total', math.nan):.3f}, {says(figures)}{dev}")

        return run.go(on_step, resume=resume)


@train_app.command("ppo")
def ppo(
    recipe: Annotated[Path, typer.Option(help='What to train, as TOML with kind = "ppo": see train/recipes/.')],
    out: OutOption,
    start: StartOption = None,
    resume: ResumeOption = False,
    threads: ThreadsOption = 0,
) -> None:
    """Train a policy with PPO and a critic, as a baseline for the group algorithms of `cairn train rl`.

    The rollouts and rewards are the same; only the learning differs. One process, one device.
    Ctrl-C stops after the current step and saves; --resume continues from the newest state, also after a kill.

    Example: cairn train ppo --recipe train/recipes/tiny_ppo.toml --start runs/weak/hub --out runs/ppo
    """
    from train.ppo.recipe import read_ppo_recipe

    settings = read_ppo_recipe(recipe, start=start)
    import torch
    from transformers.utils import logging

    from train.ppo.run import PpoRun

    logging.disable_progress_bar()  # the terminal has ours

    if threads:
        torch.set_num_threads(threads)
    run = PpoRun(settings, out, threads=threads)
    if not _watched_steps(run, lambda step: f"entropy {step.get('trainer/entropy', math.nan):.3f}", resume=resume):
        raise stopped_early(out)
    print_trained(out / "hub")


@train_app.command("iterate")
def iterate(
    recipe: Annotated[Path, typer.Option(help='Rounds, as TOML with kind = "iterate": see train/recipes/.')],
    out: OutOption,
    start: StartOption = None,
    resume: ResumeOption = False,
    threads: ThreadsOption = 0,
) -> None:
    """Train a policy on its own good rollouts, round after round (expert iteration).

    A round samples rollouts, keeps those that a check accepts, trains on them, and answers dev questions; the best
    round by dev is kept. --resume repeats nothing that is finished, also after a kill.

    Example: cairn train iterate --recipe train/recipes/tiny_iterate.toml --start runs/weak/hub --out runs/iterate
    """
    from train.iterate.recipe import read_iterate_recipe

    settings = read_iterate_recipe(recipe, start=start)
    import torch

    from train.iterate.record import REPORT, table_of
    from train.iterate.run import IterateRun

    if threads:
        torch.set_num_threads(threads)
    run = IterateRun(settings, out, threads=threads)
    with bar_of("") as bar:
        task = bar.add_task("", total=None)

        def show(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        finished = run.go(show, resume=resume)
    if not finished:
        raise stopped_early(out)
    output().print(table_of(run.records))
    output().print(f"written: {out / REPORT}")
    print_trained(out / "hub")


@checkpoint_app.command("card")
def card(
    run: Annotated[Path, typer.Argument(help="Folder of the training run.")],
    recipe: Annotated[Path, typer.Option(help="The recipe it was trained by.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the checkpoint; README.md is written there.")],
    result: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE, where FILE holds what `cairn eval --json` printed.")
    ] = None,
    remark: Annotated[str, typer.Option("--note", help="What else a reader must know, as a paragraph.")] = "",
) -> None:
    """Write a checkpoint's card: recipe, seeds, tokens, time, curves, results.

    Where the folder holds the hub's form, its cairn.json is written, too: with it, --model DIR is enough to serve it.
    A run of reinforcement learning wrote both with its model; then the results are put behind its card.

    Example: cairn checkpoint card runs/tiny --recipe train/recipes/tiny_sft.toml --out runs/tiny/hub
    """
    from train.checkpoints.card import with_results, write_card
    from train.checkpoints.export import describe
    from train.common.recipe import read_recipe
    from train.common.recipe_files import kind_of

    results: dict[str, dict[str, float]] = {}
    for named in result or []:
        name, _, file = named.partition("=")
        try:
            results[name] = json.loads(Path(file).read_text(encoding="utf-8"))
        except (OSError, json.JSONDecodeError) as error:
            raise SetupError(f"--result {named!r} cannot be read ({error}): write NAME=FILE") from error
    if kind_of(recipe) in {"rl", "ppo"}:
        made = with_results(run, results, out, note=remark)
    else:
        settings = read_recipe(recipe)
        made = write_card(run, settings, results, out, note=remark, file=recipe.as_posix())
        for hub in (out, out / "hub"):
            if (hub / "tokenizer_config.json").is_file():
                describe(hub, name=settings.name, protocols=settings.protocols)
    output().print(f"written: {made}")


def register(app: typer.Typer) -> None:
    """Add `train` and `checkpoint`."""
    distill_commands.register(train_app)
    app.add_typer(train_app, name="train")
    commands_checkpoint.register(checkpoint_app)
    app.add_typer(checkpoint_app, name="checkpoint")
