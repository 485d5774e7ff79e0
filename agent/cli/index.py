"""`cairn index`: build an index of documents, ask it, and measure what it finds."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from agent.cli.console import messages, note, output, print_json, printable
from agent.cli.options import ConfigOption, JsonOption, WorkersOption, WorkOption

if TYPE_CHECKING:
    from rich.table import Table

    from agent.evidence import Passage
    from agent.sources.base import Source
    from agent.sources.corpus.build import Dense, Outcome
    from agent.sources.corpus.finding import SkippedFile
    from agent.sources.questions import GoldQuestion

Ann = Literal["flat", "hnsw", "ivf-sq8", "ivf-pq"]
Mode = Literal["auto", "bm25", "dense", "hybrid"]
_UNITS: Final = {"reading": "bytes", "indexing": "passages", "encoding": "passages", "writing": ""}
_SKIPPED_SHOWN: Final = 20

index_app = typer.Typer(no_args_is_help=True, help="Your documents: build an index, search it, measure it.")

IndexArgument = Annotated[Path, typer.Argument(metavar="DIR", help="An index folder.")]
ModeOption = Annotated[Mode, typer.Option(help="How to search; auto: by words and meaning, if the index has both.")]


def register(app: typer.Typer) -> None:
    """Add the `index` commands."""
    app.add_typer(index_app, name="index")


@index_app.command("build")
def build(
    corpus: Annotated[
        list[Path],
        typer.Argument(
            metavar="CORPUS...", help="Documents (JSON lines, text, PDF, Word and others): files, or folders of them."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the index.")],
    dense: Annotated[
        str | None,
        typer.Option(
            "--dense",
            metavar="MODEL",
            help="Also search by meaning, with this sentence-transformers model (name or folder); 'none' stops that.",
        ),
    ] = None,
    ann: Annotated[Ann | None, typer.Option("--ann", help="Kind of the dense index.", show_default="by size")] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at a file that cannot be read, instead of skipping it.")
    ] = False,
    workers: WorkersOption = None,
    work: WorkOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Index documents for search by words (BM25) and, on request, by meaning.

    A line of a .jsonl file is {"id", "title", "text", "url"?, "date"?}. Other
    files are cut into passages; headings become titles.

    In an existing index only what changed is read again, and a dense index
    stays dense. A build that is killed leaves the old index as it was.

    Example: cairn index build notes/ papers.jsonl --out my-index

    Example: cairn index build notes/ --out my-index --dense intfloat/e5-small-v2 --workers 8
    """
    from agent.cli.progress import Stages
    from agent.parallel.spread import spread_of
    from agent.settings import load_settings
    from agent.sources.corpus.build import update_index

    settings = load_settings(config, workers=workers, work=work)
    wanted = _dense(out, dense, ann)
    with spread_of(settings) as spread, Stages(_UNITS) as stages:
        outcome = update_index(corpus, out, dense=wanted, strict=strict, spread=spread, progress=stages.show)
    if as_json:
        print_json(_figures(out, outcome))
        return
    _report_skipped(outcome.skipped)
    card = outcome.card
    output().print(
        f"{out}: {_many(card.documents, 'passage')} of {_many(card.sources, 'file')} in {outcome.seconds:.1f} s "
        f"({_counted(outcome)})"
    )
    if card.dense:
        recall = f"recall@10 against flat search {card.dense.recall_10:.3f}"
        output().print(f"dense: {card.dense.model}, {card.dense.index.kind}, {recall}")
    output().print(f'next: cairn index search {out} "a query", or cairn ask "a question" --corpus {out}')


def _dense(out: Path, model: str | None, ann: Ann | None) -> "Dense | None":
    """What the flags ask for; where they say nothing, what the index that is there has."""
    from agent.errors import CorpusError
    from agent.sources.corpus.build import Dense
    from agent.sources.corpus.folder import read_card

    if model is None:
        try:
            older = read_card(out).dense
        except CorpusError:
            older = None
        if older:
            return Dense(older.model, ann or older.index.kind)
    if model in (None, "none"):
        if ann:
            raise typer.BadParameter("only a dense index has a kind; add --dense MODEL", param_hint="--ann")
        return None
    return Dense(model, ann)


def _counted(outcome: "Outcome") -> str:
    """What became of the files."""
    files = f"{outcome.new:,} new, {outcome.changed:,} changed, {outcome.removed:,} removed, {outcome.kept:,} kept"
    return f"{files}, {len(outcome.skipped):,} skipped" if outcome.skipped else files


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _figures(out: Path, outcome: "Outcome") -> dict[str, object]:
    counts = {name: getattr(outcome, name) for name in ("new", "changed", "removed", "kept")}
    skipped = [{"name": skip.name, "reason": skip.reason, "why": skip.why} for skip in outcome.skipped]
    card = outcome.card.model_dump(exclude={"files", "data"})
    return {"out": str(out), **card, **counts, "skipped": skipped, "seconds": round(outcome.seconds, 3)}


def _report_skipped(skipped: "Sequence[SkippedFile]") -> None:
    """A line for each file that should have been readable, one line for all of the kinds that cannot be read."""
    kinds = Counter(skip.why for skip in skipped if skip.reason == "kind")
    if kinds:
        named = ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common())
        note(f"skipped {kinds.total():,} files of other kinds: {named}")
    others = [skip for skip in skipped if skip.reason != "kind"]
    for skip in others[:_SKIPPED_SHOWN]:
        note(f"skipped {skip.name}: {skip.why}")
    if (more := len(others) - _SKIPPED_SHOWN) > 0:
        note(f"skipped {more:,} more; --json lists them all")


@index_app.command("search")
def search(
    folder: IndexArgument,
    query: Annotated[str, typer.Argument(help="Words to look for.")],
    topk: Annotated[int, typer.Option(min=1, help="Passages to show.")] = 5,
    mode: ModeOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Find the best passages of an index.

    Example: cairn index search my-index "who wrote the report" --topk 3
    """
    if not query.strip():
        raise typer.BadParameter("the query is empty", param_hint="QUERY")
    source = _open(folder, mode)
    found, seconds = asyncio.run(_search(source, [query], topk))
    if as_json:
        passages = [p.model_dump(include={"id", "title", "text", "url", "date", "score", "rank"}) for p in found[0]]
        print_json({"query": query, "seconds": round(seconds, 6), "passages": passages})
        return
    for passage in found[0]:
        _show(passage)
    if not found[0]:
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
    topk: Annotated[int, typer.Option(min=1, help="Passages to find for each query.")] = 10,
    mode: ModeOption = "auto",
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

    found = read_questions(questions)
    with_gold = [question for question in found if question.supporting]
    if not with_gold:
        raise CorpusError(f'no question in {questions} names its gold passages: add "supporting": ["passage id", …]')
    figures = _measure(_open(folder, mode), with_gold, topk)
    figures["without_gold"] = len(found) - len(with_gold)
    if as_json:
        print_json(figures)
    else:
        output().print(_table(figures, str(folder)))


def _measure(source: "Source", questions: "list[GoldQuestion]", topk: int) -> dict[str, float]:
    """Every figure is a mean over the questions; those of the first ten need ten, whatever `topk` says."""
    from agent.sources.questions import gold_found

    sums = dict.fromkeys(("recall_10", "all_gold_5", "all_gold_10", f"recall_{topk}", f"all_gold_{topk}", "mrr"), 0.0)
    lists, seconds = asyncio.run(_search(source, [question.question for question in questions], max(topk, 10)))
    for question, passages in zip(questions, lists, strict=True):
        shown, gold = [passage.id for passage in passages], set(question.supporting)
        for cut in {5, 10, topk}:
            found = len(gold_found(gold, shown[:cut])) / len(gold)
            if f"recall_{cut}" in sums:
                sums[f"recall_{cut}"] += found
            sums[f"all_gold_{cut}"] += found == 1
        places = (place for place, name in enumerate(shown[:topk], start=1) if gold_found(gold, [name]))
        sums["mrr"] += 1 / next(places, float("inf"))
    means = {name: round(total / len(questions), 4) for name, total in sums.items()}
    return {"n": len(questions), **means, "queries_per_s": round(len(questions) / seconds, 1)}


async def _search(source: "Source", queries: Sequence[str], limit: int) -> "tuple[list[tuple[Passage, ...]], float]":
    """What a source finds for each query, one after the other, and in how many seconds; then it is closed."""
    from rich.progress import track

    from agent.sources.base import SearchRequest, close_sources

    watched = len(queries) > 1 and messages().is_terminal
    try:
        started = perf_counter()
        shown = track(queries, "searching", console=messages(), transient=True, disable=not watched)
        found = [(await source.search(SearchRequest(query, limit=limit))).passages for query in shown]
        return found, perf_counter() - started
    finally:
        await close_sources([source])


def _table(figures: dict[str, float], title: str) -> "Table":
    from rich.table import Table

    table = Table("figure", "value", title=title)
    for name, value in figures.items():
        table.add_row(name, f"{value:,}" if name in ("n", "queries_per_s", "without_gold") else f"{value:.3f}")
    return table


def _open(folder: Path, mode: Mode) -> "Source":
    from agent.sources.corpus.hybrid import open_corpus
    from agent.sources.corpus.source import read_card

    read_card(folder)  # what is no index is refused, not made one
    return open_corpus(folder, mode=mode)
