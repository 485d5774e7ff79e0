"""`cairn data trajectories`: training rows from real questions. It imports no heavy library."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.console import note, output, print_json
from agent.cli.options import JsonOption
from agent.errors import SetupError

if TYPE_CHECKING:
    from train.expert.rows import RowOptions, RowsReport

_FROM, _HOW = "What they are made from", "How they are made"

CorpusOption = Annotated[
    Path, typer.Option(metavar="PATH", help="Documents, or an index of them, to search.", rich_help_panel=_FROM)
]
QuestionsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="JSON lines {id, question, answers, supporting}, where known with evidences or decomposition.",
        rich_help_panel=_FROM,
    ),
]
RelationsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="JSON lines {id, title, text, sentences, relations}: questions by template.",
        rich_help_panel=_FROM,
    ),
]
WithoutOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Questions to keep out of the rows, such as an evaluation's. Repeatable.",
        rich_help_panel=_FROM,
    ),
]
HoldOutOption = Annotated[
    int,
    typer.Option(
        min=0, help="Questions held out for an evaluation; no row uses their passages.", rich_help_panel=_FROM
    ),
]
LimitOption = Annotated[
    int, typer.Option(min=0, help="Questions to use, drawn at random; 0: all.", rich_help_panel=_FROM)
]
ProtocolsOption = Annotated[
    str,
    typer.Option(metavar="A,B", help="Protocols of the rows; each question gets one of them.", rich_help_panel=_HOW),
]
EveryOption = Annotated[
    bool, typer.Option("--every-protocol", help="Give each question a row under every protocol.", rich_help_panel=_HOW)
]
UnanswerableOption = Annotated[
    float,
    typer.Option(
        min=0, max=1, help='Share of questions whose passages are left out: "I do not know".', rich_help_panel=_HOW
    ),
]
CombineOption = Annotated[
    int, typer.Option(min=0, help="New questions of each kind from evidence triples.", rich_help_panel=_HOW)
]
SeveralOption = Annotated[
    int, typer.Option(min=0, help="Rows with several questions about one passage at once.", rich_help_panel=_HOW)
]
SeedOption = Annotated[int, typer.Option(min=0, help="The same seed gives the same rows.", rich_help_panel=_HOW)]


def trajectories(
    *,
    corpus: CorpusOption,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Rows, for cairn train sft --rows.")],
    questions: QuestionsOption = None,
    relations: RelationsOption = None,
    protocols: ProtocolsOption = "cairn,evidence",
    every_protocol: EveryOption = False,
    unanswerable: UnanswerableOption = 0.1,
    combine: CombineOption = 0,
    several: SeveralOption = 0,
    limit: LimitOption = 0,
    hold_out: HoldOutOption = 0,
    without: WithoutOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Make training rows from real questions: an expert searches your documents, cites them, and answers.

    It knows the passages that answer each question (`supporting`: their ids;
    left out, passages are looked for that the question leads to and that hold
    the answer), searches the real index as a user's agent will, and writes
    down what it found. Questions whose passages its searches do not find are
    left out; the report says how many, and why.

    Example: cairn data trajectories --questions my.jsonl --corpus notes/ --out rows.jsonl
    """
    from train.expert.rows import RowOptions

    if questions is None and relations is None:
        raise SetupError("no questions: name --questions FILE, --relations FILE or both")
    wanted = RowOptions(
        protocols=tuple(name.strip() for name in protocols.split(",") if name.strip()),
        every_protocol=every_protocol,
        unanswerable=unanswerable,
        combine=combine,
        several=several,
        limit=limit,
        hold_out=hold_out,
        seed=seed,
    )
    count, used, report = _write(out, wanted, corpus, questions, relations, without or [])
    if as_json:
        print_json(report.as_json())
    else:
        _print(report)
        unknown = f'{report.unknown:,} of them end with "I do not know"'
        note(f"{count:,} rows of {used:,} questions in {out}; {unknown}")
    if not count:
        raise SetupError(f"no question gave a row: the report says why; nothing can be learned from {out}")


def relations(
    *,
    corpus: CorpusOption,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="For cairn data trajectories --relations.")],
) -> None:
    """Read relations off articles: who directed a film, when a person was born, which country a village is in.

    It uses a few patterns of how encyclopedias begin an article, and skips
    what does not fit.

    Example: cairn data relations --corpus wikipedia.jsonl --out relations.jsonl
    """
    from collections import Counter

    from train.common.saving import replacing
    from train.expert.extract import described
    from train.expert.library import Library

    library = Library(corpus)
    counts: Counter[str] = Counter()
    documents = 0
    with replacing(out) as path, path.open("w", encoding="utf-8") as file:
        for document in described(library.passages()):
            file.write(document.model_dump_json() + "\n")
            documents += 1
            counts.update(one.relation for one in document.relations)
    for name, count in counts.most_common():
        output().print(f"{count:>7,}  {name}")
    note(f"{sum(counts.values()):,} relations of {documents:,} documents in {out}")


def _write(
    out: Path, wanted: "RowOptions", corpus: Path, questions: Path | None, relations: Path | None, without: list[Path]
) -> "tuple[int, int, RowsReport]":
    """Write the rows; gives their number, that of the questions, and what came of these."""
    from train.distill.rows import write_rows
    from train.expert import rows
    from train.expert.library import Library

    library, report = Library(corpus), rows.RowsReport()
    # Gold passages come first: without them it is unknown which questions share those of an evaluation.
    records = rows.with_gold(rows.read_records(questions) if questions else [], library)
    kept = rows.with_gold([record for path in without for record in rows.read_records(path)], library)
    records = rows.without(records, kept, library)
    if wanted.hold_out:
        drawn, records = rows.hold_out(records, wanted.hold_out, library, seed=wanted.seed)
        rows.write_held_out(out.with_name(f"{out.stem}.held-out.jsonl"), drawn)
        kept += drawn
    described = rows.read_described(relations) if relations else []
    chosen = rows.choices(records, described, library, wanted, report, kept)
    return write_rows(out, rows.rows_of(chosen, library, wanted, report)), len(chosen), report


def _print(report: "RowsReport") -> None:
    for name, count in sorted(report.rows.items()):
        output().print(f"{count:>7,}  {name}")
    for why, times in report.dropped.most_common():
        output().print(f"{times:>7,}  left out: {why}", markup=False)
