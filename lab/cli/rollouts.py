"""`cairn bench rollouts`: the rollout phase of RL, beside plain generation with serial searches."""

import platform
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from agent.cli.console import note, output
from lab.cli.bench import bench_app
from lab.report import ReportTable, print_report, write_report

if TYPE_CHECKING:
    from lab.benchmarks.rollouts import Phase, Step

REPORT: Final = Path("docs/bench/rollouts.md")
CODE: Final = (
    "agent/policies/torch_engine.py",
    "agent/policies/torch_batch.py",
    "agent/policies/torch_rows.py",
    "lab/benchmarks/rollouts.py",
)
"""What the figures depend on."""
_HEAD: Final = (
    "searches take",
    "way",
    "seconds",
    "rollouts",
    "policy tokens",
    "searches",
    "their seconds",
    "mean reward",
    "times faster",
)

_WAYS: Final = (
    "One batch of the recipe, from the same checkpoint, on the same world, in two ways. *Ours*: every rollout at once "
    "in the recipe's engine, weights handed over first, searches beside generation. *Plain*: a usual `rollout_func`: "
    "all contexts wait for each other's turns, `model.generate` reads each of them again, and one search follows the "
    "other. *Their seconds* are those of all searches added up: plain generation stands still for them, ours goes on "
    "beside them, and they beside each other. Both sample at temperature 1, so the texts differ. Each way runs "
    "several times (`--times`), by turns; shown is the batch with the median time."
)
_PARTS: Final = (
    "*Rollouts* holds generation, searches (which overlap it and each other) and rewards; *refresh* hands the weights "
    "to the engine; *update* is forward, backward and the optimiser."
)


@bench_app.command("rollouts")
def rollouts(
    *,
    recipe: Annotated[Path, typer.Option(help="An RL recipe: its start, questions, batch and engine.")] = Path(
        "train/recipes/tiny_grpo.toml"
    ),
    start: Annotated[str | None, typer.Option(help="A checkpoint instead of the recipe's.")] = None,
    search_ms: Annotated[list[float] | None, typer.Option(help="What a search takes; may be repeated.")] = None,
    threads: Annotated[int, typer.Option(min=0, help="CPU threads; 0 leaves the choice to torch.")] = 0,
    times: Annotated[int, typer.Option(min=1, help="Batches of each way; the one with the median time counts.")] = 3,
    write: Annotated[bool, typer.Option("--write", help=f"Write the table to {REPORT}, too.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as one object.")] = False,
) -> None:
    """Run one batch of rollouts of an RL recipe in two ways, and a few whole steps.

    Ours: all rollouts at once, in the engine of the recipe, searches beside
    generation. Plain: batched generation turn by turn, every context read again,
    one search after the other.

    Example: cairn bench rollouts --search-ms 0 --search-ms 100
    """
    import torch

    from lab.benchmarks.rollouts import phases, whole_step
    from train.rl.recipe import read_rl_recipe

    if threads:
        torch.set_num_threads(threads)
    settings = read_rl_recipe(recipe, start=start)
    note(f"three steps, then {2 * times} batches of rollouts for each time of a search: minutes on a CPU")
    step = whole_step(settings, threads=threads)  # first: it refuses what cannot be trained
    found = phases(settings, search_ms=search_ms or [0.0, 100.0], threads=threads, times=times)
    if write:
        write_report(REPORT, _report(found, step, recipe), code=CODE)
    figures = {
        "phases": [asdict(phase) for phase in found],
        "step_seconds": dict(step.parts),
        "step_searching": step.searching,
        **_ratios(found),
    }
    print_report([_table(found)], figures, as_json=json)
    if not json:
        output().print(f"a whole step: {_step_line(step)}")


def _ratios(found: "list[Phase]") -> dict[str, float]:
    """Times faster, by what a search takes."""
    pairs = {phase.search_ms: phase.seconds for phase in found if phase.way == "ours"}
    return {
        f"ratio_{phase.search_ms:g}ms": phase.seconds / pairs[phase.search_ms]
        for phase in found
        if phase.way == "plain"
    }


def _table(found: "list[Phase]") -> ReportTable:
    ratios = _ratios(found)
    rows = [
        (
            f"{phase.search_ms:g} ms",
            phase.way,
            f"{phase.seconds:.1f}",
            str(phase.rollouts),
            f"{phase.policy_tokens:,}",
            str(phase.searches),
            f"{phase.searching:.1f}",
            f"{phase.reward:.3f}",
            f"{ratios[f'ratio_{phase.search_ms:g}ms']:.1f}" if phase.way == "ours" else "",
        )
        for phase in found
    ]
    return ReportTable(_HEAD, rows, title="the rollout phase")


def _step_line(step: "Step") -> str:
    whole = sum(step.parts.values()) or 1.0
    parts = (f"{name} {spent:.1f} s ({spent / whole:.0%})" for name, spent in step.parts.items() if spent > 0.005)
    return f"{', '.join(parts)}; all its searches together took {step.searching:.2f} s"


def _report(found: "list[Phase]", step: "Step", recipe: Path) -> str:
    return f"""# Rollouts

`cairn bench rollouts --recipe {recipe.as_posix()} --write`; Python {platform.python_version()}.

{_WAYS}

{_table(found).markdown()}

A whole step of a run, the third one: {_step_line(step)}. {_PARTS}
"""
