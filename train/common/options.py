"""Options that training commands have in common."""

from pathlib import Path
from typing import Annotated

import typer

OutOption = Annotated[Path, typer.Option("--out", help="Folder of the run.")]
StartOption = Annotated[
    str | None, typer.Option("--start", help="A checkpoint in the hub's form to begin from, instead of the recipe's.")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on where the run in --out stopped.")]
ThreadsOption = Annotated[
    int, typer.Option("--threads", min=0, help="CPU threads in all; 0 leaves the choice to torch.")
]
