"""The user's own settings file, in the configuration folder of the user alone: under `cairn.toml`, above the defaults.

The settings of the page write it. A key that it holds goes to no other address than the one that it was given for.
"""

import json
import os
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from platformdirs import user_config_path

from agent.errors import SetupError
from agent.files.own import NotPrivate, private_folder, read_bounded
from agent.settings.settings import USER_FILE


def user_file() -> Path:
    """Where it is."""
    return user_config_path("cairn", appauthor=False) / USER_FILE


def read_user_file() -> dict[str, Any]:
    """What it sets; nothing where there is none.

    Raises:
        SetupError: it cannot be read, or others could have written it.
    """
    path = user_file()
    if not path.exists():
        return {}
    try:
        private_folder(path.parent)
        return tomllib.loads(read_bounded(path).decode("utf-8"))
    except NotPrivate:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise SetupError(f"your settings file {path} cannot be read ({error}); correct or remove it") from error


def write_user_file(values: Mapping[str, Any]) -> None:
    """Replace what it sets: texts, numbers, yes or no, and lists of them.

    Raises:
        SetupError: it cannot be written.
    """
    path = user_file()
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in sorted(values.items())]
    try:
        private_folder(path.parent)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{USER_FILE}-")  # mode 0600
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines(lines)
        Path(name).replace(path)
    except OSError as error:
        raise SetupError(f"your settings file {path} cannot be written: {error.strerror or error}") from error
