"""`cairn bench retrieval`: what is found, and how fast it is served; as tables and as a page. It measures nothing."""

import platform
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from agent.cli.console import messages
from agent.cli.options import ConfigOption, JsonOption
from agent.cores import cores
from lab.cli.bench import bench_app
from lab.report import ReportTable, print_report, write_report

if TYPE_CHECKING:
    from lab.benchmarks.retrieval import Progress as Show
    from lab.benchmarks.retrieval import Quality
    from lab.benchmarks.retrieve import ClientLoad, Mode, ServingSpeed

REPORT: Final = Path("docs/bench/retrieval.md")
CODE: Final = (
    "agent/sources/bm25.py",
    "agent/sources/corpus",
    "server/retrieval/service.py",
    "lab/benchmarks/retrieval.py",
)
"""What the figures depend on."""
LOADED: Final = "qa_2wiki_hippo101"
"""The set whose index is served: the largest one."""
_NAMES: Final = {
    "bm25": "BM25",
    "dense": "dense",
    "hybrid": "hybrid",
    "hybrid_rerank": "hybrid + cross-encoder",
    "bm25_multi": "BM25, three phrasings",
    "dense_multi": "dense, three phrasings",
    "hybrid_multi": "hybrid, three phrasings",
}


@bench_app.command("retrieval")
def bench_retrieval(
    *,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Folder with the question sets.", show_default="setting data"),
    ] = None,
    model: Annotated[str, typer.Option(help="Encodes passages and questions: a name or a folder.")] = "",
    rerank: Annotated[str, typer.Option(help="A cross-encoder, by name or folder; left out: none.")] = "",
    cache: Annotated[
        Path | None,
        typer.Option("--cache", metavar="DIR", help="Where indices are kept.", show_default="~/.cache/cairn"),
    ] = None,
    speed: Annotated[bool, typer.Option("--speed/--no-speed", help="Measure the servers, too.")] = True,
    requests: Annotated[int, typer.Option(min=50, help="Of one measurement with 64 clients.")] = 1200,
    write: Annotated[bool, typer.Option("--write", help=f"Write the tables to {REPORT}, too.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure BM25, dense and hybrid search on five public question sets, and the server at 1, 8 and 64 clients.

    The first run encodes 13,000 passages, which takes a few minutes; later
    runs take the indices from the cache.

    Example: cairn bench retrieval --data ../shared/data --no-speed
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from agent.settings import load_settings
    from lab.benchmarks.retrieval import CACHE, MODEL, measure

    folder = load_settings(config, data=data).data
    kept = cache or CACHE
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    watched = messages().is_terminal
    with Progress(*columns, console=messages(), transient=True, disable=not watched) as bar:
        task = bar.add_task("loading", total=None)

        def show(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        quality = measure(folder, model=model or MODEL, rerank=rerank, cache=kept, progress=show)
        served = _measure_speed(folder, kept, quality, requests, show) if speed else None
    if write:
        write_report(REPORT, report(quality, served), code=CODE)
    print_report(tables(quality, served), quality.as_dict() | (served.as_dict() if served else {}), as_json=as_json)


def _measure_speed(data: Path, cache: Path, quality: "Quality", requests: int, show: "Show") -> "ServingSpeed":
    from agent.sources.questions import read_questions
    from lab.benchmarks.retrieve import measure_speed

    questions = [q.question for name in quality.sets for q in read_questions(data / name / "questions.jsonl")]
    passages = quality.sets[LOADED].index.passages
    return measure_speed(cache / LOADED, questions, passages=passages, requests=requests, progress=show)


def tables(quality: "Quality", speed: "ServingSpeed | None") -> Iterator[ReportTable]:
    title = "all-gold@10 and its 95 % interval"
    yield ReportTable(("set", *_modes(quality)), _by_set(quality), title=title)
    yield ReportTable(_MEAN_HEAD, _means(quality), title="Mean over the sets")
    yield ReportTable(_DIFFERENCE_HEAD, _differences(quality), title="Differences of the mean all-gold@10, paired")
    yield ReportTable(_INDEX_HEAD, _indices(quality), title="Indices")
    if speed:
        yield ReportTable(_SPEED_HEAD, _speeds(speed), title="POST /retrieve")


_MEAN_HEAD: Final = ("", "all-gold@5", "all-gold@10", "recall@5", "recall@10", "recall@20", "MRR")
_DIFFERENCE_HEAD: Final = ("", "difference and its 95 % interval")
_INDEX_HEAD: Final = ("set", "passages", "BM25 s", "BM25 MB", "dense s", "dense MB", "kind", "recall@10 of the index")
_SPEED_HEAD: Final = (
    "search",
    "clients",
    "library encode: QPS",
    "p99",
    "our encoder: QPS",
    "p99",
    "ours: QPS",
    "p99",
    "times library encode",
    "times our encoder",
    "lost",
)


def _modes(quality: "Quality") -> tuple[str, ...]:
    return tuple(_NAMES[mode] for mode in quality.modes if not mode.endswith("_multi"))


def _by_set(quality: "Quality") -> list[tuple[str, ...]]:
    single = [mode for mode in quality.modes if not mode.endswith("_multi")]
    return [
        (f"{name} ({of.questions})", *(str(of.modes[mode]["all_gold_10"]) for mode in single))
        for name, of in quality.sets.items()
    ]


def _means(quality: "Quality") -> list[tuple[str, ...]]:
    from lab.benchmarks.retrieval import METRICS

    return [(_NAMES[mode], *(f"{quality.mean[mode][metric].mean:.3f}" for metric in METRICS)) for mode in quality.modes]


def _differences(quality: "Quality") -> list[tuple[str, ...]]:
    named = ((" − ".join(_NAMES[mode] for mode in name.split(" - ")), of) for name, of in quality.differences.items())
    return [(name, f"{of.mean:+.3f} [{of.low:+.3f}, {of.high:+.3f}]") for name, of in named]


def _indices(quality: "Quality") -> list[tuple[str, ...]]:
    return [
        (
            name,
            f"{of.index.passages:,}",
            f"{of.index.bm25_seconds:.2f}",
            f"{of.index.bm25_bytes / 1e6:.1f}",
            f"{of.index.dense_seconds:.1f}",
            f"{of.index.dense_bytes / 1e6:.1f}",
            of.index.dense_kind,
            f"{of.index.dense_recall_10:.3f}",
        )
        for name, of in quality.sets.items()
    ]


def _speeds(speed: "ServingSpeed") -> list[tuple[str, ...]]:
    """One row for each mode and number of clients; a server that was not measured there has dashes."""
    from lab.benchmarks.retrieve import KINDS

    of = {(load.mode, load.clients, load.kind): load for load in speed.loads}
    rows: list[tuple[str, ...]] = []
    places: list[tuple[Mode, int]] = [(load.mode, load.clients) for load in speed.loads if load.kind == "ours"]
    for mode, clients in places:
        loads = [of.get((mode, clients, kind)) for kind in KINDS["dense"]]
        figures = [part for load in loads for part in _speed_parts(load)]
        times = [speed.speedup(mode, clients, beside="plain"), speed.speedup(mode, clients, beside="alike")]
        lost = sum(load.lost for load in loads if load)
        shown = (f"{ratio:.2f}" if ratio else "–" for ratio in times)
        rows.append((_NAMES[mode], str(clients), *figures, *shown, str(lost)))
    return rows


def _speed_parts(load: "ClientLoad | None") -> tuple[str, str]:
    return (f"{load.qps:.0f}", f"{load.p99_ms:.0f} ms") if load else ("–", "–")


def report(quality: "Quality", speed: "ServingSpeed | None") -> str:
    """The page that `--write` keeps."""
    from lab.benchmarks.retrieval import METRICS

    verdict = "better than both parts" if quality.holds else "not better than both parts"
    every = [(f"{name}: {_NAMES[mode]}", of.modes[mode]) for name, of in quality.sets.items() for mode in quality.modes]
    whole = [(name, *(str(modes[metric]) for metric in METRICS)) for name, modes in every]
    by_set, means, differences, indices, *serving = (table.markdown() for table in tables(quality, speed))
    page = f"""# Retrieval

`cairn bench retrieval --write`; Python {platform.python_version()}, {cores()} cores. Passages and questions \
are encoded by {quality.model}{f"; the cross-encoder is {quality.rerank}" if quality.rerank else ""}.

Each question is one query. *all-gold@k* is the share of questions whose gold passages are all among the first k; the \
brackets are 95 % bootstrap intervals over questions. Hybrid fuses the first hundred passages of BM25 and of dense \
search by reciprocal rank, with one setting for all sets; its mean all-gold@10 is {verdict}.

## Mean over the sets

{means}

{differences}

*Three phrasings* asks the question, the question without its question word, and its keywords, and fuses what they \
find. All three say the same thing, so there is little to gain; what asks for something else is a policy's work.

## all-gold@10

{by_set}

## Indices

{indices}

Seconds are those of the build on this machine; reading the documents counts to BM25.

## Everything

{ReportTable(_MEAN_HEAD, whole).markdown()}
"""
    return page + (_speed_page(speed, serving[0]) if speed else "")


def _speed_page(speed: "ServingSpeed", table: str) -> str:
    return f"""
## Serving

{table}

`POST /retrieve` with one query a request on {speed.passages:,} passages; each client asks again as soon as it has its \
answer. Ours stands beside two servers of a few lines that handle one request at a time, with the same index, the same \
model in the same precision and the same answer. One encodes with the library's own `encode`: what such a server \
usually is. The other one encodes with our encoder, one query at a time: like for like, so that what is left is what \
serving many at once gains. Each runs in a process of its own, they get requests by turns over HTTP, and share the \
cores with the client. What waits at the same time is encoded together here, packed into rows without padding, by a \
thread for each core, as a recorded graph that needs no Python; BM25 has nothing to gain from that.
"""
