"""`cairn checkpoint export`, `mean` and `push`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from agent.cli.console import messages, output


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A checkpoint in the hub's form (transformers).")],
    out: Annotated[Path, typer.Option("--out", help="Where the exported checkpoint goes.")],
    quantization: Annotated[
        Literal["int8", "float32"], typer.Option(help="Of the weights; float32 where log-probabilities must be exact.")
    ] = "int8",
    name: Annotated[str | None, typer.Option(help="Of the policy; without it, the folder's.")] = None,
    protocol: Annotated[
        list[str] | None, typer.Option(help="What it was trained on, the default one first; may be repeated.")
    ] = None,
) -> None:
    """Export a checkpoint for the embedded policy: CTranslate2, without torch at run time.

    Example: cairn checkpoint export runs/tiny/hub --out runs/tiny/ct2
    """
    from train.export import export_checkpoint

    made = export_checkpoint(folder, out, quantization, name=name, protocols=protocol or ())
    size = sum((out / file).stat().st_size for file in made.manifest.files)
    output().print(f"exported: {out} ({made.manifest.name}, {quantization}, {size / 1e6:.1f} MB)")


def mean(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR DIR…", help="Checkpoints of one training, hub form.")],
    out: Annotated[Path, typer.Option("--out", help="Where the new checkpoint goes, in the hub's form.")],
) -> None:
    """Average the weights of checkpoints of one training: often better than each of them, and as fast as one.

    Example: cairn checkpoint mean runs/a/hub runs/b/hub --out runs/mean/hub
    """
    from train.mean import mean_of

    mean_of(folders, out)
    output().print(f"averaged: {out} ({len(folders)} checkpoints)")


def push(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Of a run or of a checkpoint, with its card.")],
    to: Annotated[str, typer.Option("--to", metavar="USER/NAME", help="The repository.")],
    private: Annotated[bool, typer.Option("--private", help="Only its owners see the new repository.")] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Put a new version into a repository that is there.")
    ] = False,
    message: Annotated[str, typer.Option(metavar="TEXT", help="Of the commit.")] = "",
    hub: Annotated[
        str, typer.Option(metavar="URL", help="Another hub; left out: HF_ENDPOINT, or the public one.")
    ] = "",
) -> None:
    """Push a checkpoint to the hub: the model, the exported form, and the card.

    The token is the one of `hf auth login`, or HF_TOKEN. Whoever downloads the repository serves it with --model DIR.

    Example: cairn checkpoint push runs/tiny --to ada/tiny --private
    """
    from train.push import push as push_checkpoint
    from train.push import quiet

    if not messages().is_terminal:
        quiet()
    made = push_checkpoint(folder, to, private=private, update=update, message=message, hub=hub)
    output().print(f"pushed: {made.url} ({len(made.files)} files, commit {made.commit[:8]})")


def register(app: typer.Typer) -> None:
    """Add `export`, `mean` and `push` to the `checkpoint` group."""
    app.command("export")(export)
    app.command("mean")(mean)
    app.command("push")(push)
