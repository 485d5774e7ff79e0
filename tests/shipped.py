"""The shipped checkpoint of the little world in both of its forms."""

import shutil
from pathlib import Path
from typing import Final

from agent.build.shipped import newest_checkpoint
from lab.shipped import HUB

__all__ = ["CT2", "HUB", "NAME", "both_forms"]

CT2: Final = newest_checkpoint()
NAME: Final = "cairn-tiny-v2"


def both_forms(folder: Path) -> Path:
    """A folder as a run leaves it: `hub`, `ct2` and the card."""
    shutil.copytree(HUB, folder / "hub")
    shutil.copytree(CT2, folder / "ct2")
    shutil.copyfile(CT2.parent / "README.md", folder / "README.md")
    return folder
