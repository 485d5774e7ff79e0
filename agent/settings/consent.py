"""Which settings files the user has consented to: path and SHA-256 of each, in the user's configuration folder.

A file that was changed, moved or copied is another one, and needs consent of its own.
"""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Final, Literal, cast

from platformdirs import user_config_path

from agent.errors import SetupError
from agent.files.own import NotPrivate, private_folder, read_bounded

Consent = Literal["given", "changed", "none"]
_FILE: Final = "trusted.json"
_VERSION: Final = 1


def consent_to(path: Path, content: bytes) -> Consent:
    """Whether the user consented to this file with this content; "changed" where it was to another content.

    Raises:
        SetupError: the list cannot be read, or others could have written it.
    """
    known = trusted_files().get(place_of(path))
    if known is None:
        return "none"
    return "given" if known == fingerprint(content) else "changed"


def give_consent(path: Path, content: bytes) -> None:
    """Remember that the user consents to this content at this place.

    Raises:
        SetupError: the list cannot be written.
    """
    _write(trusted_files() | {place_of(path): fingerprint(content)})


def take_back(path: Path) -> bool:
    """Forget the consent to a file; False where there was none.

    Raises:
        SetupError: the list cannot be written.
    """
    files = trusted_files()
    there = files.pop(place_of(path), None) is not None
    if there:
        _write(files)
    return there


def trusted_files() -> dict[str, str]:
    """Path and SHA-256 of each file.

    Raises:
        SetupError: the list cannot be read, or others could have written it.
    """
    path = _path()
    try:
        if not path.exists():
            return {}
        private_folder(path.parent)
        held: Any = json.loads(read_bounded(path))
    except (OSError, ValueError) as error:
        raise SetupError(f"{path} cannot be read ({error}); remove it, and trust your files again") from error
    files = cast(dict[str, Any], held).get("files") if isinstance(held, dict) else None
    if not isinstance(files, dict):
        raise SetupError(f"{path} is not a list of trusted files; remove it, and trust your files again")
    return {str(name): str(known) for name, known in cast(dict[object, object], files).items()}


def place_of(path: Path) -> str:
    """Where a file is found: its folder without links. A file that is itself a link stays where the link is."""
    return str(path.expanduser().absolute().parent.resolve() / path.name)


def fingerprint(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _path() -> Path:
    return user_config_path("cairn", appauthor=False) / _FILE


def _write(files: dict[str, str]) -> None:
    path = _path()
    try:
        private_folder(path.parent)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=_FILE)  # 0600
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"version": _VERSION, "files": dict(sorted(files.items()))}, file, indent=2)
        Path(name).replace(path)
    except NotPrivate:
        raise
    except OSError as error:
        raise SetupError(f"the list of trusted files {path} cannot be written: {error.strerror or error}") from error
