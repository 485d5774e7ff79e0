"""`cairn train distill`: rollouts that a check accepts, as rows for `cairn train sft --rows`."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.console import messages, output
from agent.cli.options import Load, with_agent_options
from agent.errors import SetupError
from train.evaluation.commands import (
    ConcurrencyOption,
    DatasetOption,
    LimitOption,
    QuestionsOption,
    SampleOption,
    TypesOption,
)

if TYPE_CHECKING:
    from agent.settings import CairnSettings
    from agent.trace import Trace
    from train.distill.keep import KeepRules
    from train.evaluation.chosen import QuestionChoice

_AGENT_SETTINGS = ("policy", "model", "checkpoint", "base_url", "protocol", "prompt_file", "temperature")
"""Settings that decide what rollouts say."""
_MADE = "Which rollouts"
_KEPT = "Which of them are kept"

TracesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--traces",
        metavar="FILE",
        help="Traces as JSON lines, as eval keeps them; repeatable. Without any, the rollouts are made now.",
        rich_help_panel=_MADE,
    ),
]
SeedsOption = Annotated[
    int, typer.Option("--tries", min=1, metavar="N", help="Rollouts of each question.", rich_help_panel=_MADE)
]
TemperatureOption = Annotated[
    float | None,
    typer.Option(
        "--temperature", min=0, max=2, help="Of the sampling; left out, the protocol's.", rich_help_panel=_MADE
    ),
]
AnyAnswerOption = Annotated[
    bool, typer.Option("--any-answer", help="Also those whose answer is wrong or unknown.", rich_help_panel=_KEPT)
]
AnyClaimsOption = Annotated[
    bool, typer.Option("--any-claims", help="Also those with claims that no passage says.", rich_help_panel=_KEPT)
]
RewardOption = Annotated[
    str | None,
    typer.Option("--reward", metavar="NAME", help="Ask this reward, too; see --least.", rich_help_panel=_KEPT),
]
RewardSettingOption = Annotated[
    list[str] | None,
    typer.Option("--reward-setting", metavar="NAME=VALUE", help="Of that reward; repeatable.", rich_help_panel=_KEPT),
]
LeastOption = Annotated[
    list[str] | None,
    typer.Option(
        "--least",
        metavar="PART=X",
        help="What a part of it, or total, must reach; repeatable.",
        rich_help_panel=_KEPT,
    ),
]
EachOption = Annotated[
    int,
    typer.Option(
        "--each", min=1, metavar="N", help="Kept of one question: the best N, each different.", rich_help_panel=_KEPT
    ),
]
OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for rows.jsonl and its manifest.")]


def distill_command(
    *,
    traces: TracesOption = None,
    questions: QuestionsOption = None,
    dataset: DatasetOption = None,
    limit: LimitOption = None,
    sample: SampleOption = None,
    types: TypesOption = None,
    tries: SeedsOption = 1,
    temperature: TemperatureOption = None,
    concurrency: ConcurrencyOption = 16,
    any_answer: AnyAnswerOption = False,
    any_claims: AnyClaimsOption = False,
    reward: RewardOption = None,
    reward_setting: RewardSettingOption = None,
    least: LeastOption = None,
    each: EachOption = 1,
    out: OutOption,
    load: Load,
) -> None:
    """Keep the rollouts that a check accepts, as rows to train on.

    They come from files of traces, or any policy makes them now: the shipped
    one, a model of this process, a served one. Kept is what ended with the right
    answer, in the form of its protocol, with claims that its passages say.

    Example: cairn train distill --policy openai --base-url http://127.0.0.1:11434/v1 --model qwen3:8b
    --world dev-v2 --tries 4 --temperature 0.8 --out runs/rows
    """
    from train.distill.rollouts import questions_of
    from train.distill.run import ROWS, DistillRecipe, distill
    from train.evaluation.chosen import QuestionChoice

    if traces:
        _refuse_sampling(tries=tries, temperature=temperature)
    settings = load(**({} if temperature is None else {"temperature": temperature}))
    if not (questions or settings.world):
        raise SetupError("name the questions: a list with --questions FILE, or a little world with --world dev-v2")
    check = _check(settings, reward, reward_setting, least, any_answer=any_answer, any_claims=any_claims, each=each)
    choice = QuestionChoice(limit=limit, sample=sample, types=tuple(filter(None, (types or "").split(","))))
    listed = choice.pick(questions_of(settings, questions, dataset))
    seeds = tuple(range(tries)) if traces is None else ()
    recipe = DistillRecipe(
        name=out.name,
        right=check.right,
        supported=check.supported,
        reward=reward or "",
        least=dict(check.least),
        reward_settings=_settings_of(reward_setting),
        each=each,
        seeds=seeds,
        agent={} if traces else {name: getattr(settings, name) for name in _AGENT_SETTINGS},
    )
    found = _read(traces) if traces else _made(settings, questions, dataset, out, seeds, choice, concurrency)
    done = asyncio.run(distill(found, listed, check, out, recipe=recipe, files=traces or ()))
    output().print(done.table())
    next_one = f"cairn train sft --recipe RECIPE --rows {out / ROWS} --out DIR"
    output().print(f"written: {out / ROWS} ({done.rows} rows)\nnext: {next_one}")


def _settings_of(said: list[str] | None) -> dict[str, Any]:
    return {name: _value(text) for name, text in map(_pair, said or [])}


def _check(
    settings: "CairnSettings",
    reward: str | None,
    reward_settings: list[str] | None,
    least: list[str] | None,
    *,
    any_answer: bool,
    any_claims: bool,
    each: int,
) -> "KeepRules":
    from agent.build.agent import build_protocol
    from train.distill.keep import KeepRules
    from train.rewards import RewardTools, reward_of

    protocol = build_protocol(settings) if settings.protocol.endswith(".toml") else None
    if (least or reward_settings) and not reward:
        raise SetupError("--least and --reward-setting are about a reward; name it with --reward")
    asks = None
    if reward:
        asks = reward_of(reward, _settings_of(reward_settings), tools=RewardTools(protocol=protocol))
    bounds = {name: _number(name, text) for name, text in map(_pair, least or [])}
    if asks and (unknown := sorted(set(bounds) - {*asks.parts, "total"})):
        raise SetupError(f"the reward {reward!r} has no part {unknown[0]!r}; it has {', '.join(asks.parts)}, total")
    return KeepRules(
        right=not any_answer, supported=not any_claims, protocol=protocol, reward=asks, least=bounds, each=each
    )


def _refuse_sampling(*, tries: int, temperature: float | None) -> None:
    said = "--tries" if tries > 1 else "--temperature" if temperature is not None else ""
    if said:
        raise typer.BadParameter("the rollouts of --traces are made already: leave out one of both", param_hint=said)


def _read(files: list[Path]) -> "list[Trace]":
    from agent.trace.io import read_traces

    return [trace for file in files for trace in read_traces(file)]


def _made(
    settings: "CairnSettings",
    questions: Path | None,
    dataset: str | None,
    out: Path,
    seeds: tuple[int, ...],
    choice: "QuestionChoice",
    concurrency: int,
) -> "list[Trace]":
    """Make the rollouts now, with a progress bar."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from train.distill.rollouts import make_rollouts
    from train.evaluation.session import SoFar

    columns = (TextColumn("EM {task.fields[em]}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=messages(), transient=True, disable=not messages().is_terminal) as bar:
        task = bar.add_task("", total=None, em="–")

        def show(so_far: SoFar) -> None:
            em = "–" if so_far.em is None else f"{so_far.em:.3f}"
            bar.update(task, completed=so_far.done, total=so_far.total, em=em)

        return make_rollouts(
            settings, questions, out, dataset=dataset, seeds=seeds, choice=choice, concurrency=concurrency, show=show
        )


def _pair(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark or not name.strip():
        raise SetupError(f"{text!r} is no NAME=VALUE")
    return name.strip(), value.strip()


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise SetupError(f"--least {name}={text} is no number") from error


def _value(text: str) -> Any:
    """A setting as JSON has it, or a word."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def register(app: typer.Typer) -> None:
    """Add `distill` to `train`."""
    app.command("distill")(with_agent_options(distill_command))
