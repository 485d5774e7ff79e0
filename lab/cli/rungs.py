"""`cairn bench rungs`: what your model reaches with Cairn, beside plain RAG and closed book."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent.cli.console import note
from agent.cli.options import JsonOption, Load, with_agent_options
from agent.errors import SetupError
from agent.files.foreign import MIB, read_file
from lab.cli.bench import bench_app
from lab.report import ReportTable, print_report, write_report

if TYPE_CHECKING:
    from agent.settings import CairnSettings
    from train.evaluation.result import QuestionResult

REPORT: Final = Path("docs/bench/rungs.md")
CODE: Final = ("agent/policies/ladder", "lab/benchmarks/rungs.py", "train/evaluation/baselines.py")
"""What the figures depend on."""
ROWS: Final = "rungs.json"
_HEAD: Final = (
    "way",
    "EM",
    "F1",
    "over plain RAG",
    "over plain RAG, cut",
    "searches",
    "searched",
    "kept format",
    "no answer",
    "failed",
    "seconds",
)
_INTRO: Final = (
    "What a general model reaches with Cairn, without any training, beside plain RAG and closed book. *plain-rag* is "
    "what people write in twenty lines: one search with the question, five passages, one request, and the reply as it "
    "is; *cut* scores the same replies after the rules with which Cairn's lowest rung takes the short answer out of a "
    "sentence. *auto* is what `cairn ask` does: the rung is named behind it. EM with its 95 % interval; *over*: the "
    "difference of EM, paired by question, with its 95 % interval. *Searched*: share of questions with at least one "
    "search. *No answer*: share that ended without one, for whatever reason. *Failed*: questions on which the server "
    "or a source failed; they count as wrong. *Seconds*: the median of a question, with {concurrency} on their way at "
    "once."
)


class Rung(StrEnum):
    """What the setting `rung` takes."""

    AUTO = "auto"
    PROTOCOL = "protocol"
    TOOLS = "tools"
    JSON = "json"
    WORDS = "words"
    PLAIN = "plain"


def register() -> None:
    """`bench rungs` has the options of an agent."""
    bench_app.command("rungs")(with_agent_options(rungs))


def rungs(
    *,
    questions: Annotated[Path, typer.Option("--questions", metavar="FILE", help="Questions as JSON lines.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Keep every run there; a later call continues.")],
    name: Annotated[str, typer.Option("--name", help="Of this model, server and question list in the table.")] = "",
    rung: Annotated[
        list[Rung] | None, typer.Option("--rung", help="A rung beside these; may be repeated.", show_default="auto")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="The first N questions.")] = None,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Questions on their way at once.")] = 4,
    write: Annotated[bool, typer.Option("--write", help=f"Write all runs under --out to {REPORT}, too.")] = False,
    as_json: JsonOption = False,
    load: Load,
) -> None:
    """Ask a model behind an endpoint the same questions in several ways.

    Closed book, plain RAG (one search, one request), and the agent on the rung
    that it finds itself (auto) and on those that you name.

    Example: cairn bench rungs --questions dev.jsonl --corpus my-index
    --policy openai --base-url http://127.0.0.1:11434/v1 --model qwen3:8b
    --out runs/rungs
    """
    from lab.benchmarks.rungs import CLOSED, RAG, rows_of

    settings, called = load(), name or questions.resolve().parent.name
    folder = out / called.replace("/", "-")
    ways = [RAG, CLOSED, *(each.value for each in rung or [Rung.AUTO])]  # the first refuses what is no endpoint
    found = {}
    for way in ways:
        note(f"{called}: {way}")
        found[way] = _answered(settings, questions, way, folder / way, limit=limit, concurrency=concurrency)
    used = _rungs_used(folder, ways)
    rows = rows_of(found)
    kept = {"name": called, "rungs": used, "concurrency": concurrency, "rows": [asdict(row) for row in rows]}
    (folder / ROWS).write_text(json.dumps(kept, ensure_ascii=False, indent=1), encoding="utf-8")
    if write:
        write_report(REPORT, _page(out), code=CODE)
    print_report([_table(kept)], kept, as_json=as_json)


def _table(kept: dict[str, Any]) -> ReportTable:
    return ReportTable(_HEAD, [_cells(row, kept["rungs"]) for row in kept["rows"]], title=kept["name"])


def _answered(
    settings: "CairnSettings", questions: Path, way: str, out: Path, *, limit: int | None, concurrency: int
) -> "Sequence[QuestionResult]":
    from lab.benchmarks.rungs import CLOSED, RAG
    from train.evaluation.chosen import QuestionChoice
    from train.evaluation.commands import watched
    from train.evaluation.report_files import read_run
    from train.evaluation.session import Evaluation

    baseline = way if way in (CLOSED, RAG) else None
    evaluation = Evaluation(
        settings.model_copy(update={"rung": "plain" if baseline else way}),
        questions,
        choice=QuestionChoice(limit=limit),
        baseline=baseline,
        concurrency=concurrency,
        out=out,
    )
    if not watched(evaluation, out)["n"]:
        raise SetupError(f"no question could be scored; the last error: {evaluation.last_failure}")
    return read_run(out).results


def _rungs_used(folder: Path, ways: Sequence[str]) -> dict[str, str]:
    """The rung on which most rollouts of a way ended."""
    from collections import Counter

    from train.evaluation.report_files import read_run

    used: dict[str, str] = {}
    for way in ways:
        last = Counter(trace.rungs[-1].rung for trace in read_run(folder / way).traces() if trace.rungs)
        if last:
            used[way] = last.most_common(1)[0][0]
    return used


def _cells(row: dict[str, Any], used: dict[str, str]) -> tuple[str, ...]:
    way = row["way"]
    low, high = row["em_interval"]
    return (
        f"{way} ({used[way]})" if way in used and used[way] != way else way,
        f"{row['em']:.3f} ({low:.3f}–{high:.3f})",
        f"{row['f1']:.3f}",
        _difference(row["over_rag"]),
        _difference(row["over_cut"]),
        f"{row['searches']:.1f}",
        f"{row['searched']:.0%}",
        f"{row['kept_format']:.0%}",
        f"{row['no_answer']:.1%}",
        str(row["failed"]),
        f"{row['seconds']:.1f}",
    )


def _difference(found: Sequence[float] | None) -> str:
    return f"{found[0]:+.3f} ({found[1]:+.3f} – {found[2]:+.3f})" if found else ""


def _kept(out: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(out.glob(f"*/{ROWS}")):
        try:
            yield json.loads(read_file(path, most=MIB))
        except (OSError, ValueError) as error:
            raise SetupError(f"{path} cannot be read ({error}); remove it and measure again") from error


def _page(out: Path) -> str:
    parts: list[str] = []
    concurrency = 0
    for kept in _kept(out):
        concurrency = kept["concurrency"]
        count = max(row["n"] for row in kept["rows"])
        parts.append(f"## {kept['name']}\n\n{count} questions.\n\n{_table(kept).markdown()}")
    intro = _INTRO.format(concurrency=concurrency)
    return f"# General models on their rungs\n\n`cairn bench rungs --write`\n\n{intro}\n\n" + "\n\n".join(parts) + "\n"
