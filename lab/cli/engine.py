"""`cairn bench engine`: what our loop costs over vLLM."""

import asyncio
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from agent.cli.console import messages
from agent.cores import cores
from lab.cli.bench import bench_app
from lab.report import ReportTable, print_report, write_report
from lab.shipped import HUB

if TYPE_CHECKING:
    from lab.benchmarks.engine import EngineRow

REPORT: Final = Path("docs/bench/engine.md")
CODE: Final = (
    "agent/loop/loop.py",
    "agent/loop/context.py",
    "agent/policies/vllm.py",
    "agent/policies/vllm_engine.py",
    "lab/benchmarks/engine.py",
)
"""What the figures depend on."""
_COLUMNS: Final = (
    "rollouts at once",
    "our loop, tokens/s",
    "AsyncLLM alone",
    "ratio",
    "lowest",
    "bound",
    "CPU µs a token, ours",
    "alone",
)


@bench_app.command("engine")
def engine(
    model: Annotated[
        Path | None, typer.Option(metavar="DIR", help="In the hub's form; left out, the shipped checkpoint.")
    ] = None,
    *,
    rollouts: Annotated[str, typer.Option(metavar="N,N", help="How many at once; a row each.")] = "1,8,32",
    repeats: Annotated[int, typer.Option(min=1, help="Of each row; medians are shown.")] = 7,
    world: Annotated[str, typer.Option(metavar="NAME", help="The little world of the questions.")] = "test-v2",
    protocol: Annotated[str, typer.Option(metavar="NAME", help="One that the checkpoint was trained on.")] = "cairn",
    dtype: Annotated[str, typer.Option(metavar="NAME", help="float32 or bfloat16.")] = "float32",
    write: Annotated[bool, typer.Option("--write", help=f"Write the table to {REPORT}, too.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as one object.")] = False,
) -> None:
    """Run whole rollouts on vLLM, and let vLLM alone replay their very turns, by turns.

    Searches are answered at once from a recording, so that only the engine
    and the loop count. Both sides read the same prompts, sample as many
    tokens, and stream each of them. It needs vLLM (docs/engines.md).

    Example: cairn bench engine --rollouts 8 --repeats 3
    """
    rows = _measure(model, _numbers(rollouts), repeats=repeats, world=world, protocol=protocol, dtype=dtype)
    if write:
        write_report(REPORT, _report(rows), code=CODE)
    ratios = {f"ratio_{row.rollouts}": row.ratio for row in rows}
    figures = ratios | {"rows": [asdict(row) for row in rows], "holds": all(row.holds for row in rows)}
    print_report([_table(rows)], figures, as_json=json)


def _table(rows: "Sequence[EngineRow]") -> ReportTable:
    return ReportTable(_COLUMNS, [_cells(row) for row in rows])


def _measure(
    model: Path | None, rollouts: Sequence[int], *, repeats: int, world: str, protocol: str, dtype: str
) -> "list[EngineRow]":
    from agent.build.agent import VLLM_ENVIRONMENT
    from agent.policies.vllm import VllmPolicy
    from agent.protocols import protocol_named
    from agent.settings import default_environment
    from agent.world import load_world
    from lab.benchmarks.engine import measure

    default_environment(VLLM_ENVIRONMENT)
    loaded = load_world(world)
    folder = model or HUB
    policy = VllmPolicy.load(str(folder), dtype=dtype, enforce_eager=True, kv_cache_memory_bytes=1 << 30)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()

    async def work(bar: Progress) -> "list[EngineRow]":
        task = bar.add_task("pairs", total=len(rollouts) * repeats)
        try:
            return await measure(
                policy,
                protocol=protocol_named(protocol),
                sources=dict(loaded.sources()),
                questions=[question.question for question in loaded.questions],
                rollouts=rollouts,
                repeats=repeats,
                progress=lambda done: bar.update(task, completed=done),
            )
        finally:
            await policy.aclose()

    with Progress(*columns, console=messages(), transient=True) as bar:
        return asyncio.run(work(bar))


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise typer.BadParameter("write numbers with commas between, as 1,8,32", param_hint="--rollouts") from error
    if min(numbers) < 1:
        raise typer.BadParameter("at least one rollout runs", param_hint="--rollouts")
    return numbers


def _cells(row: "EngineRow") -> tuple[str, ...]:
    from lab.benchmarks.engine import bound

    return (
        str(row.rollouts),
        f"{row.ours:,.0f}",
        f"{row.alone:,.0f}",
        f"{row.ratio:.3f}",
        f"{row.worst:.3f}",
        f"{bound(row.rollouts):.2f} {'met' if row.holds else 'not met'}",
        f"{row.ours_us:.0f}",
        f"{row.alone_us:.0f}",
    )


def _report(rows: "Sequence[EngineRow]") -> str:
    tokens = ", ".join(f"{row.tokens:,}" for row in rows)
    return f"""# The loop over vLLM

`cairn bench engine --repeats {rows[0].repeats} --write`; Python {platform.python_version()}, {cores()} cores, \
vLLM on a CPU.

Whole rollouts of the shipped checkpoint ({tokens} tokens sampled in one repeat), and AsyncLLM alone, which replays \
their very turns on the same engine: the same prompt ids, as many tokens, streamed one by one, with log-probabilities. \
Searches are answered at once from a recording. The two sides take turns, each beginning with an empty prefix cache; \
each column is a median of its own over {rows[0].repeats} repeats: the ratio is that of each repeat's own pair of \
times, so it isn't the quotient of the two columns before it. The lowest ratio is that of all repeats. CPU time is \
that of the process that holds the loop and AsyncLLM's front end, on all its threads.

{_table(rows).markdown()}
"""
