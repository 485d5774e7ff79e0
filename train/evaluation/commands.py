"""`cairn eval`: the whole agent, or another one, over a list of questions, with intervals."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from agent.cli.console import messages, note, output, print_json
from agent.cli.options import AGENT, JsonOption, Load, WorkersOption, WorkOption, with_agent_options
from agent.errors import SetupError
from train.evaluation import commands_compare

if TYPE_CHECKING:
    from agent.settings import CairnSettings
    from train.evaluation.endpoint import EndpointOptions
    from train.evaluation.judge import JudgeSettings
    from train.evaluation.report import Figures
    from train.evaluation.session import Evaluation

_QUESTIONS = "Which questions"
_OTHERS = "Another agent"
_MEASURED = "How answers are measured"
_RUN = "How the run goes"

QuestionsOption = Annotated[
    Path | None,
    typer.Option(
        "--questions",
        metavar="FILE",
        help="Questions as JSON lines, instead of the world's.",
        rich_help_panel=_QUESTIONS,
    ),
]
DatasetOption = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        metavar="NAME",
        help="Their published format, such as hotpotqa.",
        show_default="recognised",
        rich_help_panel=_QUESTIONS,
    ),
]
LimitOption = Annotated[
    int | None,
    typer.Option(
        "--limit", min=1, metavar="N", help="At most N questions, the first ones.", rich_help_panel=_QUESTIONS
    ),
]
SampleOption = Annotated[
    int | None,
    typer.Option("--sample", metavar="SEED", help="Sample them with this seed instead.", rich_help_panel=_QUESTIONS),
]
TypesOption = Annotated[
    str | None,
    typer.Option("--types", metavar="A,B", help="Only questions of these types.", rich_help_panel=_QUESTIONS),
]
BaselineOption = Annotated[
    Literal["closed-book", "one-search", "gold-passages", "first-passage", "plain-rag"] | None,
    typer.Option(
        "--baseline",
        help="Instead: the agent without searching, with one round of searches, or with the gold passages for every "
        "query; a perfect reader of the first passage; one request to a general model with what one search found.",
    ),
]
GuardOption = Annotated[
    bool,
    typer.Option(
        "--guard/--no-guard",
        help="Answer questions outside of the little world with a sentence, as users see it.",
    ),
]
EndpointOption = Annotated[
    str | None,
    typer.Option(
        "--endpoint",
        metavar="URL",
        help="Evaluate this OpenAI-compatible agent, such as https://example.org/v1; --model names it.",
        rich_help_panel=_OTHERS,
    ),
]
ApiOption = Annotated[
    Literal["chat", "responses"],
    typer.Option("--api", help="Its interface: /chat/completions or /responses.", rich_help_panel=_OTHERS),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--api-key-env",
        metavar="NAME",
        help="The environment variable that holds its key.",
        show_default="CAIRN_API_KEY",
        rich_help_panel=_OTHERS,
    ),
]
PlainOption = Annotated[
    bool,
    typer.Option(
        "--plain", help="Send the bare question, without the request for a short answer.", rich_help_panel=_OTHERS
    ),
]
StreamOption = Annotated[
    bool, typer.Option("--stream/--no-stream", help="Request the answer as a stream.", rich_help_panel=_OTHERS)
]
TimeoutOption = Annotated[
    float,
    typer.Option("--timeout", min=0.1, metavar="SECONDS", help="Timeout of one attempt.", rich_help_panel=_OTHERS),
]
TriesOption = Annotated[
    int, typer.Option("--tries", min=1, max=10, metavar="N", help="Attempts per question.", rich_help_panel=_OTHERS)
]
NormalisationOption = Annotated[
    Literal["squad", "triviaqa", "unicode", "none"],
    typer.Option("--normalisation", help="Normalisation for EM, F1 and cover.", rich_help_panel=_MEASURED),
]
JudgeUrlOption = Annotated[
    str | None,
    typer.Option(
        "--judge-url",
        metavar="URL",
        help="OpenAI-compatible endpoint of a model that judges answers.",
        rich_help_panel=_MEASURED,
    ),
]
JudgeModelOption = Annotated[
    str, typer.Option("--judge-model", metavar="NAME", help="Name of the judge model.", rich_help_panel=_MEASURED)
]
JudgeKeyOption = Annotated[
    str | None,
    typer.Option(
        "--judge-key-env",
        metavar="NAME",
        help="The environment variable that holds the judge's key.",
        rich_help_panel=_MEASURED,
    ),
]
JudgeBlocksOption = Annotated[
    bool,
    typer.Option(
        "--judge-blocks", help="Also judge what was shown and merged; many requests.", rich_help_panel=_MEASURED
    ),
]
ConcurrencyOption = Annotated[
    int,
    typer.Option("--concurrency", min=1, metavar="N", help="Questions at the same time.", rich_help_panel=_RUN),
]
SeedOption = Annotated[
    int, typer.Option("--seed", help="For sampling; greedy decoding does not use it.", rich_help_panel=_RUN)
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Write traces, results and a report there; continues an older run.",
        rich_help_panel=_RUN,
    ),
]
RetryOption = Annotated[
    bool,
    typer.Option("--retry-failed", help="When continuing, repeat the questions that failed.", rich_help_panel=_RUN),
]
MostOption = Annotated[
    float,
    typer.Option(
        "--max-failed", min=0, max=1, metavar="SHARE", help="Stop if a larger share fails.", rich_help_panel=_RUN
    ),
]

_EXAMPLES = """
[bold]Examples[/bold]

cairn eval --world test --protocol cairn

cairn eval --questions dev.jsonl --corpus my-index --policy openai --base-url http://127.0.0.1:11434/v1
--model qwen3:8b --out runs/dev

cairn eval --world test --baseline closed-book

MY_KEY=… cairn eval --endpoint https://example.org/v1 --model my-agent --api-key-env MY_KEY --out runs/my-agent

[dim]For an agent that shall search the little world:[/dim] cairn serve --retrieval-only --world test
"""


def register(app: typer.Typer) -> None:
    """Add `eval` and what belongs to it to the root."""
    app.command("eval", epilog=_EXAMPLES)(with_agent_options(evaluate_command))
    commands_compare.register(app)


def evaluate_command(
    *,
    questions: QuestionsOption = None,
    dataset: DatasetOption = None,
    limit: LimitOption = None,
    sample: SampleOption = None,
    types: TypesOption = None,
    baseline: BaselineOption = None,
    guard: GuardOption = True,
    endpoint: EndpointOption = None,
    api: ApiOption = "chat",
    api_key_env: KeyOption = None,
    plain: PlainOption = False,
    stream: StreamOption = True,
    timeout: TimeoutOption = 300.0,
    tries: TriesOption = 3,
    normalisation: NormalisationOption = "squad",
    judge_url: JudgeUrlOption = None,
    judge_model: JudgeModelOption = "",
    judge_key_env: JudgeKeyOption = None,
    judge_blocks: JudgeBlocksOption = False,
    concurrency: ConcurrencyOption = 16,
    seed: SeedOption = 0,
    out: OutOption = None,
    retry_failed: RetryOption = False,
    max_failed: MostOption = 0.5,
    workers: WorkersOption = None,
    work: WorkOption = None,
    as_json: JsonOption = False,
    context: typer.Context,
    load: Load,
) -> None:
    """Run an agent over many questions and report how good its answers are.

    A line of --questions is {"id", "question", "answers", "supporting"?,
    "hops"?, "type"?}; published files work, too. An empty answer is wrong;
    failures of an engine, a source or a server are counted separately. With
    --out an interrupted run can continue. --endpoint measures any agent.
    """
    from train.evaluation.chosen import QuestionChoice
    from train.evaluation.session import Evaluation, MeasureOptions

    settings = load(workers=workers, work=work)
    far = {"api": api, "plain": plain, "stream": stream, "seconds": timeout, "tries": tries}
    judge = _judge(settings, judge_url, judge_model, judge_key_env)
    evaluation = Evaluation(
        settings,
        questions,
        dataset=dataset,
        choice=QuestionChoice(limit=limit, sample=sample, types=_listed(types)),
        measured=MeasureOptions(normalisation=normalisation, judge=judge, judge_blocks=judge_blocks, guard=guard),
        endpoint=_endpoint(context, settings, endpoint, api_key_env, **far) if endpoint is not None else None,
        baseline=baseline,
        concurrency=concurrency,
        seed=seed,
        out=out,
        retry_failed=retry_failed,
        most_failed=max_failed,
    )
    _print(watched(evaluation, out), evaluation, as_json=as_json, out=out)


_OWN: Final = {*AGENT, "guard"} - {"model", "world"}
"""Options of the agent in this process alone. An endpoint has a model, too, and a world also has the questions."""


def _refuse_own_agent(context: typer.Context) -> None:
    """An option that would mean nothing is refused, not dropped."""
    own = [parameter for parameter in context.command.params if parameter.name in _OWN]
    sources = [(one, context.get_parameter_source(one.name or "")) for one in own]
    said = [
        " or ".join([*one.opts, *one.secondary_opts])
        for one, source in sources
        if source is not None and source.name == "COMMANDLINE"
    ]
    if said:
        why = f"{', '.join(said)} would change the agent in this process; leave it out, or leave out --endpoint"
        raise typer.BadParameter(why, param_hint="--endpoint")


def _endpoint(
    context: typer.Context, settings: "CairnSettings", url: str, key_name: str | None, **how: Any
) -> "EndpointOptions":
    """The agent that is measured; its key comes from the environment or the settings, never from the command line."""
    _refuse_own_agent(context)
    from agent.settings import secret_named
    from agent.settings.local_file import refuse_plain_key
    from train.evaluation.endpoint import EndpointOptions

    key = secret_named(key_name) if key_name else settings.api_key
    refuse_plain_key(url, key.get_secret_value(), allowed=settings.plain_http)
    return EndpointOptions(url=url, model=settings.model, key=key, **how)


def _judge(settings: "CairnSettings", url: str | None, model: str, key_name: str | None) -> "JudgeSettings | None":
    if url is None:
        if model or key_name:
            raise typer.BadParameter("a judge needs an endpoint; add --judge-url URL", param_hint="--judge-url")
        return None
    from agent.settings import secret_named
    from agent.settings.local_file import refuse_plain_key
    from train.evaluation.judge import JudgeSettings

    made = JudgeSettings(base_url=url, model=model)
    if key_name:
        made = replace(made, key=secret_named(key_name))
    refuse_plain_key(url, made.key.get_secret_value(), allowed=settings.plain_http, what="--judge-url")
    return made


def _listed(types: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (types or "").split(",") if name.strip())


def _print(figures: "Figures", evaluation: "Evaluation", *, as_json: bool, out: Path | None) -> None:
    from train.evaluation.report import table

    if as_json:
        print_json(figures)
    else:
        output().print(table(figures, evaluation.title))
    if failed := figures["infrastructure"]:
        again = "; to repeat them, run the same command with --retry-failed" if out else ""
        note(f"{failed} of {figures['questions']} questions failed and are not scored, not even as wrong{again}")
    if unjudged := sum(figures.get("judge_failures", {}).values()):
        note(f"the judge gave no verdict {unjudged} times: {next(iter(figures['judge_failures']))}")
    if not figures["n"]:
        raise SetupError(f"no question could be scored; the last error: {evaluation.last_failure}")


def watched(evaluation: "Evaluation", out: Path | None) -> "Figures":
    """Run with a progress bar that shows the EM and the failures so far."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from train.evaluation.session import SoFar

    columns = (
        TextColumn("EM {task.fields[em]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=messages(), transient=True, disable=not messages().is_terminal) as bar:
        task = bar.add_task("", total=None, em="–", failed="")

        def show(so_far: SoFar) -> None:
            em = "–" if so_far.em is None else f"{so_far.em:.3f}"
            failed = f"{so_far.failed} failed" if so_far.failed else ""
            bar.update(task, completed=so_far.done, total=so_far.total, em=em, failed=failed)

        try:
            return evaluation.run(show)
        except KeyboardInterrupt:
            if out:
                note(f"what was scored is kept in {out}; to continue, run the same command")
            raise
