"""The heavy libraries of the extra `dense`, imported when they are used. Nothing here uses them."""

from importlib import import_module
from typing import Any

from agent.errors import SetupError


def need(module: str) -> Any:
    """Import a library of the extra `dense`.

    Raises:
        SetupError: it is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise SetupError(
            f"dense retrieval needs {error.name}, which the light install leaves out: pip install 'cairn-search[dense]'"
        ) from error
