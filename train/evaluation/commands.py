"""`cairn eval`: the whole agent over a list of questions, with intervals."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agent.cli.console import messages, note, output, print_json
from agent.cli.options import (
    BaseUrlOption,
    CheckpointOption,
    ConfigOption,
    CorpusOption,
    JsonOption,
    ModelOption,
    PolicyOption,
    ProtocolOption,
    SourcesOption,
    WorldOption,
)
from agent.errors import SetupError

if TYPE_CHECKING:
    from train.evaluation.report import Figures
    from train.evaluation.session import Evaluation

Baseline = Literal["closed-book", "first-passage"]

_EXAMPLES = """
[bold]Examples[/bold]

cairn eval --world test --protocol cairn

cairn eval --questions dev.jsonl --corpus my-index --policy openai --base-url http://127.0.0.1:11434/v1
--model qwen3:8b --out runs/dev

cairn eval --world test --baseline closed-book
"""


def register(app: typer.Typer) -> None:
    """Add `eval` to the root."""
    app.command("eval", epilog=_EXAMPLES)(evaluate_command)


def evaluate_command(
    *,
    questions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Questions as JSON lines; without it, the world's own.")
    ] = None,
    corpus: CorpusOption = None,
    world: WorldOption = None,
    protocol: ProtocolOption = None,
    policy: PolicyOption = None,
    base_url: BaseUrlOption = None,
    model: ModelOption = None,
    checkpoint: CheckpointOption = None,
    sources: SourcesOption = None,
    baseline: Annotated[
        Baseline | None,
        typer.Option(help="Instead of the agent: answer without searching, or read the first passage perfectly."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only the first N questions.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, metavar="N", help="Rollouts at the same time.")] = 16,
    seed: Annotated[int, typer.Option(help="For sampling; greedy decoding does not use it.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep traces, results and the report; go on with an older run.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the whole agent over many questions and report how good its answers are.

    A line of --questions is {"id", "question", "answers", "supporting"?,
    "hops"?, "type"?}: answers and supporting (ids of gold passages) are lists.
    EM and F1 are SQuAD's; an empty answer is wrong. A rollout that an engine
    or a source failed is counted apart. With --out, the same command goes on
    where an interrupted run stopped.
    """
    from agent.settings import load_settings
    from train.evaluation.report import table
    from train.evaluation.session import Evaluation

    settings = load_settings(
        config,
        policy=policy,
        base_url=base_url,
        model=model,
        checkpoint=checkpoint,
        protocol=protocol,
        sources=sources,
        corpus=corpus,
        world=world,
    )
    evaluation = Evaluation(
        settings, questions, baseline=baseline, limit=limit, concurrency=concurrency, seed=seed, out=out
    )
    try:
        figures = _watched(evaluation)
    except KeyboardInterrupt:
        if out:
            note(f"what was scored is kept in {out}; the same command goes on")
        raise
    if as_json:
        print_json(figures)
    else:
        output().print(table(figures, evaluation.title))
    if figures["infrastructure"]:
        note(f"{figures['infrastructure']} rollouts failed for reasons outside of the policy; they are not scored")
    if not figures["n"]:
        raise SetupError("no rollout could be scored")


def _watched(evaluation: "Evaluation") -> "Figures":
    """Run with a progress bar that tells the EM so far."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("EM {task.fields[em]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=messages(), transient=True, disable=not messages().is_terminal) as bar:
        task = bar.add_task("", total=None, em="–")

        def show(done: int, total: int, em: float) -> None:
            bar.update(task, completed=done, total=total, em=f"{em:.3f}")

        return evaluation.run(show)
