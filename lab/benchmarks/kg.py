"""How well and how fast the offline knowledge graph answers: MetaQA's questions, and a large made-up graph.

Look-ups are timed in a process of their own, which does nothing else: its memory is what a look-up needs.
"""

import asyncio
import json
import math
import random
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Final

from pydantic import BaseModel

from agent.errors import SetupError
from agent.parallel.processes import spawning
from agent.sources.base import SearchRequest
from agent.sources.kg.build import BuildProgress, build_graph
from agent.sources.kg.rank import LIMIT, TOKENS
from agent.sources.kg.source import KgSource
from agent.sources.kg.store import Graph
from agent.sources.kg.words import estimate_tokens, fold
from lab.benchmarks.graphs import alias_of, name_of, write_graph

BOUND_FOUND: Final = 0.97
BOUND_MS: Final = 2.0
BOUND_TYPO_MS: Final = 15.0
BOUND_RSS_MB: Final = 400.0
LOOKUPS: Final = 2000
"""Of each kind, unless another number is named."""
ROUNDS: Final = 3
AT_ONCE: Final = 8

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class LookupSpeed:
    """Look-ups on one thread, in ms, and what they found."""

    p50_exact_ms: float
    p99_exact_ms: float
    p50_prefix_ms: float
    p99_prefix_ms: float
    p50_words_ms: float
    p99_words_ms: float
    p50_edges_ms: float
    p99_edges_ms: float
    p50_typo_ms: float
    p99_typo_ms: float
    typo_found_10: float
    """Share of names with one wrong letter whose entity is among the first ten."""
    hub_degree: int
    questions_per_s: float
    """Whole questions through the source, `at_once` at the same time."""
    p99_loop_lag_ms: float
    """How late the event loop was meanwhile."""
    rss_mb: float


@dataclass(frozen=True)
class Answers:
    """Shares of MetaQA's questions whose gold answers are all among the triples given for them."""

    questions: int
    metaqa_1hop_found: float
    metaqa_1hop_found_bracketed: float
    """The same where the question has its entity in brackets."""
    metaqa_1hop_found_3: float
    """The same with three passages instead of all."""
    metaqa_2hop_found: float
    metaqa_3hop_found: float
    most_triples: int
    most_tokens: int
    metaqa_triples: int
    p99_question_ms: float


@dataclass(frozen=True)
class Size:
    """What was built."""

    triples: int
    entities: int
    names: int
    build_s: float
    file_mb: float
    build_rss_mb: float


def holds(speed: LookupSpeed, answers: Answers | None) -> bool:
    """Whether every bound is met; answers that were not measured do not count."""
    fast = max(speed.p99_exact_ms, speed.p99_prefix_ms, speed.p99_edges_ms) < BOUND_MS
    found = answers is None or (answers.metaqa_1hop_found >= BOUND_FOUND and answers.most_triples <= LIMIT)
    small = speed.rss_mb < BOUND_RSS_MB and (answers is None or answers.most_tokens <= TOKENS)
    return fast and found and small and speed.p99_typo_ms < BOUND_TYPO_MS


class _QuestionRow(BaseModel):
    """A line of MetaQA's questions."""

    question: str
    topic_entity: str
    answers: list[str]
    hops: int


def measure_answers(data: Path, *, every: int = 1) -> Answers | None:
    """Ask MetaQA's questions, or one of `every`; None where the data is not there."""
    folder = data / "kg_metaqa"
    if not (folder / "triples.tsv").is_file():
        return None
    lines = (folder / "questions_dev.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [_QuestionRow.model_validate(json.loads(line)) for line in lines[::every]]
    with tempfile.TemporaryDirectory() as scratch:
        graph = Path(scratch) / "metaqa.sqlite"
        card = build_graph([folder / "triples.tsv"], graph)
        return asyncio.run(_ask_all(graph, questions, triples=card.triples))


async def _ask_all(graph: Path, questions: Sequence[_QuestionRow], *, triples: int) -> Answers:
    source = KgSource.open(graph)
    seconds: list[float] = []
    most_triples = most_tokens = 0
    found: dict[str, list[bool]] = {name: [] for name in ("1", "2", "3", "bracketed", "three")}
    for row in questions:
        started = time.perf_counter()
        result = await source.search(SearchRequest(row.question, limit=LIMIT))
        texts = [passage.text for passage in result.passages]
        seconds.append(time.perf_counter() - started)
        found[str(row.hops)].append(_all_there(row.answers, texts))
        most_triples = max(most_triples, len(source.find(row.question)))
        most_tokens = max(most_tokens, sum(map(estimate_tokens, texts)))
        if row.hops == 1:
            bracketed = row.question.replace(row.topic_entity, f"[{row.topic_entity}]", 1)
            for kind, query, limit in (("bracketed", bracketed, LIMIT), ("three", row.question, 3)):
                result = await source.search(SearchRequest(query, limit=limit))
                found[kind].append(_all_there(row.answers, [passage.text for passage in result.passages]))
    await source.aclose()
    share = {name: sum(values) / len(values) for name, values in found.items()}
    return Answers(
        questions=len(found["1"]),
        metaqa_1hop_found=share["1"],
        metaqa_1hop_found_bracketed=share["bracketed"],
        metaqa_1hop_found_3=share["three"],
        metaqa_2hop_found=share["2"],
        metaqa_3hop_found=share["3"],
        most_triples=most_triples,
        most_tokens=most_tokens,
        metaqa_triples=triples,
        p99_question_ms=_ms(seconds, 0.99),
    )


def _all_there(answers: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether each answer is an end of a triple in the passages, whole."""
    ends = {fold(end) for text in texts for side in text.split(" | ")[::2] for end in (side, *side.split("; "))}
    return all(fold(answer) in ends for answer in answers)


def measure_speed(
    *,
    triples: int,
    seed: int = 0,
    lookups: int = LOOKUPS,
    scratch: Path | None = None,
    progress: Callable[[BuildProgress], None],
) -> tuple[Size, LookupSpeed]:
    """Write a made-up graph, build it, and time look-ups; nothing of it is kept.

    Args:
        triples: how many lines it has.
        seed: of the graph and of what is looked up.
        lookups: of each kind.
        scratch: folder for the files; about 150 bytes for each triple.
        progress: gets the progress of the building.
    """
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        progress(BuildProgress("writing the made-up graph"))
        files = write_graph(Path(folder), triples=triples, seed=seed)
        graph = Path(folder) / "graph.sqlite"
        started = time.perf_counter()
        card = build_graph([files.triples], graph, aliases=files.aliases, relations=files.relations, progress=progress)
        size = Size(
            triples=card.triples,
            entities=card.entities,
            names=card.names,
            build_s=time.perf_counter() - started,
            file_mb=graph.stat().st_size / 1e6,
            build_rss_mb=_peak_mb(),
        )
        progress(BuildProgress("looking up"))
        return size, _alone(graph, seed, lookups)


def _alone(graph: Path, seed: int, lookups: int) -> LookupSpeed:
    """Time look-ups in a fresh process."""
    context = spawning()
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(graph, seed, lookups, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        raise SetupError("the process that times look-ups ended early; is there enough memory?") from None
    finally:
        process.join(10)
        ours.close()


def _work(graph: Path, seed: int, lookups: int, answer: "Connection[LookupSpeed, LookupSpeed]") -> None:
    answer.send(time_lookups(graph, seed=seed, lookups=lookups))
    answer.close()


def time_lookups(path: Path, *, seed: int, lookups: int = LOOKUPS) -> LookupSpeed:
    """Time look-ups in a made-up graph, in this process, on one thread.

    All are made `ROUNDS` times, one round after the other, and each one counts with its median: what the machine did
    meanwhile for other programs is not the graph's.
    """
    rng = random.Random(seed)
    graph = Graph.open(path)
    numbers = [_some_key(graph, rng) for _ in range(lookups)]
    names = [alias_of(n) or name_of(n) if rng.random() < 0.3 else name_of(n) for n in numbers]
    starts = [name[: rng.randint(2, 8)] for name in names]
    wrong = [misspelled(name, rng) for name in names]
    some = [rng.randint(1, 1000) if rng.random() < 0.5 else rng.randint(1, graph.card.entities) for _ in names]
    ways: dict[str, list[Callable[[], object]]] = {
        "exact": [partial(graph.exact, name) for name in names],
        "prefix": [partial(graph.prefix, start) for start in starts],
        "words": [partial(graph.words, name.split()[-1]) for name in names],
        "edges": [partial(_both_ways, graph, entity) for entity in some],
        "typo": [partial(graph.typo, text, limit=10) for text in wrong],
    }
    graph.typo(wrong[0])  # imports what it needs
    timed = {name: _medians(acts) for name, acts in ways.items()}
    found = [
        any(name_of(int(match.entity.key[1:])) == name_of(number) for match in graph.typo(text, limit=10))
        for number, text in zip(numbers, wrong, strict=True)
    ]
    hub = graph.entity(1).degree
    graph.close()
    rate, lag = asyncio.run(_through_source(path, [f"what is the {name} of" for name in names[: lookups // 4]]))
    return LookupSpeed(
        **{f"p50_{name}_ms": _ms(values, 0.50) for name, values in timed.items()},
        **{f"p99_{name}_ms": _ms(values, 0.99) for name, values in timed.items()},
        typo_found_10=sum(found) / len(found),
        hub_degree=hub,
        questions_per_s=rate,
        p99_loop_lag_ms=lag,
        rss_mb=_peak_mb(),
    )


def _both_ways(graph: Graph, entity: int) -> None:
    graph.edges(entity, "head")
    graph.edges(entity, "tail")


def _medians(acts: Sequence[Callable[[], object]]) -> list[float]:
    rounds = [[_timed(act) for act in acts] for _ in range(ROUNDS)]
    return [median(times) for times in zip(*rounds, strict=True)]


def _some_key(graph: Graph, rng: random.Random) -> int:
    """Half of what is looked up is among the thousand that are named most."""
    many = graph.card.entities
    entity = graph.entity(rng.randint(1, min(1000, many)) if rng.random() < 0.5 else rng.randint(1, many))
    return int(entity.key[1:])


def misspelled(name: str, rng: random.Random) -> str:
    """A name with one letter left out, put in, exchanged or turned round with the next one."""
    at = rng.randrange(1, len(name) - 1)
    match rng.randrange(4):
        case 0:
            return name[:at] + name[at + 1 :]
        case 1:
            return name[:at] + rng.choice(_LETTERS) + name[at:]
        case 2:
            return name[:at] + rng.choice(_LETTERS) + name[at + 1 :]
        case _:
            return name[:at] + name[at + 1] + name[at] + name[at + 2 :]


async def _through_source(path: Path, questions: Sequence[str]) -> tuple[float, float]:
    """Questions a second, and the event loop's p99 lag in ms, with `AT_ONCE` questions at the same time."""
    source = KgSource.open(path)
    left = iter(questions)
    lags: list[float] = []

    async def work() -> None:
        for question in left:
            await source.search(SearchRequest(question, limit=5))

    async def watch() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.002)
            lags.append(time.perf_counter() - before - 0.002)

    started = time.perf_counter()
    watcher = asyncio.create_task(watch())
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())
    seconds = time.perf_counter() - started
    watcher.cancel()
    await source.aclose()
    return len(questions) / seconds, _ms(lags, 0.99)


def _timed(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def _ms(seconds: Sequence[float], share: float) -> float:
    """The quantile in ms."""
    ordered = sorted(seconds) or [0.0]
    return 1000 * ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def _peak_mb() -> float:
    """The most memory that this process held; a process that was just started does not count its parent's."""
    status = Path("/proc/self/status")
    if status.exists() and (peak := re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8"))):
        return int(peak[1]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
