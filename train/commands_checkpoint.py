"""`cairn checkpoint export`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from agent.cli.console import output


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
    from train.export import DEFAULT_PROTOCOLS, export_checkpoint

    made = export_checkpoint(folder, out, quantization, name=name, protocols=protocol or DEFAULT_PROTOCOLS)
    size = sum((out / file).stat().st_size for file in made.manifest.files)
    output().print(f"exported: {out} ({made.manifest.name}, {quantization}, {size / 1e6:.1f} MB)")


def register(app: typer.Typer) -> None:
    """Add `export` to the `checkpoint` group."""
    app.command("export")(export)
