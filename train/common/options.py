"""Options that training commands have in common."""

from pathlib import Path
from typing import Annotated

import typer

OutOption = Annotated[Path, typer.Option("--out", help="Folder of the run.")]
StartOption = Annotated[
    str | None, typer.Option("--start", help="A checkpoint in the hub's form to begin from, instead of the recipe's.")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")]
ThreadsOption = Annotated[int, typer.Option("--threads", min=0, help="CPU threads in total; 0: torch chooses.")]
