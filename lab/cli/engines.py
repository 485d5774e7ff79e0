"""`cairn bench engines`: one checkpoint on several engines, side by side."""

import asyncio
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from agent.cli.console import messages, note
from agent.cores import cores
from agent.errors import SetupError
from lab.cli.bench import bench_app
from lab.report import ReportTable, print_report, write_report
from lab.shipped import HUB

if TYPE_CHECKING:
    from agent.policies.base import Policy
    from agent.sources.base import Source
    from lab.benchmarks.engines import EngineFigures, Question

REPORT: Final = Path("docs/bench/engines.md")
CODE: Final = (
    "agent/policies",
    "agent/loop/loop.py",
    "lab/benchmarks/engines.py",
    "lab/cli/engines.py",
)
"""What the figures depend on."""
_COLUMNS: Final = ("engine", "EM", "equal rollouts", "log-probabilities within", "tokens a second")
_VLLM_CACHE: Final = 2 << 30
"""Bytes: on a CPU vLLM's default is 92 % of the memory, and our own process has some of that. Room for eight rollouts
of a small model; a large one on a GPU would want more."""


@bench_app.command("engines")
def engines(
    questions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Question list, not the world's; needs --corpus.")
    ] = None,
    *,
    corpus: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Documents or an index that is searched, not the world.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many questions.")] = 100,
    model: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Holds hub and ct2, or an adapter of smollm2-135m-instruct.")
    ] = None,
    float32: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A float32 export of the same, for embedded.")
    ] = None,
    world: Annotated[str, typer.Option(metavar="NAME", help="The little world of the questions.")] = "test-v2",
    protocol: Annotated[str, typer.Option(metavar="NAME", help="One that the checkpoint was trained on.")] = "cairn",
    at_once: Annotated[int, typer.Option(min=1, help="Rollouts at the same time.")] = 8,
    vllm: Annotated[bool, typer.Option("--vllm", help="Ask vLLM, too, where it is installed.")] = False,
    write: Annotated[bool, typer.Option("--write", help=f"Write the table to {REPORT}, too.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as one object.")] = False,
) -> None:
    """Ask every engine the same questions greedily, and compare what they say, id by id.

    The reference is the hub form in float32 (transformers; without torch the
    float32 export). The shipped form of embedded is int8: how often it says
    the same, and what that costs in right answers, is measured here.

    Example: cairn bench engines --limit 200

    Example: cairn bench engines --questions q.jsonl --corpus notes/ --model agent/checkpoints/small-v1
    """
    from agent.protocols import protocol_named
    from lab.benchmarks.engines import measure

    pairs, sources = _questions(world, questions, corpus, limit)
    loads = _engines(model, float32=float32, vllm=vllm)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    figures: list[EngineFigures] = []

    async def collect() -> None:
        with Progress(*columns, console=messages(), transient=True) as bar:
            task = bar.add_task("rollouts", total=len(pairs) * len(loads))
            async for one in measure(
                loads,
                questions=pairs,
                protocol=protocol_named(protocol),
                sources=sources,
                at_once=at_once,
                progress=lambda done: bar.update(task, completed=done),
            ):
                figures.append(one)  # noqa: PERF401 -- what there is when another engine fails

    try:
        asyncio.run(collect())
    finally:  # an engine that does not start loses nothing of those before it
        if figures:
            print_report([_table(figures)], {"engines": [asdict(one) for one in figures]}, as_json=json)
    if write:
        write_report(
            REPORT,
            _report(figures, about=_about(world, questions, model, vllm=vllm), protocol=protocol, at_once=at_once),
            code=CODE,
        )


def _questions(
    world: str, questions: Path | None, corpus: Path | None, limit: int
) -> "tuple[list[Question], Mapping[str, Source]]":
    """Questions with their answers, and what is searched for them."""
    from agent.build.sources import build_sources
    from agent.settings import CairnSettings
    from agent.sources.questions import read_questions
    from agent.world import load_world

    if (questions is None) != (corpus is None):
        raise SetupError("a question list needs what it is about: name --questions FILE and --corpus DIR together")
    if questions is None or corpus is None:
        named = load_world(world)
        return [(one.question, one.answers) for one in named.questions[:limit]], named.sources()
    listed = read_questions(questions)[:limit]
    return [(one.question, one.answers) for one in listed], build_sources(CairnSettings(corpus=corpus))


def _about(world: str, questions: Path | None, model: Path | None, *, vllm: bool) -> str:
    """The command's options."""
    said = [f"--questions {questions.name} --corpus …" if questions else f"--world {world}"]
    said += [f"--model {model}"] if model else []
    return " ".join([*said, *(["--vllm"] if vllm else [])])


@dataclass(frozen=True)
class _Forms:
    """One checkpoint in the forms that engines read."""

    hub: Path
    int8: Path
    float32: Path | None

    @classmethod
    def of(cls, model: Path, float32: Path | None) -> "_Forms":
        """Those in a folder; of an adapter, what is made of it and its model in the cache."""
        from agent.models.ready import hub_folder, ready_policy_folder

        if not (model / "adapter_config.json").is_file():
            return cls(model / "hub", model / "ct2", float32)
        exact = float32 or ready_policy_folder(model, quantization="float32")
        return cls(hub_folder(adapter=model, stored="float32"), ready_policy_folder(model), exact)


def _engines(model: Path | None, *, float32: Path | None, vllm: bool) -> "dict[str, Callable[[], Policy]]":
    """What there is to compare, the reference first."""
    from agent.build.shipped import newest_checkpoint
    from agent.policies.embedded import EmbeddedPolicy

    forms = _Forms.of(model, float32) if model else _Forms(HUB, newest_checkpoint(), float32)
    found: dict[str, Callable[[], Policy]] = {}
    if all(map(find_spec, ("torch", "transformers"))):
        from agent.policies.transformers import TransformersPolicy

        found["transformers, float32"] = partial(TransformersPolicy.load, str(forms.hub), dtype="float32")
    else:
        note("transformers is left out: pip install 'cairn-search[train]'")
    if forms.float32 is not None:
        found["embedded, float32"] = partial(EmbeddedPolicy.load, forms.float32, compute_type="float32")
    found["embedded, int8"] = partial(EmbeddedPolicy.load, forms.int8)
    if vllm:
        from agent.policies.vllm import VllmPolicy

        found["vllm, float32"] = partial(
            VllmPolicy.load, str(forms.hub), dtype="float32", kv_cache_memory_bytes=_VLLM_CACHE
        )
    return found


def _row(one: "EngineFigures") -> tuple[str, ...]:
    return (one.engine, f"{one.em:.3f}", f"{one.equal:.3f}", f"{one.furthest:.1e}", f"{one.tokens_per_s:,.0f}")


def _table(figures: "list[EngineFigures]") -> ReportTable:
    parted = [f"{one.engine}: {difference}" for one in figures if (difference := _difference(one))]
    caption = "\n".join([f"{figures[0].n} questions; equal to {figures[0].engine}, id by id", *parted])
    return ReportTable(_COLUMNS, [_row(one) for one in figures], caption=caption)


def _difference(one: "EngineFigures") -> str:
    if one.first_difference is None:
        return ""
    said, other = (text[:60].replace("\n", " ") for text in (one.first_difference.said, one.first_difference.reference))
    return f"at '{one.first_difference.question}' it first says '{said}' where the reference says '{other}'"


def _report(figures: "list[EngineFigures]", *, about: str, protocol: str, at_once: int) -> str:
    parted = "\n".join(f"- {one.engine}: {difference}." for one in figures if (difference := _difference(one)))
    return f"""# The engines

`cairn bench engines {about} --limit {figures[0].n} --protocol {protocol} --at-once {at_once} --write`; \
Python {platform.python_version()}, {cores()} cores.

One checkpoint, the same {figures[0].n} questions, greedy, {at_once} rollouts at the same time. *Equal rollouts*: \
share whose every id, sampled or not, is that of {figures[0].engine}. *Log-probabilities within*: their largest \
distance over the equal rollouts. EM is of answers as written.

{_table(figures).markdown()}

{parted or "No rollout differs."}
"""
