"""`cairn eval`: the whole agent over a list of questions, with intervals."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agent.cli.console import messages, note, output, print_json
from agent.cli.options import JsonOption, Load, with_agent_options
from agent.errors import SetupError

if TYPE_CHECKING:
    from train.evaluation.report import Figures
    from train.evaluation.session import Evaluation

QuestionsOption = Annotated[
    Path | None, typer.Option("--questions", metavar="FILE", help="Questions as JSON lines, not the world's own.")
]
BaselineOption = Annotated[
    Literal["closed-book", "first-passage"] | None,
    typer.Option("--baseline", help="Instead: answer without searching, or read the first passage perfectly."),
]
LimitOption = Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Only the first N questions.")]
ConcurrencyOption = Annotated[int, typer.Option("--concurrency", min=1, metavar="N", help="Rollouts at the same time.")]
SeedOption = Annotated[int, typer.Option("--seed", help="For sampling; greedy decoding does not use it.")]
OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Keep traces, results and report; go on with an older run.")
]

_EXAMPLES = """
[bold]Examples[/bold]

cairn eval --world test --protocol cairn

cairn eval --questions dev.jsonl --corpus my-index --policy openai --base-url http://127.0.0.1:11434/v1
--model qwen3:8b --out runs/dev

cairn eval --world test --baseline closed-book
"""


def register(app: typer.Typer) -> None:
    """Add `eval` to the root."""
    app.command("eval", epilog=_EXAMPLES)(with_agent_options(evaluate_command))


def evaluate_command(
    *,
    questions: QuestionsOption = None,
    baseline: BaselineOption = None,
    limit: LimitOption = None,
    concurrency: ConcurrencyOption = 16,
    seed: SeedOption = 0,
    out: OutOption = None,
    as_json: JsonOption = False,
    load: Load,
) -> None:
    """Run the whole agent over many questions and report how good its answers are.

    A line of --questions is {"id", "question", "answers", "supporting"?,
    "hops"?, "type"?}: answers and supporting (ids of gold passages) are lists.
    EM and F1 are SQuAD's; an empty answer is wrong. A rollout that an engine
    or a source failed is counted apart. With --out, the same command goes on
    where an interrupted run stopped.
    """
    from train.evaluation.session import Evaluation

    evaluation = Evaluation(
        load(), questions, baseline=baseline, limit=limit, concurrency=concurrency, seed=seed, out=out
    )
    try:
        figures = _watched(evaluation)
    except KeyboardInterrupt:
        if out:
            note(f"what was scored is kept in {out}; the same command goes on")
        raise
    _tell(figures, evaluation.title, as_json=as_json)


def _tell(figures: "Figures", title: str, *, as_json: bool) -> None:
    from train.evaluation.report import table

    if as_json:
        print_json(figures)
    else:
        output().print(table(figures, title))
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
