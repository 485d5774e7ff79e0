"""`cairn serve`. What it needs is imported when it runs: the command itself starts fast."""

import os
import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from agent.cli.console import messages
from agent.cli.options import Load, with_agent_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.policies.local_servers import LocalServer
    from agent.settings import CairnSettings

_EXAMPLES = """
[bold]Examples[/bold]

cairn serve

cairn serve --corpus ./reports --watch

cairn serve --corpus ./reports --policy openai --base-url http://127.0.0.1:11434/v1 --model qwen3:8b

CAIRN_SERVER_KEY=… cairn serve --host 0.0.0.0

cairn serve --retrieval-only --corpus ./my-index --port 8001
"""


def register(app: typer.Typer) -> None:
    """Add `serve` to the root."""
    app.command("serve", epilog=_EXAMPLES)(with_agent_options(serve))


def serve(
    *,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Where to listen.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="0 picks a free one.", show_default="8000")] = None,
    insecure: Annotated[
        bool | None, typer.Option("--insecure", help="Serve other machines even if no key is set.")
    ] = None,
    watch: Annotated[
        bool | None, typer.Option("--watch", help="Update the index when documents of --corpus change.")
    ] = None,
    retrieval_only: Annotated[
        bool, typer.Option("--retrieval-only", help="Serve only POST /retrieve, without loading a policy.")
    ] = False,
    load: Load,
) -> None:
    """Serve the agent in OpenAI's format, and a page to ask it on.

    POST /v1/chat/completions answers with reasoning, searches, citations and
    usage, streamed or not; any OpenAI client works. POST /retrieve returns
    documents for many queries at once, as Search-R1's trainers request them.
    Only this machine is served, unless --host says otherwise; then a key is
    needed.
    """
    from agent.cli.model import ready
    from server import launch
    from server.runs.opening import check_store
    from server.telemetry.setup import set_up_log

    settings = load(host=host, port=port, insecure=insecure, watch=watch)
    set_up_log(settings)
    if not retrieval_only:
        check_store(settings)
    rules = launch.rules_of(settings, retrieval_only=retrieval_only)
    with launch.bind(settings.host, settings.port) as listener:
        settings = settings if retrieval_only else ready(settings)
        made = launch.make_retriever(settings) if retrieval_only else launch.make_service(settings)
        server = launch.make_server(made, rules, grace=launch.grace_of(settings))
        local = [] if retrieval_only else launch.local_servers_of(settings)

        def greet() -> None:
            address = launch.address_of(listener)
            _greet_retrieval(settings, address) if retrieval_only else _greet(settings, address, local=local)

        server.greet = greet
        again = launch.restarting(server, made)
        launch.run(server, listener)
    if again():
        command = [sys.executable, "-P", *sys.orig_argv[1:]]
        os.execv(command[0], command)  # with the settings as they are now


def _greet(settings: "CairnSettings", address: str, *, local: "Sequence[LocalServer]") -> None:
    from agent.build.agent import notices
    from agent.build.shipped import is_small

    shipped = "small-v1" if is_small(settings) else settings.checkpoint or "the shipped checkpoint"
    writes = str(shipped) if settings.policy == "embedded" else settings.model
    searches = _what_searches(settings)
    body = shlex.quote('{"model": "cairn", "stream": true, "messages": [{"role": "user", "content": "your question"}]}')
    say = messages().print
    say(f"[bold]Cairn[/] answers at [bold]{escape(address)}[/]  (Ctrl-C stops it)")
    say(f"  {escape(writes)} writes; searches: {escape(searches)}")
    for notice in notices(settings):
        say(f"  [yellow]{escape(notice)}[/]")
    for server in local:
        say(f"  [yellow]{escape(f'{server.name} runs on this machine: {server.command(server.models[0])}')}[/]")
    _say_curl(settings, f"-N {address}/v1/chat/completions", body)


def _greet_retrieval(settings: "CairnSettings", address: str) -> None:
    body = shlex.quote('{"queries": ["your query"], "topk": 3, "return_scores": true}')
    say = messages().print
    say(f"[bold]Cairn[/] retrieves at [bold]{escape(address)}/retrieve[/]  (Ctrl-C stops it)")
    say(f"  searches: {escape(_what_searches(settings))}; no policy is loaded")
    _say_curl(settings, f"{address}/retrieve", body)


def _what_searches(settings: "CairnSettings") -> str:
    from agent.build.sources import uses_manual, uses_world

    if uses_world(settings):
        return "the little world"
    if uses_manual(settings):
        return "Cairn's own manual (your documents: --corpus DIR)"
    parts = {
        f"the documents in {settings.corpus}{', watched' if settings.watch else ''}": settings.corpus,
        f"the graph in {settings.kg}": settings.kg,
        "the live web": settings.is_live,
        **dict.fromkeys((*settings.mcp, *settings.plugins), True),
    }
    return ", ".join(name for name, there in parts.items() if there) or ", ".join(settings.sources)


def _say_curl(settings: "CairnSettings", address: str, body: str) -> None:
    key = '-H "Authorization: Bearer $CAIRN_SERVER_KEY" ' if settings.server_key.get_secret_value() else ""
    messages().print(f"\n  curl {address} {key}\\")
    messages().print(f"    -H 'Content-Type: application/json' -d {escape(body)}\n")
