"""`cairn bench checks`: how well claims are checked against the passages that they cite."""

import asyncio
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from agent.cli.console import messages, note, output
from agent.cores import cores
from agent.errors import SetupError
from lab.cli.bench import bench_app
from lab.report import ReportTable, print_report, write_report

if TYPE_CHECKING:
    from lab.benchmarks.checks.claims import Half
    from lab.benchmarks.checks.measure import ClaimFigures, RealFigures

REPORT: Final = Path("docs/bench/checks.md")
CODE: Final = (
    "agent/checks",
    "agent/checks/claims.py",
    "lab/benchmarks/checks/measure.py",
    "lab/benchmarks/checks/claims.py",
    "lab/benchmarks/checks/real.py",
    "lab/benchmarks/checks/triples.py",
    "lab/benchmarks/checks/relations.py",
    "lab/benchmarks/checks/english.py",
    "lab/benchmarks/checks/wordings.py",
)
"""What the figures depend on."""
ROLLOUTS: Final = 20
HALVES: Final[tuple["Half", ...]] = ("dev", "test")


@bench_app.command("checks")
def checks(
    traces: Annotated[int, typer.Option(min=1, help="How many traces of the frozen test lists.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same claims.")] = 0,
    write: Annotated[bool, typer.Option("--write", help=f"Write the tables to {REPORT}, too.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as one object.")] = False,
) -> None:
    """Check claims whose truth is known: true ones in several wordings, and ones with one thing wrong.

    A quarter of the false ones names another entity, a quarter another number
    or date, a quarter another relation, and a quarter says "not". Claims about
    real pages are counted separately; they need data sets (setting: data).

    Example: cairn bench checks --traces 200
    """
    from agent.settings import load_settings
    from lab.benchmarks.checks.measure import frozen_worlds, measure, measure_real
    from lab.benchmarks.checks.real import real_claims

    with messages().status("checking claims"):
        figures = measure(frozen_worlds(), traces=traces, seed=seed)
        share = asyncio.run(_share())
        real: dict[str, RealFigures] = {}
        try:
            for half in HALVES:
                real[half] = measure_real(real_claims(load_settings().data, half, seed=seed))
        except SetupError as error:
            note(str(error))
    if write:
        write_report(REPORT, _report(figures, real, share), code=CODE)
    pages = {"pages": {half: of.as_dict() for half, of in real.items()}} if real else {}
    tables = [_table(figures), *(_short_table(half, of) for half, of in real.items())]
    print_report(tables, figures.as_dict() | {"rollout_share": round(share, 4)} | pages, as_json=json)
    if not json:
        output().print(f"{figures.a_second:,.0f} claims a second; {share:.1%} of a rollout's time")


async def _share() -> float:
    """The checks' share of the time of some rollouts of the built-in policy."""
    from agent.build.agent import build_agent
    from agent.build.sources import with_world
    from agent.settings import load_settings
    from agent.world.store import load_world
    from lab.benchmarks.checks.measure import rollout_share

    agent = build_agent(with_world(load_settings()))
    try:
        return await rollout_share(agent, [q.question for q in load_world("test-v2").questions[:ROLLOUTS]])
    finally:
        await agent.aclose()


def _rows(of: "ClaimFigures") -> list[tuple[str, ...]]:
    from lab.benchmarks.checks.cases import CORRUPTIONS

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


def _true_rows(of: "ClaimFigures") -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, standard in (("true, in other words", False), ("true, as policies are taught", True)):
        found, true = of.found(standard=standard)
        if true:
            rows.append((name, str(true), str(true - found), "", ""))
    return rows


_HEADS: Final = ("", "claims", "not found", "precision", "recall")


def _table(of: "ClaimFigures") -> ReportTable:
    return ReportTable(_HEADS, [*_rows(of), *_true_rows(of)], title=f"the little world: {of.traces} traces")


_REAL_HEADS: Final = (
    "", "true", "supported", "not verified", "contradicted", "false", "supported", "not verified", "contradicted",
    "precision", "recall",
)  # fmt: skip
_KINDS: Final = {
    "question": "a question with its answer", "sentence": "a sentence of the page, reworded",
    "relation": "a relation, worded", "pointer": "TITLE, relation: VALUE", "value": "TITLE: VALUE", "all": "all",
    "wrong entity": "another name", "wrong number": "another number or date", "wrong relation": "another relation",
    "wrong swap": "the two ends exchanged", "wrong negation": "negated",
}  # fmt: skip


def _real_rows(of: "RealFigures") -> list[tuple[str, ...]]:
    from lab.benchmarks.checks.measure import STATES

    rows: list[tuple[str, ...]] = []
    for row in of.rows:
        cells = [_KINDS[row]]
        for true in (True, False):
            count = of.count(row, true=true)
            cells += [str(count), *(f"{of.share(row, s, true=true):.3f}" for s in STATES)] if count else [""] * 4
        precision = f"{of.precision(row):.3f}" if of.count(row, true=True) else ""
        rows.append((*cells, precision, f"{of.recall(row):.3f}"))
    return rows


def _short_table(half: str, of: "RealFigures") -> ReportTable:
    """What a terminal has the width for."""
    head = ("", "true: supported", "contradicted", "false: supported", "contradicted", "precision", "recall")
    rows = [(name, cells[0], cells[2], *cells[4:7:2], *cells[7:]) for name, _, *cells in _real_rows(of)]
    return ReportTable(head, rows, title=f"real pages, {half}")


def _rightly(of: "RealFigures") -> str:
    right = [of.right("all", state) for state in ("supported", "contradicted")]
    return f"{right[0]:.3f} of the supported claims are true, {right[1]:.3f} of the contradicted ones are false"


def _report(figures: "ClaimFigures", real: "Mapping[str, RealFigures]", share: float) -> str:
    from lab.benchmarks.checks.measure import ROLLOUT_SHARE, TARGET

    tables = "".join(
        f"### {half}\n\n{ReportTable(_REAL_HEADS, _real_rows(of)).markdown()}\n\n" for half, of in real.items()
    )
    pages = f"""
## Real pages

Claims about Wikipedia pages, made at run time from four data sets that are no part of the project; each true claim \
comes with a false one that differs in one thing. *A question with its answer* is turned into a statement: its words \
are those of a person who read the page, and about half of them share too little with the page to be found by rules. \
*A sentence* is shortened, its pronoun resolved and some of its words changed; none is on the page as it is. \
*Relations* are triples whose sentence states them, in several wordings, and in short as policies write them. Another \
name comes from the same page, where it has one of that kind, or from another page.

A page gives claims to one half only. The rules were written with the half `dev` at hand; of `test` only labels \
were read (of 80 claims, one was doubtful) and, a few times, the totals. A claim that is not supported counts as \
"not found" in `precision` and `recall`; \
in each half, {"; ".join(f"`{half}`: {_rightly(of)}" for half, of in real.items())}.

{tables}Bounds on `test`: recall {TARGET}: \
{"met" if real["test"].recall("all") >= TARGET else "not met"}; precision {TARGET}: \
{"met" if real["test"].precision("all") >= TARGET else "not met"}. \
Questions are the kind that misses it by far: rules cannot distinguish a paraphrase from another statement. So a \
claim that is not supported counts as "not verified", and as "contradicted" only where the page has something else in \
its place.
""" if real else ""  # fmt: skip
    return f"""# Checking claims

`cairn bench checks --traces {figures.traces} --write`; Python {platform.python_version()}, {cores()} cores. \
What the checks mean, and what they cannot see, is in [evidence.md](../evidence.md).

Positive means "not found". Precision is the share of the claims reported as not found that are false, with as many \
true claims as false ones. Recall is the share of the false claims that are reported as not found.

## The little world

{figures.traces} traces of the frozen test lists, newest first, with the passages that their gold plans find. Each \
look-up is claimed as policies are taught to word it, in another wording of the world that is not the page's, and \
with one thing wrong. The rules were written on worlds of the training split: their names are others, but their \
wordings are the same, so this shows how the rules hold on what they know. Wordings that add a detail of their own \
("in a back room") are left out.

{_table(figures).markdown()}

Bounds: {TARGET} for precision and recall of all and for each kind: {"met" if figures.holds else "not met"}.

{figures.a_second:,.0f} claims a second on one core, every page read once. In {ROLLOUTS} rollouts of the built-in \
policy the checks took {share:.2%} of the time (bound {ROLLOUT_SHARE:.0%}: \
{"met" if share <= ROLLOUT_SHARE else "not met"}).
{pages}"""
