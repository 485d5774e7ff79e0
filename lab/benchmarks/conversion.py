"""How long a model takes from GGUF to the embedded engine's folder, and how much memory: on one core, without torch.

Each conversion runs in a process of its own, from which torch is kept out, as in the light install.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from agent.errors import SetupError

_SECONDS: Final = 600
_CONVERT: Final = """
import json, os, resource, sys, time
sys.modules["torch"] = None  # CTranslate2 imports it where it is, and needs it for nothing here
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from pathlib import Path
base, cache, adapter, quantization = sys.argv[1:]
began = time.perf_counter()
from agent.models.cache import ModelCache
from agent.models.ready import ready_policy_folder
folder = ready_policy_folder(
    Path(adapter) if adapter else None, base=base, quantization=quantization, cache=ModelCache(Path(cache))
)
seconds = time.perf_counter() - began
began = time.perf_counter()
ready_policy_folder(
    Path(adapter) if adapter else None, base=base, quantization=quantization, cache=ModelCache(Path(cache))
)
again = time.perf_counter() - began
try:  # the other figure counts what the parent had before this program began
    lines = open("/proc/self/status", encoding="utf-8").read().splitlines()
    (peak,) = (int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM"))
except OSError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
print(json.dumps({"seconds": seconds, "again_seconds": again, "peak_mb": peak, "served_mb": size}))
"""


@dataclass(frozen=True)
class ConversionFigures:
    """Of one conversion."""

    model: str
    adapter: bool
    quantization: str
    model_mb: float
    seconds: float
    """With the start of Python's libraries."""
    again_seconds: float
    """Of the second call, which finds the folder."""
    peak_mb: float
    """The most memory that the process had."""
    served_mb: float


def measure(model: Path, *, adapter: Path | None = None, quantization: str = "int8") -> ConversionFigures:
    """Convert a model once.

    Args:
        model: a GGUF file.
        adapter: that is merged into it.
        quantization: of the result.

    Raises:
        SetupError: it cannot be converted.
    """
    with TemporaryDirectory(prefix="cairn-bench-") as cache:
        words = [str(model), cache, str(adapter or ""), quantization]
        command = [sys.executable, "-P", "-c", _CONVERT, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode:
        raise SetupError(f"{model} was not converted: {done.stderr.strip()[-400:]}")
    said = json.loads(done.stdout)
    return ConversionFigures(model.name, adapter is not None, quantization, model.stat().st_size / 1e6, **said)
