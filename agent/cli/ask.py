"""`cairn ask`: one question, its trace drawn while it happens, and the answer."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.console import complain, note, output, print_text
from agent.cli.options import JsonOption, Load, with_agent_options

if TYPE_CHECKING:
    from agent.loop.agent import Agent
    from agent.trace import Trace

_EXAMPLES = """
[bold]Examples[/bold]

cairn ask "Where was the director of Aurora Falls born?"

cairn ask "Who wrote the report?" --corpus ./reports --base-url http://127.0.0.1:11434/v1 --model qwen3:8b

cairn ask --json "…" | jq .steps

echo "a long question" | cairn ask -
"""


def register(app: typer.Typer) -> None:
    """Add `ask` to the root."""
    app.command("ask", epilog=_EXAMPLES)(with_agent_options(ask))


def ask(
    question: Annotated[str, typer.Argument(help="The question; - reads it from standard input.")],
    *,
    as_json: JsonOption = False,
    load: Load,
) -> None:
    """Ask one question and watch how it is answered.

    The policy thinks, plans searches that run at the same time, merges what
    they found, writes down its evidence and answers. Without a terminal the
    steps are printed as plain text; --json prints the whole trace instead.
    """
    from agent.build.agent import build_agent, notices
    from agent.cli.model import ready

    settings = ready(load())
    text = read_question(question, max_chars=settings.max_question_chars)
    agent = build_agent(settings)
    for notice in notices(settings):
        note(notice)
    trace = asyncio.run(_answer(agent, text, as_json=as_json))
    if trace.answer is None:
        complain(f"no answer: {trace.stopped.detail if trace.stopped else 'the rollout did not end'}")
        raise typer.Exit(1)


def read_question(question: str, *, max_chars: int) -> str:
    """The question of an argument, or that of standard input.

    Raises:
        BadParameter: it is empty or too long.
    """
    try:
        text = (sys.stdin.read() if question == "-" else question).strip()
        text.encode()
    except UnicodeError as error:
        raise typer.BadParameter("the question is not UTF-8; save or send it as such", param_hint="QUESTION") from error
    if not text:
        raise typer.BadParameter("the question is empty", param_hint="QUESTION")
    if len(text) > max_chars:
        raise typer.BadParameter(
            f"the question has {len(text):,} characters; at most {max_chars:,} are allowed", param_hint="QUESTION"
        )
    return text


async def _answer(agent: "Agent", question: str, *, as_json: bool) -> "Trace":
    """Run the rollout; Ctrl-C cancels it at whatever it waits for."""
    trace = agent.new_trace(question)
    try:
        if as_json:
            await agent.run(trace)
            print_text(trace.model_dump_json(), json=True)
        else:
            await _draw(agent, trace)
    finally:
        await agent.aclose()
    return trace


async def _draw(agent: "Agent", trace: "Trace") -> None:
    from agent.cli.draw import TraceView

    with TraceView(output()) as view:
        await agent.run(trace, emit=view.show)
        view.finish(trace)
