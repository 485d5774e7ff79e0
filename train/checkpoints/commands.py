"""`cairn checkpoint export`, `mean` and `push`."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from agent.cli.console import messages, output

if TYPE_CHECKING:
    from agent.models.to_gguf import Packing


def export(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A checkpoint in the hub's form (transformers), or an adapter.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Where the exported checkpoint goes: a folder, or a GGUF file.")],
    form: Annotated[
        Literal["ct2", "gguf"], typer.Option("--format", help="For the embedded policy, or one file for llama.cpp.")
    ] = "ct2",
    quantization: Annotated[
        Literal["int8", "float32", "f16", "bf16", "q8_0"] | None,
        typer.Option(
            help="Precision of the weights. ct2: int8, or float32 where log-probabilities must be exact; "
            "gguf: f16, bf16, q8_0.",
            show_default="int8, f16",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the policy.", show_default="the folder's")] = None,
    protocol: Annotated[
        list[str] | None, typer.Option(help="What it was trained on, the default one first; may be repeated.")
    ] = None,
) -> None:
    """Export a checkpoint for the embedded policy (CTranslate2, without torch at run time), or as GGUF.

    Example: cairn checkpoint export runs/tiny/hub --out runs/tiny/ct2

    Example: cairn checkpoint export runs/small/hub --format gguf --quantization q8_0 --out small.gguf
    """
    fits = {"ct2": ("int8", "float32"), "gguf": ("f16", "bf16", "q8_0")}[form]
    if quantization is not None and quantization not in fits:
        raise typer.BadParameter(f"{form} has {', '.join(fits)}", param_hint="--quantization")
    if form == "gguf":
        if protocol:
            raise typer.BadParameter(
                "a GGUF file has no place for it: name it where the model is used", param_hint="--protocol"
            )
        _export_gguf(folder, out, cast(Any, quantization or "f16"), name)
        return
    from train.checkpoints.export import export_checkpoint

    made = export_checkpoint(folder, out, cast(Any, quantization or "int8"), name=name, protocols=protocol or ())
    size = sum((out / file).stat().st_size for file in made.manifest.files)
    output().print(f"exported: {out} ({made.manifest.name}, {quantization or 'int8'}, {size / 1e6:.1f} MB)")


def _export_gguf(folder: Path, out: Path, packing: "Packing", name: str | None) -> None:
    from agent.cli.progress import Stages
    from agent.models.to_gguf import export_gguf

    with Stages({"writing": "tensors"}) as bar:
        named = export_gguf(folder, out, packing=packing, name=name, report=partial(bar.show, "writing"))
    output().print(f"exported: {out} ({named}, {packing}, {out.stat().st_size / 1e6:.1f} MB)")


def mean(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR DIR…", help="Checkpoints of one training, or adapters.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Where the new checkpoint goes, in the hub's form.")],
) -> None:
    """Average the weights of checkpoints of one training: often better than each of them, and as fast as one.

    Example: cairn checkpoint mean runs/a/hub runs/b/hub --out runs/mean/hub
    """
    from train.checkpoints.mean import mean_of

    mean_of(folders, out)
    output().print(f"averaged: {out} ({len(folders)} checkpoints)")


def push(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Of a run or of a checkpoint, with its card.")],
    to: Annotated[str, typer.Option("--to", metavar="USER/NAME", help="The repository.")],
    private: Annotated[bool, typer.Option("--private", help="Make the new repository private.")] = False,
    update: Annotated[bool, typer.Option("--update", help="Push a new version into an existing repository.")] = False,
    message: Annotated[str, typer.Option(metavar="TEXT", help="Commit message.")] = "",
    hub: Annotated[
        str, typer.Option(metavar="URL", help="Another hub.", show_default="HF_ENDPOINT, or the public one")
    ] = "",
) -> None:
    """Push a checkpoint to the hub: the model, the exported form, and the card.

    The token is the one of `hf auth login`, or HF_TOKEN. Users who download the repository serve it with --model DIR.

    Example: cairn checkpoint push runs/tiny --to ada/tiny --private
    """
    from train.checkpoints.push import push as push_checkpoint
    from train.checkpoints.push import quiet

    if not messages().is_terminal:
        quiet()
    made = push_checkpoint(folder, to, private=private, update=update, message=message, hub=hub)
    output().print(f"pushed: {made.url} ({len(made.files)} files, commit {made.commit[:8]})")


def register(app: typer.Typer) -> None:
    """Add `export`, `mean` and `push` to the `checkpoint` group."""
    app.command("export")(export)
    app.command("mean")(mean)
    app.command("push")(push)
