"""Checks the folder of an encoder or cross-encoder before it is loaded: it may hold weights and a tokenizer, no code.

sentence-transformers does what a folder's own files say. `modules.json` may name any class of its package, and
`sentence_bert_config.json` may hold arguments of transformers, among them the one that unpickles weights.
"""

import importlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, cast

from agent.errors import SetupError
from agent.files.foreign import MIB, read_text

_FETCHED: Final = ("*.json", "*.safetensors", "*.txt", "*.model")
"""Files that are fetched from the hub: configuration, weights that hold no code, and vocabularies."""
_LEFT_OUT: Final = ("onnx/*", "openvino/*")
_CONFIG_BYTES: Final = 8 * MIB
_MODULE: Final = re.compile(r"sentence_transformers(\.\w+)*\.(Transformer|Pooling|Normalize|Dense|LayerNorm)", re.ASCII)
"""Parts of a model. A `Router` would load other models, without the arguments that Cairn gives."""
_ACTIVATION: Final = re.compile(r"torch\.nn\.modules\.\w+\.\w+", re.ASCII)
_ARGUMENTS: Final = ("_args", "_kwargs", "_path", "_dir")
"""Ends of the keys that hold arguments for transformers or other places to load from."""
_PLAIN_ARGUMENTS: Final = frozenset({"processing_kwargs"})
"""Arguments of the tokenizer's calls, not of what is loaded."""


def fetch_model(name: str, *, organization: str, local: bool) -> Path:
    """Give the folder of a model on the Hugging Face hub, without files that can hold code.

    Args:
        name: OWNER/NAME, or the name alone.
        organization: the owner of a name alone.
        local: look in the cache of the hub and nowhere else.

    Raises:
        OSError: it isn't there, or can't be fetched.
    """
    hub: Any = importlib.import_module("huggingface_hub")
    whole = name if "/" in name else f"{organization}/{name}"
    folder = hub.snapshot_download(
        whole, allow_patterns=list(_FETCHED), ignore_patterns=list(_LEFT_OUT), local_files_only=local
    )
    return Path(folder)


def check_model(folder: Path) -> None:
    """Check that loading the folder runs and unpickles nothing of it.

    Raises:
        SetupError: it names classes, functions or arguments of its own, or its weights are pickled.
    """
    _check_part(folder)
    for module in _modules(folder):
        kind = str(module.get("type", ""))
        if not _MODULE.fullmatch(kind):
            raise SetupError(
                f"{folder / 'modules.json'} names {kind!r}, which Cairn doesn't load; choose another model"
            )
        _check_part(folder / str(module.get("path", "")))


def _modules(folder: Path) -> Iterable[dict[str, Any]]:
    path = folder / "modules.json"
    listed: Any = _read(path) if path.exists() else []
    modules: list[Any] = cast(list[Any], listed) if isinstance(listed, list) else [None]
    if not all(isinstance(one, dict) for one in modules):
        raise SetupError(f"{path} isn't a list of modules; choose another model, or save this one again")
    return modules


def _check_part(part: Path) -> None:
    for path in sorted(part.glob("sentence_*config.json")):
        for key, value in _object(path).items():
            if value and key.endswith(_ARGUMENTS) and key not in _PLAIN_ARGUMENTS:
                raise SetupError(f"{path} sets {key}, which Cairn doesn't pass on; remove it, or choose another model")
    for path in (part / "config.json", part / "config_sentence_transformers.json"):
        for name in _activations(_object(path) if path.exists() else {}):
            if not (isinstance(name, str) and _ACTIVATION.fullmatch(name)):
                raise SetupError(f"{path} names the activation {name!r}, which isn't one of torch.nn; choose another")
    if any(part.glob("pytorch_model*.bin")) and not any(part.glob("*.safetensors")):
        raise SetupError(
            f"the weights in {part} are pickled, which can run code; save the model again in the safetensors format"
        )


def _activations(config: dict[str, Any]) -> list[object]:
    """The names of functions that are imported and called."""
    inner = config.get("sentence_transformers")
    given = [
        config.get("activation_function"),
        config.get("activation_fn"),
        config.get("sbert_ce_default_activation_function"),
        cast(dict[str, Any], inner).get("activation_fn") if isinstance(inner, dict) else inner,
    ]
    return [name for name in given if name is not None]


def _object(path: Path) -> dict[str, Any]:
    found = _read(path)
    if not isinstance(found, dict):
        raise SetupError(f"{path} isn't a JSON object; choose another model, or save this one again")
    return cast(dict[str, Any], found)


def _read(path: Path) -> Any:
    try:
        return json.loads(read_text(path, most=_CONFIG_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise SetupError(f"{path} can't be read ({error}); choose another model, or save this one again") from error
