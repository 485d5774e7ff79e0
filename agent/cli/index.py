"""`cairn index`: build an index of documents, ask it, and measure what it finds."""

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.console import messages, output, print_json, printable
from agent.cli.options import JsonOption

if TYPE_CHECKING:
    from rich.table import Table

    from agent.evidence import Passage
    from agent.sources.corpus import Card, CorpusSource
    from agent.sources.questions import Question

index_app = typer.Typer(no_args_is_help=True, help="Your documents: build an index, search it, measure it.")

IndexArgument = Annotated[Path, typer.Argument(metavar="DIR", help="An index folder.")]


def register(app: typer.Typer) -> None:
    """Add the `index` commands."""
    app.add_typer(index_app, name="index")


@index_app.command("build")
def build(
    corpus: Annotated[
        list[Path],
        typer.Argument(metavar="CORPUS...", help="JSON lines, text or Markdown: files, or folders of them."),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the index; an older one is replaced.")],
    as_json: JsonOption = False,
) -> None:
    """Index documents for BM25 search.

    A line of a .jsonl file is {"id", "title", "text", "url"?, "date"?}. Text
    and Markdown files are cut into passages; headings become titles.

    Example: cairn index build notes/ papers.jsonl --out my-index
    """
    started = perf_counter()
    card = _build(corpus, out)
    seconds = perf_counter() - started
    if as_json:
        print_json({"out": str(out), **card.model_dump(exclude={"files"}), "seconds": round(seconds, 3)})
    else:
        output().print(f"{out}: {card.documents:,} passages in {seconds:.1f} s")
        output().print(f'next: cairn index search {out} "a query", or cairn ask "a question" --corpus {out}')


def _build(corpus: list[Path], out: Path) -> "Card":
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from agent.sources.corpus import build_index

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=messages(), transient=True, disable=not messages().is_terminal) as bar:
        task = bar.add_task("reading", total=None)

        def show(stage: str, done: int, total: int) -> None:
            bar.update(task, description=stage, completed=done, total=total)

        return build_index(corpus, out, progress=show)


@index_app.command("search")
def search(
    folder: IndexArgument,
    query: Annotated[str, typer.Argument(help="Words to look for.")],
    topk: Annotated[int, typer.Option(min=1, help="How many passages.")] = 5,
    as_json: JsonOption = False,
) -> None:
    """Find the best passages of an index.

    Example: cairn index search my-index "who wrote the report" --topk 3
    """
    if not query.strip():
        raise typer.BadParameter("the query is empty", param_hint="QUERY")
    source = _open(folder)
    started = perf_counter()
    found = source.find(query, limit=topk)
    seconds = perf_counter() - started
    if as_json:
        passages = [p.model_dump(include={"id", "title", "text", "url", "date", "score", "rank"}) for p in found]
        print_json({"query": query, "seconds": round(seconds, 6), "passages": passages})
        return
    for passage in found:
        _show(passage)
    if not found:
        output().print("Nothing was found.")


def _show(passage: "Passage") -> None:
    from rich.text import Text

    facts = " · ".join(part for part in (passage.id, passage.date, passage.url, f"{passage.score:.2f}") if part)
    head = Text.assemble(
        (f"{passage.rank}. ", "bold"), (printable(passage.title), "bold"), "  ", (printable(facts), "dim")
    )
    output().print(head)
    output().print(Text(printable(" ".join(passage.text.split())[:300])), "\n")


@index_app.command("batch")
def batch(
    folder: IndexArgument,
    questions: Annotated[Path, typer.Option(metavar="FILE", help="Questions with gold passages, as JSON lines.")],
    topk: Annotated[int, typer.Option(min=1, help="How many passages each query may find.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """Measure retrieval: each question is one query, and its "supporting" ids are what should be found.

    recall_10: mean share of gold passages in the first ten. all_gold_10: share
    of questions whose gold passages are all there. mrr: mean of 1 / place of
    the first gold passage, 0 where none was found.

    Example: cairn index batch my-index --questions dev.jsonl --topk 10
    """
    from agent.errors import CorpusError
    from agent.sources.questions import read_questions

    asked = read_questions(questions)
    with_gold = [question for question in asked if question.supporting]
    if not with_gold:
        raise CorpusError(f'no question in {questions} names its gold passages: add "supporting": ["passage id", …]')
    figures = _measure(_open(folder), with_gold, topk)
    figures["without_gold"] = len(asked) - len(with_gold)
    if as_json:
        print_json(figures)
    else:
        output().print(_table(figures, str(folder)))


def _measure(source: "CorpusSource", questions: "list[Question]", topk: int) -> dict[str, float]:
    """Every figure is a mean over the questions; those of the first ten need ten, whatever `topk` says."""
    from rich.progress import track

    from agent.sources.questions import gold_found

    sums = dict.fromkeys(("recall_10", "all_gold_5", "all_gold_10", f"recall_{topk}", f"all_gold_{topk}", "mrr"), 0.0)
    seconds = 0.0
    watched = messages().is_terminal
    for question in track(questions, "searching", console=messages(), transient=True, disable=not watched):
        started = perf_counter()
        shown = [passage.id for passage in source.find(question.question, limit=max(topk, 10))]
        seconds += perf_counter() - started
        gold = set(question.supporting)
        for cut in {5, 10, topk}:
            found = len(gold_found(gold, shown[:cut])) / len(gold)
            if f"recall_{cut}" in sums:
                sums[f"recall_{cut}"] += found
            sums[f"all_gold_{cut}"] += found == 1
        places = (place for place, name in enumerate(shown[:topk], start=1) if gold_found(gold, [name]))
        sums["mrr"] += 1 / next(places, float("inf"))
    means = {name: round(total / len(questions), 4) for name, total in sums.items()}
    return {"n": len(questions), **means, "queries_per_s": round(len(questions) / seconds, 1)}


def _table(figures: dict[str, float], title: str) -> "Table":
    from rich.table import Table

    table = Table("figure", "value", title=title)
    for name, value in figures.items():
        table.add_row(name, f"{value:,}" if name in ("n", "queries_per_s", "without_gold") else f"{value:.3f}")
    return table


def _open(folder: Path) -> "CorpusSource":
    from agent.sources.corpus import CorpusSource

    return CorpusSource(folder)
