"""Options that several commands share. Those of the agent are settings of the same name; None leaves them to these."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

if TYPE_CHECKING:
    from agent.settings import CairnSettings

_WRITES: Final = "What writes"
_SEARCHED: Final = "What is searched"

PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="NAME",
        help="embedded (the shipped checkpoint), openai (an endpoint), transformers or vllm (a model of this process).",
        rich_help_panel=_WRITES,
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="OpenAI-compatible endpoint, such as http://127.0.0.1:11434/v1.",
        rich_help_panel=_WRITES,
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="DIR|NAME",
        help="A checkpoint's folder, or the name of the endpoint's model.",
        rich_help_panel=_WRITES,
    ),
]
TokenizerOption = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        metavar="DIR",
        help="Tokenizer of the endpoint's model, for completions: a folder, or a name on the hub.",
        rich_help_panel=_WRITES,
    ),
]
DeviceOption = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="NAME",
        help="Device for transformers: cpu, cuda, cuda:1.",
        show_default="a GPU, if there is one",
        rich_help_panel=_WRITES,
    ),
]
DtypeOption = Annotated[
    str | None,
    typer.Option(
        "--dtype",
        metavar="NAME",
        help="float32 or bfloat16, for transformers and vllm.",
        show_default="the model's; for transformers on a CPU float32",
        rich_help_panel=_WRITES,
    ),
]
CheckpointOption = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="An exported checkpoint for the embedded policy.",
        rich_help_panel=_WRITES,
    ),
]
ProtocolOption = Annotated[
    str | None,
    typer.Option(
        "--protocol",
        metavar="NAME",
        help="cairn, another one of cairn protocol list, or a protocol file (.toml).",
        rich_help_panel=_WRITES,
    ),
]
PromptFileOption = Annotated[
    Path | None,
    typer.Option(
        "--prompt-file",
        metavar="FILE",
        help="The texts that a checkpoint's profile needs.",
        rich_help_panel=_WRITES,
    ),
]
SourcesOption = Annotated[
    str | None,
    typer.Option(
        "--sources", metavar="A,B", help="Search only these sources, such as web,news.", rich_help_panel=_SEARCHED
    ),
]
LiveOption = Annotated[
    bool | None,
    typer.Option(
        "--live/--no-live",
        help="Search the live web, news, arXiv and wikis.",
        show_default="if a key is set",
        rich_help_panel=_SEARCHED,
    ),
]
CorpusOption = Annotated[
    Path | None,
    typer.Option("--corpus", metavar="PATH", help="Your documents, or an index of them.", rich_help_panel=_SEARCHED),
]
KgOption = Annotated[
    Path | None,
    typer.Option("--kg", metavar="FILE", help="A graph file made by cairn kg build.", rich_help_panel=_SEARCHED),
]
WorldOption = Annotated[
    str | None,
    typer.Option(
        "--world",
        metavar="NAME",
        help="The little world, if nothing else is searched: test, dev-v2, or a folder.",
        rich_help_panel=_SEARCHED,
    ),
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings file, instead of ./cairn.toml.")
]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", min=1, metavar="N", help="Processes that share the work.", show_default="1")
]
WorkOption = Annotated[
    Literal["local", "ray"] | None,
    typer.Option("--work", help="Where they are: this machine, or a Ray cluster.", show_default="local"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]

AGENT: Final = {
    "policy": PolicyOption,
    "base_url": BaseUrlOption,
    "model": ModelOption,
    "tokenizer": TokenizerOption,
    "device": DeviceOption,
    "dtype": DtypeOption,
    "checkpoint": CheckpointOption,
    "protocol": ProtocolOption,
    "prompt_file": PromptFileOption,
    "sources": SourcesOption,
    "live": LiveOption,
    "corpus": CorpusOption,
    "kg": KgOption,
    "world": WorldOption,
}
"""The options of a command that needs an agent: setting → option."""

Load = Callable[..., "CairnSettings"]
"""Reads the settings; keyword arguments are what other options say."""


def with_agent_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the agent's options and --config; it takes `load` in their place, which reads the settings.

    A command that wants to know the settings file, too, takes `config`.
    """
    own = {name: parameter for name, parameter in inspect.signature(command).parameters.items() if name != "load"}

    def called(**given: Any) -> None:
        config = given["config"] if "config" in own else given.pop("config")
        flags = {name: given.pop(name) for name in AGENT}

        def load(**more: Any) -> "CairnSettings":
            from agent.settings import load_settings

            return load_settings(config, **(flags | more))

        command(**given, load=load)

    shared = {**AGENT, "config": ConfigOption}
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in shared.items()
        if name not in own
    ]
    called.__signature__ = inspect.Signature([*own.values(), *added])  # pyright: ignore[reportFunctionMemberAccess]
    called.__name__, called.__doc__ = command.__name__, command.__doc__
    return called
