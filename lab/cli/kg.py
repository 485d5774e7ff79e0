"""`cairn bench kg`: how well and how fast the offline knowledge graph answers."""

import platform
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from agent.cli.console import messages, note
from agent.cores import cores
from lab.cli.bench import bench_app
from lab.report import ReportTable, print_report, write_report

if TYPE_CHECKING:
    from agent.sources.kg.build import BuildProgress
    from lab.benchmarks.kg import Answers, LookupSpeed, Size

REPORT: Final = Path("docs/bench/kg.md")
CODE: Final = (
    "agent/sources/kg",
    "lab/benchmarks/kg.py",
    "lab/benchmarks/graphs.py",
)
"""What the figures depend on."""


@bench_app.command("kg")
def kg(
    triples: Annotated[int, typer.Option(min=1000, help="Size of the made-up graph.")] = 5_000_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same graph and look-ups.")] = 0,
    lookups: Annotated[int, typer.Option(min=10, help="Of each kind.")] = 2000,
    scratch: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the made-up graph, 200 bytes a triple.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help=f"Write the tables to {REPORT}, too.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as one object.")] = False,
) -> None:
    """Ask MetaQA's questions as they are, then build a large made-up graph and time look-ups in it.

    Questions: the share whose gold answers are all among the at most 100
    triples that the source gives for the question's text alone. They need the
    data set (setting: data); without it they are left out. Look-ups: exact, by
    prefix, by words, one hop, with typos, in a process of their own.

    Example: cairn bench kg --triples 500000
    """
    from agent.settings import load_settings
    from lab.benchmarks.kg import holds, measure_answers

    data = load_settings().data
    answers = measure_answers(data)
    if answers is None:
        note(f"MetaQA is not in {data}/kg_metaqa: its questions are left out")
    size, speed = _measure(triples, seed, lookups, scratch)
    if write:
        write_report(REPORT, _report(size, speed, answers, lookups), code=CODE)
    found = {} if answers is None else asdict(answers)
    figures = asdict(size) | asdict(speed) | found | {"holds": holds(speed, answers)}
    print_report(_tables(size, speed, answers), figures, as_json=json)


def _measure(triples: int, seed: int, lookups: int, scratch: Path | None) -> "tuple[Size, LookupSpeed]":
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    from lab.benchmarks.kg import measure_speed

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Bar(*columns, console=messages(), transient=True, disable=not messages().is_terminal) as bar:
        task = bar.add_task("", total=None)

        def show(far: "BuildProgress") -> None:
            bar.update(task, description=far.stage, completed=far.done, total=far.total)

        return measure_speed(triples=triples, seed=seed, lookups=lookups, scratch=scratch, progress=show)


def _speed_rows(speed: "LookupSpeed") -> list[tuple[str, str, str, str]]:
    from lab.benchmarks.kg import BOUND_MS, BOUND_TYPO_MS

    return [
        ("exact name", f"{speed.p50_exact_ms:.3f}", f"{speed.p99_exact_ms:.3f}", f"< {BOUND_MS:g}"),
        ("prefix", f"{speed.p50_prefix_ms:.3f}", f"{speed.p99_prefix_ms:.3f}", f"< {BOUND_MS:g}"),
        ("one word of a name", f"{speed.p50_words_ms:.3f}", f"{speed.p99_words_ms:.3f}", ""),
        ("one hop, out and in", f"{speed.p50_edges_ms:.3f}", f"{speed.p99_edges_ms:.3f}", f"< {BOUND_MS:g}"),
        ("name with a typo", f"{speed.p50_typo_ms:.3f}", f"{speed.p99_typo_ms:.3f}", f"< {BOUND_TYPO_MS:g}"),
    ]


def _other_rows(size: "Size", speed: "LookupSpeed") -> list[tuple[str, str]]:
    from lab.benchmarks.kg import AT_ONCE, BOUND_RSS_MB

    return [
        ("memory of a process that looks up, at its peak", f"{speed.rss_mb:.0f} MB (bound {BOUND_RSS_MB:g})"),
        ("name with a typo: its entity is among the first ten", f"{speed.typo_found_10:.3f}"),
        ("the most named entity is in", f"{speed.hub_degree:,} triples"),
        (f"whole questions through the source, {AT_ONCE} at once", f"{speed.questions_per_s:.0f} a second"),
        ("event loop's lag meanwhile, p99", f"{speed.p99_loop_lag_ms:.1f} ms"),
        ("time to build", f"{size.build_s:.0f} s"),
        ("memory to build, at its peak", f"{size.build_rss_mb:.0f} MB"),
        ("file", f"{size.file_mb:.0f} MB"),
    ]


def _answer_rows(answers: "Answers") -> list[tuple[str, str]]:
    from lab.benchmarks.kg import BOUND_FOUND, LIMIT, TOKENS

    return [
        (
            f"one hop, the plain text of {answers.questions} questions",
            f"{answers.metaqa_1hop_found:.3f} (bound {BOUND_FOUND})",
        ),
        ("one hop, with the entity in brackets", f"{answers.metaqa_1hop_found_bracketed:.3f}"),
        ("one hop, in three passages", f"{answers.metaqa_1hop_found_3:.3f}"),
        ("two hops in one query", f"{answers.metaqa_2hop_found:.3f}"),
        ("three hops in one query", f"{answers.metaqa_3hop_found:.3f}"),
        ("the most triples for a question", f"{answers.most_triples} (bound {LIMIT})"),
        ("the most tokens for a question, by estimate", f"{answers.most_tokens} (bound {TOKENS})"),
        ("a question takes, p99", f"{answers.p99_question_ms:.1f} ms"),
    ]


def _tables(size: "Size", speed: "LookupSpeed", answers: "Answers | None") -> list[ReportTable]:
    title = f"{size.triples:,} triples, {size.entities:,} entities, {size.names:,} names"
    tables = [
        ReportTable(("ms", "median", "p99", "bound"), _speed_rows(speed), title=title),
        ReportTable(("", ""), _other_rows(size, speed), title="the same graph"),
    ]
    if answers is not None:
        title = f"MetaQA, {answers.metaqa_triples:,} triples: all gold answers found"
        tables.append(ReportTable(("", ""), _answer_rows(answers), title=title))
    return tables


def _report(size: "Size", speed: "LookupSpeed", answers: "Answers | None", lookups: int) -> str:
    from lab.benchmarks.kg import ROUNDS

    fast, other, *found = (table.markdown() for table in _tables(size, speed, answers))
    questions = f"""
## Are the answers found?

MetaQA's real graph, {answers.metaqa_triples:,} triples. A question counts where every gold answer is an \
end of a triple in the passages that the source gives for the question's text alone, at most 100 triples and 1,024 \
tokens. One query is one hop: the rows of two and three hops show what one query finds by chance; plans are made for \
those.

{found[0]}
""" if answers is not None else ""  # fmt: skip
    return f"""# The knowledge graph

`cairn bench kg --write`; Python {platform.python_version()}, {cores()} cores.

## How fast are look-ups?

A made-up graph of {size.triples:,} triples, {size.entities:,} entities and {size.names:,} names; degrees are Zipf's, \
one entity in 40 has namesakes. {lookups:,} look-ups of each kind on one thread of a fresh process, in {ROUNDS} \
rounds; each counts with its median. Half of them ask for the thousand entities that are named most. A typo is one \
letter left out, put in, exchanged or turned round.

{fast}

{other}
{questions}"""
