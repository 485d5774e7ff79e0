"""The shipped checkpoint in the form that trainings and vLLM begin from; the wheel has its int8 form alone."""

from pathlib import Path
from typing import Final

HUB: Final = Path(__file__).parent / "checkpoints" / "tiny-v2" / "hub"
