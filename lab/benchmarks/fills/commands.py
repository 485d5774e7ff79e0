"""`cairn bench fills`: chains in one round with fills, beside one round for each hop."""

import asyncio
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from agent.cli.console import messages
from lab.cli.bench import bench_app
from lab.report import ReportTable, print_report, write_report

if TYPE_CHECKING:
    from lab.benchmarks.fills.measure import FillsWay

REPORT: Final = Path("docs/bench/fills.md")
CODE: Final = (
    "agent/loop/search_round.py",
    "agent/loop/loop.py",
    "agent/world",
    "lab/benchmarks/fills",
)
"""What the figures depend on."""
Policy = Literal["oracle", "embedded"]
_WHO: Final[dict[Policy, str]] = {
    "oracle": """## The oracle's script

The oracle writes every turn: the right plan in either way, spelled in the tokens of the shipped checkpoint. So EM \
says whether the way can answer, not how well a model goes it.""",
    "embedded": """## The shipped policy

The oracle writes the first turn in either way, the shipped policy everything behind it. So EM says how well a model \
goes a plan that it was given; what it plans by itself this does not say. Its tokens take the time that they take.""",
}
_HEAD: Final = ("hops", "way", "EM", "rounds", "searches", "policy tokens", "context tokens", "median s", "p95 s")


@bench_app.command("fills")
def fills(
    *,
    policy: Annotated[
        Literal["oracle", "embedded", "both"],
        typer.Option(help="Who answers; the first turn is the oracle's in any case."),
    ] = "both",
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Of the embedded policy; its tokenizer counts for the oracle, too."),
    ] = None,
    world: Annotated[str, typer.Option(help="A little world with questions.")] = "test-v2",
    limit: Annotated[int, typer.Option(min=0, help="Questions of each number of hops; 0: all.")] = 0,
    token_ms: Annotated[float, typer.Option(min=0, help="What a token of the oracle takes.")] = 10.0,
    search_ms: Annotated[float, typer.Option(min=0, help="What a search takes.")] = 200.0,
    at_once: Annotated[int, typer.Option(min=1, help="Rollouts at the same time.")] = 8,
    write: Annotated[bool, typer.Option("--write", help=f"Write the table to {REPORT}, too.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as one object.")] = False,
) -> None:
    """Ask chains of the little world in one round with fills, and hop by hop.

    The oracle writes the right plan in both ways, in the tokens of the shipped
    checkpoint; the loop, the searches and the fills are real. With the embedded
    policy the first turn is the oracle's and the rest is the model's own.

    Example: cairn bench fills --limit 20
    """
    who: tuple[Policy, ...] = ("oracle", "embedded") if policy == "both" else (policy,)
    pace = token_ms / 1000, search_ms / 1000
    found: dict[Policy, list[FillsWay]] = {
        name: asyncio.run(_measure(name, checkpoint, world, limit, *pace, at_once)) for name in who
    }
    if write:
        call = f"cairn bench fills --policy {policy} --world {world} --token-ms {token_ms:g} --search-ms {search_ms:g}"
        write_report(REPORT, _report(found, f"{call} --at-once {at_once} --write"), code=CODE)
    figures = {name: {"ways": [asdict(way) for way in ways]} | _summary(ways) for name, ways in found.items()}
    print_report([_table(ways, f"{name}, {world}") for name, ways in found.items()], figures, as_json=json)


def _table(ways: "Sequence[FillsWay]", title: str = "") -> ReportTable:
    return ReportTable(_HEAD, [_row(way) for way in ways], title=title)


async def _measure(
    policy: Policy,
    checkpoint: Path | None,
    world: str,
    limit: int,
    token_seconds: float,
    search_seconds: float,
    at_once: int,
) -> "list[FillsWay]":
    from agent.build.shipped import newest_checkpoint
    from agent.policies.checkpoint import open_checkpoint
    from agent.policies.embedded import EmbeddedPolicy
    from agent.world import load_world
    from lab.benchmarks.fills.measure import OraclePace, measure

    folder = checkpoint or newest_checkpoint()
    engine = EmbeddedPolicy.load(folder) if policy == "embedded" else None
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    try:
        with Progress(*columns, console=messages(), transient=True) as bar:
            task = bar.add_task("rollouts", total=None)
            return await measure(
                load_world(world),
                codec=open_checkpoint(folder).codec,
                pace=OraclePace(token_seconds, search_seconds),
                policy=engine,
                limit=limit,
                at_once=at_once,
                progress=lambda done, of: bar.update(task, completed=done, total=of),
            )
    finally:
        if engine is not None:
            await engine.aclose()


def _summary(ways: "list[FillsWay]") -> dict[str, float]:
    """Of the questions of two hops: fills beside hop by hop."""
    pair = {way.fills: way for way in ways if way.hops == 2}
    if len(pair) < 2:
        return {}
    hop, fill = pair[False], pair[True]
    return {
        "em_hop_by_hop": hop.em,
        "em_fills": fill.em,
        "tokens_ratio": fill.policy_tokens / hop.policy_tokens,
        "seconds_ratio": fill.seconds_p50 / hop.seconds_p50,
    }


def _row(way: "FillsWay") -> tuple[str, ...]:
    name = "one round with fills" if way.fills else "one round a hop"
    figures = (way.rounds, way.searches)
    return (
        str(way.hops),
        name,
        f"{way.em:.3f}",
        *(f"{figure:.2f}" for figure in figures),
        f"{way.policy_tokens:.0f}",
        f"{way.context_tokens:.0f}",
        f"{way.seconds_p50:.2f}",
        f"{way.seconds_p95:.2f}",
    )


def _report(found: "Mapping[Policy, Sequence[FillsWay]]", call: str) -> str:
    both = "\n\n".join(f"{_WHO[name]}\n\n{_table(ways).markdown()}" for name, ways in found.items())
    counts = ", ".join(
        f"{way.n} questions of {way.hops} hops ({way.planned} of them planned in both ways)"
        for way in next(iter(found.values()))
        if way.fills
    )
    return f"""# Fills

`{call}`; Python {platform.python_version()}.

Chains of the little world: {counts}. The loop, the searches, the fills and their branches are real rollouts.

EM is over all questions; a question for which the oracle has no right turns counts as wrong. The other figures are \
means over the questions that are planned in both ways. *Policy tokens* are all that the policy sampled, fills \
included; *context tokens* are those of the rollout's own context at its end, which is what every later turn reads.

{both}
"""
