"""Models ready for use: the folder that the embedded engine serves, and the one that trainers begin from.

Both fetch and convert what is missing, once; the second call finds the folder in the cache.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

from agent.errors import CheckpointError
from agent.foreign_files import read_file
from agent.models.adapter import Adapter, merged, open_adapter
from agent.models.base import open_base
from agent.models.cache import ModelCache, Progress, Record, quiet
from agent.models.fetch import Found, obtain
from agent.models.safetensors_file import Stored
from agent.models.to_ct2 import Quantization, write_ct2
from agent.models.to_hub import write_hub
from agent.models.wheel import DEFAULT
from agent.policies.checkpoint import open_checkpoint
from agent.policies.model_folder import ABOUT, About, read_about

_FORM: Final = 1
"""Of what is converted; another number makes what is in the cache void."""
_PROTOCOLS: Final = ("cairn", "multisearch")
_PROTOCOL_BYTES: Final = 1 << 20


def ready_policy_folder(
    adapter: Path | None = None,
    *,
    base: str = DEFAULT,
    quantization: Quantization = "int8",
    fetching: bool = True,
    cache: ModelCache | None = None,
    progress: Progress = quiet,
) -> Path:
    """The folder that the embedded engine serves; it is made first where it isn't there.

    Args:
        adapter: a folder with an adapter in peft's form, which is merged into the model. Its cairn.json says the name,
            the protocols and the context, and brings the protocols that are files.
        base: the model: a known name, ORG/NAME on the hub, a GGUF file, or a folder in the hub's form.
        quantization: of the matrices; float32 where log-probabilities must agree with the trainer's.
        fetching: whether the model may be fetched where it isn't on this machine.
        cache: the user's, unless another one is given.
        progress: receives `fetching`, `unpacking` (bytes), `converting` (layers), and `waiting` for another process.

    Raises:
        SetupError: the model is not at hand, or the cache cannot be written. CheckpointError: a file is damaged, of a
            kind that is not converted, or the adapter is of another model.
    """
    cache = cache or ModelCache()
    found = obtain(base, cache=cache, fetching=fetching, progress=progress)
    merging = None if adapter is None else open_adapter(adapter)
    about = read_about(adapter) if adapter is not None and (adapter / ABOUT).is_file() else None
    own = {} if adapter is None or about is None else _own_protocols(adapter, about)
    key = _key(found.sha256, merging.sha256 if merging else "", quantization, about and about.model_dump_json(), own)
    name = about.name if about else f"{found.name}-{adapter.resolve().name}" if adapter else found.name

    def write(folder: Path) -> Record:
        for file, content in own.items():
            (folder / file).write_bytes(content)
        _convert(found, merging, folder, about, name=name, quantization=quantization, progress=progress)
        return Record(
            name=name,
            source=found.name,
            sha256=key,
            stored=quantization,
            adapter=str(adapter.resolve()) if adapter else "",
        )

    needs = 3 * _bytes(found.path) if quantization == "int8" else 12 * _bytes(found.path)
    return cache.make("served", f"{name}-{key[:12]}", write, needs=needs, progress=progress).folder


def hub_folder(
    model: str = DEFAULT,
    *,
    stored: Stored = "bfloat16",
    fetching: bool = True,
    cache: ModelCache | None = None,
    progress: Progress = quiet,
) -> Path:
    """The folder of a model in the hub's form, from which training begins; one of a GGUF is made first, in the cache.

    Args:
        model: a known name, ORG/NAME on the hub, a GGUF file, or a folder in the hub's form.
        stored: what the weights of a GGUF are kept as. bfloat16 takes half of the disk; float32 is exact.
        fetching: whether the model may be fetched where it isn't on this machine.
        cache: the user's, unless another one is given.
        progress: receives `fetching` and `unpacking` (bytes), and `converting` (tensors).

    Raises:
        SetupError: the model is not at hand, or the cache cannot be written. CheckpointError: it cannot be converted.
    """
    cache = cache or ModelCache()
    found = obtain(model, cache=cache, fetching=fetching, progress=progress)
    if found.path.is_dir():
        return found.path
    key = _key(found.sha256, stored)

    def write(folder: Path) -> Record:
        read = open_base(found.path)
        write_hub(read, read.weights, folder, stored=stored, report=_layers(progress))
        return Record(name=found.name, source=found.name, sha256=key, stored=stored)

    needs = 8 * _bytes(found.path)
    return cache.make("hub", f"{found.name}-{stored}-{key[:12]}", write, needs=needs, progress=progress).folder


def _convert(
    found: Found,
    merging: Adapter | None,
    folder: Path,
    about: About | None,
    *,
    name: str,
    quantization: Quantization,
    progress: Progress,
) -> None:
    read = open_base(found.path)
    weights = read.weights if merging is None else merged(read.weights, merging, name=found.name)
    context = weights.shape.context
    said = about or About(name=name, protocols=_PROTOCOLS, context_tokens=context, eos=read.tokenizer.end)
    said = said.model_copy(update={"context_tokens": min(context, said.context_tokens)})
    write_ct2(read, weights, folder, about=said, quantization=quantization, report=_layers(progress))
    open_checkpoint(folder)


def _own_protocols(adapter: Path, about: About) -> dict[str, bytes]:
    """The files of protocols that an adapter brings."""
    files = [adapter / f"{name}.toml" for name in about.protocols if Path(name).name == name]
    try:
        return {file.name: read_file(file, most=_PROTOCOL_BYTES) for file in files if file.is_file()}
    except OSError as error:
        raise CheckpointError(
            f"{error.filename} cannot be read: {error.strerror or error}; copy the folder again"
        ) from error


def _key(*parts: object) -> str:
    said = [part.hex() if isinstance(part, bytes) else repr(part) for part in (_FORM, *parts)]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _bytes(path: Path) -> int:
    files = path.glob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def _layers(progress: Progress) -> Callable[[int, int], None]:
    return lambda done, total: progress("converting", done, total)
