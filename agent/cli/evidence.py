"""`cairn evidence`: search for a question, and give the evidence instead of the answer."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.console import complain, note, output, print_json, printable
from agent.cli.options import JsonOption, Load, with_agent_options

if TYPE_CHECKING:
    from agent.rstool import Downstream, EvidenceBundle, SizeBudget
    from agent.settings import CairnSettings

_EXAMPLES = """
[bold]Examples[/bold]

cairn evidence "Where was the director of Aurora Falls born?"

cairn evidence "…" --json | jq .claims

cairn evidence "…" --answer-with llama3.2:3b --base-url http://127.0.0.1:11434/v1
"""
_DOWNSTREAM = "Who answers from it"
ANSWER_SECONDS = 600.0
"""Of silence: a large model on a laptop reads the evidence for minutes."""


def register(app: typer.Typer) -> None:
    """Add `evidence` to the root."""
    app.command("evidence", epilog=_EXAMPLES)(with_agent_options(evidence))


def evidence(
    question: Annotated[str, typer.Argument(help="The question.")],
    *,
    max_chars: Annotated[int, typer.Option(min=600, help="Characters of evidence; whole claims are left out.")] = 8000,
    answer_with: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Let this model answer from the evidence, too: at --base-url, or at --answer-url.",
            rich_help_panel=_DOWNSTREAM,
        ),
    ] = None,
    answer_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Endpoint of that model, if --base-url is the policy's.",
            rich_help_panel=_DOWNSTREAM,
        ),
    ] = None,
    as_json: JsonOption = False,
    load: Load,
) -> None:
    """Search for a question and print the evidence, for a model or a person who wants to answer themselves.

    Claims come with quotations from their sources and the result of their
    check. They are printed ready for a prompt: labelled as untrusted, between
    marks that no page can forge. --json prints the whole bundle.
    """
    from agent.build.agent import notices
    from agent.cli.model import ready
    from agent.rstool import SizeBudget

    settings = load(answer_url=answer_url)
    if answer_with and not settings.answer_url and not settings.model:  # then the endpoint is the other model's alone
        settings = load(policy="embedded")
    settings = ready(settings)
    where = settings.answer_url or settings.base_url
    if answer_with and not where:
        raise typer.BadParameter("this model needs an endpoint; add --base-url URL", param_hint="--answer-with")
    for notice in notices(settings):
        note(notice)
    bundle, said = asyncio.run(_run(question, settings, SizeBudget(chars=max_chars), answer_with, where))
    _print(bundle, said, as_json=as_json)
    if bundle.outcome == "failed" or (said and said.outcome == "failed"):
        raise typer.Exit(1)


async def _run(
    question: str, settings: "CairnSettings", budget: "SizeBudget", model: str | None, where: str
) -> "tuple[EvidenceBundle, Downstream | None]":
    from agent.build.agent import build_agent
    from agent.rstool import answer_with, gather

    agent = build_agent(settings)
    try:
        bundle = await gather(question, agent=agent, budget=budget)
    finally:
        await agent.aclose()
    if model is None:
        return bundle, None
    from agent.outbound.llm import LlmClient
    from agent.outbound.retries import Retries
    from agent.settings.local_file import refuse_plain_key

    own = settings.api_key if where == settings.base_url else settings.answer_key
    key = own.get_secret_value()
    refuse_plain_key(where, key, allowed=settings.plain_http)
    async with LlmClient(
        base_url=where, model=model, api_key=key, seconds=ANSWER_SECONDS, retries=Retries(0)
    ) as client:
        return bundle, await answer_with(bundle, client)


def _print(bundle: "EvidenceBundle", said: "Downstream | None", *, as_json: bool) -> None:
    """The bundle on standard output; what went wrong as sentences on standard error."""
    if as_json:
        print_json(bundle.model_dump(mode="json") | ({"downstream": said.model_dump(mode="json")} if said else {}))
    else:
        output().print(printable(bundle.to_prompt()), markup=False)
        if said and said.answer is not None:
            output().print(
                printable(f"\n{said.model} answers: {said.answer}\nCairn answers: {said.ours or '–'}"), markup=False
            )
    if not bundle.claims:
        complain(bundle.why_empty)
    if said and said.outcome == "failed":
        complain(said.why)
