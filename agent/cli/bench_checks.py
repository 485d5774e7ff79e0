"""`cairn bench checks`: how well claims are checked against the passages that they cite."""

import asyncio
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.table import Table

from agent.cli.bench import bench_app
from agent.cli.console import messages, note, output, print_json, write_report
from agent.cores import cores
from agent.errors import SetupError

if TYPE_CHECKING:
    from agent.bench.checks import Figures

REPORT: Final = Path("docs/bench/checks.md")
CODE: Final = (
    "agent/checks",
    "agent/claims.py",
    "agent/bench/checks.py",
    "agent/bench/claim_wordings.py",
)
"""What the figures depend on."""
ROLLOUTS: Final = 20


@bench_app.command("checks")
def checks(
    traces: Annotated[int, typer.Option(min=1, help="How many traces of the frozen test lists.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same claims.")] = 0,
    write: Annotated[bool, typer.Option("--write", help=f"Write the tables to {REPORT}, too.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as one object.")] = False,
) -> None:
    """Check claims whose truth is known: true ones in several wordings, and ones with one thing wrong.

    A quarter of the false ones names somebody else, a quarter another number
    or date, a quarter another relation, and a quarter says "not". Real pages
    are told apart; they need a data set (setting: data).

    Example: cairn bench checks --traces 200
    """
    from agent.bench.checks import frozen_worlds, measure, measure_cases
    from agent.bench.claim_pages import page_cases
    from agent.settings import load_settings

    with messages().status("checking claims"):
        figures = measure(frozen_worlds(), traces=traces, seed=seed)
        share = asyncio.run(_share())
        try:
            pages = measure_cases(page_cases(load_settings().data, seed=seed))
        except SetupError as error:
            pages = None
            note(str(error))
    if write:
        write_report(REPORT, _report(figures, pages, share), code=CODE)
    if json:
        told = {"pages": pages.as_dict()} if pages else {}
        print_json(figures.as_dict() | {"rollout_share": round(share, 4)} | told)
        return
    for title, of in (("the little world", figures), ("real pages", pages)):
        if of is not None:
            output().print(_table(title, of))
    output().print(f"{figures.a_second:,.0f} claims a second; {share:.1%} of a rollout's time")


async def _share() -> float:
    """The checks' share of the time of some rollouts of the built-in policy."""
    from agent.bench.checks import rollout_share
    from agent.build import build_agent
    from agent.build_sources import with_world
    from agent.settings import load_settings
    from agent.world.store import load_world

    agent = build_agent(with_world(load_settings()))
    try:
        return await rollout_share(agent, [q.question for q in load_world("test-v1").questions[:ROLLOUTS]])
    finally:
        await agent.aclose()


def _rows(of: "Figures") -> list[tuple[str, ...]]:
    from agent.bench.claim_cases import CORRUPTIONS

    names = {
        "entity": "another name",
        "number": "another number or date",
        "relation": "another relation",
        "negation": "negated",
    }
    rows: list[tuple[str, ...]] = []
    for kind in CORRUPTIONS:
        refused, false = of.refused(kind)
        if false:
            rows.append(
                (names[kind], str(false), str(refused), f"{of.precision([kind]):.3f}", f"{of.recall([kind]):.3f}")
            )
    refused, false = (sum(numbers) for numbers in zip(*map(of.refused, CORRUPTIONS), strict=True))
    rows.append(("all false claims", str(false), str(refused), f"{of.precision():.3f}", f"{of.recall():.3f}"))
    return rows


def _true_rows(of: "Figures") -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, standard in (("true, in other words", False), ("true, as policies are taught", True)):
        found, true = of.found(standard=standard)
        if true:
            rows.append((name, str(true), str(true - found), "", ""))
    return rows


_HEADS: Final = ("", "claims", "told as not found", "precision", "recall")


def _table(title: str, of: "Figures") -> Table:
    table = Table(*_HEADS, title=f"{title}: {of.traces} traces")
    for row in (*_rows(of), *_true_rows(of)):
        table.add_row(*row)
    return table


def _markdown(of: "Figures") -> str:
    lines = [f"| {' | '.join(_HEADS)} |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in (*_rows(of), *_true_rows(of)))])


def _report(figures: "Figures", pages: "Figures | None", share: float) -> str:
    from agent.bench.checks import ROLLOUT_SHARE, TARGET
    from agent.bench.claim_pages import SEEN

    real = f"""
## Real pages

Triples of 2WikiMultihopQA as claims, checked against the Wikipedia page about their subject. The rules were written \
with the first {SEEN} questions at hand; these are the others. The triples come from a knowledge graph: not every true \
one stands on the page, so part of the true claims that were not found are rightly so. Each kind of false claim is \
weighed against as many true ones.

{_markdown(pages)}
""" if pages is not None else ""  # fmt: skip
    return f"""# Checking claims

`cairn bench checks --traces {figures.traces} --write`; Python {platform.python_version()}, {cores()} cores. \
What the checks mean, and what they cannot see, is in [evidence.md](../evidence.md).

Positive means "not found". Precision is the share of the claims told as not found that are false; as many true claims \
as false ones are asked for it. Recall is the share of the false claims that are told as not found.

## The little world

{figures.traces} traces of the frozen test lists, newest first, with the passages that their gold plans find. Each \
look-up is claimed as policies are taught to word it, in another wording of the world that is not the page's, and \
with one thing wrong. The rules were written on worlds of the training split: their names are others, but their \
wordings are the same, so this tells how the rules hold on what they know; real pages tell how they do on what they do \
not. Wordings that add a detail of their own ("in a back room") are left out.

{_markdown(figures)}

Bounds: {TARGET} for precision and recall of all and for each kind: {"met" if figures.holds else "not met"}.

{figures.a_second:,.0f} claims a second on one core, every page read once. In {ROLLOUTS} rollouts of the built-in \
policy the checks took {share:.2%} of the time (bound {ROLLOUT_SHARE:.0%}: \
{"met" if share <= ROLLOUT_SHARE else "not met"}).
{real}"""
