"""`cairn bench sft`: supervised training of an adapter, beside TRL's trainer."""

import platform
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from agent.cli.console import messages, note, output
from lab.cli.bench import bench_app
from lab.report import ReportTable, print_report, write_report

if TYPE_CHECKING:
    from lab.benchmarks.sft import SftFigures, SftPlan

REPORT: Final = Path("docs/bench/sft.md")
CODE: Final = ("train/sft/run.py", "train/models/pretrained.py", "train/models/attention.py", "lab/benchmarks/sft.py")
"""What the figures depend on."""
_HEAD: Final = ("way", "tokens a second", "from", "to", "padding", "loss before", "loss after", "times as fast")
_WAYS: Final = (
    "The same rows, once each, from the same weights with the same new adapter, in the same precision, with the same "
    "optimizer and as many rows in a step; none recomputes layers. *Ours*: `cairn train sft`, whose batches hold rows "
    "of like length, which attends block by block on a CPU, and makes logits for the policy's tokens alone. *TRL*: "
    "`SFTTrainer` with peft as it comes, with labels for the same tokens. *TRL, by length*: with "
    '`train_sampling_strategy="group_by_length"`. A token is one of a row; padding is not counted. The first step of '
    "each run is not timed. Each way is run several times (`--times`), by turns; the middle one is reported, with the "
    "slowest and the fastest. *Loss*: of the policy's tokens of rows that were not trained on."
)


@bench_app.command("sft")
def sft(
    *,
    rows: Annotated[Path, typer.Option(metavar="FILE", help="Of `cairn data trajectories` or `train distill`.")],
    start: Annotated[
        str, typer.Option(metavar="DIR|NAME", help="The model that gets the adapter.")
    ] = "smollm2-135m-instruct",
    rank: Annotated[int, typer.Option(min=1, help="Of the adapter.")] = 16,
    steps: Annotated[int, typer.Option(min=1, help="That are timed; one more comes before them.")] = 4,
    batch_tokens: Annotated[int, typer.Option(min=64, help="Of each of the two batches of a step.")] = 4096,
    max_tokens: Annotated[int, typer.Option(min=64, help="Longer rows are left out.")] = 2600,
    lr: Annotated[float, typer.Option(min=0, help="Of the adapter's weights.")] = 5e-4,
    float32: Annotated[bool, typer.Option("--float32", help="Compute in float32, not in bfloat16.")] = False,
    threads: Annotated[int, typer.Option(min=0, help="CPU threads; 0 leaves the choice to torch.")] = 0,
    times: Annotated[int, typer.Option(min=1, help="Each way so often; the middle one is reported.")] = 5,
    write: Annotated[bool, typer.Option("--write", help=f"Write the table to {REPORT}, too.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as one object.")] = False,
) -> None:
    """Train an adapter on the same rows with `cairn train sft` and with TRL's SFTTrainer, by turns.

    Example: cairn bench sft --rows rows.jsonl --threads 2
    """
    import torch

    from lab.benchmarks.sft import BOUND, WAYS, SftPlan, measure, same_loss

    if threads:
        torch.set_num_threads(threads)
    plan = SftPlan(
        start=start,
        rows=rows,
        rank=rank,
        steps=steps,
        batch_tokens=batch_tokens,
        max_tokens=max_tokens,
        lr=lr,
        bf16=not float32,
    )
    note(f"{times * len(WAYS)} runs of {steps + 1} steps: for 135 M parameters half an hour on a CPU")
    columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=messages(), transient=True, disable=not messages().is_terminal) as bar:
        task = bar.add_task("", total=times * len(WAYS))
        found = measure(plan, times=times, report=lambda done: bar.update(task, completed=done))
    ratios = _ratios(found)
    holds, alike = ratios["trl"] >= BOUND, same_loss(found)
    if write:
        write_report(REPORT, _report(found, plan, times, torch.get_num_threads(), alike=alike), code=CODE)
    ways = [asdict(one) | {"middle": one.middle} for one in found]
    figures = {"ways": ways, "ratios": ratios, "bound": BOUND, "holds": holds, "same_loss": alike}
    print_report([_table(found)], figures, as_json=json)
    if not json:
        output().print(f"{'at least' if holds else 'less than'} {BOUND} times as fast as TRL as it comes")
        output().print("all have learned alike" if alike else "they have not learned alike: compare nothing")


def _ratios(found: "list[SftFigures]") -> dict[str, float]:
    """Ours over each other way."""
    ours = next(one.middle for one in found if one.way == "ours")
    return {one.way: ours / one.middle for one in found if one.way != "ours"}


def _table(found: "list[SftFigures]") -> ReportTable:
    ratios = _ratios(found)
    rows = [
        (
            one.way,
            f"{one.middle:,.0f}",
            f"{min(one.tokens_per_second):,.0f}",
            f"{max(one.tokens_per_second):,.0f}",
            f"{one.padding:.0%}",
            f"{one.before:.3f}",
            f"{sorted(one.after)[len(one.after) // 2]:.3f}",
            f"{ratios[one.way]:.2f}" if one.way in ratios else "",
        )
        for one in found
    ]
    return ReportTable(_HEAD, rows, title="supervised training of an adapter")


def _report(found: "list[SftFigures]", plan: "SftPlan", times: int, threads: int, *, alike: bool) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "trl", "peft"))
    flag, precision = ("", "bfloat16") if plan.bf16 else (" --float32", "float32")
    learned = "All have learned alike." if alike else "They have not learned alike, so the figures compare nothing."
    return f"""# Supervised training

`cairn bench sft --start {plan.start} --rows {plan.rows.name} --rank {plan.rank} --steps {plan.steps} \
--batch-tokens {plan.batch_tokens} --max-tokens {plan.max_tokens} --lr {plan.lr:g} --times {times} \
--threads {threads}{flag} --write`; {precision}, Python {platform.python_version()}, {versions}.

{_WAYS}

{_table(found).markdown()}

*Times as fast*: ours over that way. {learned}
"""
