"""Models ready for use: the folder that the embedded engine serves, and the one that trainers begin from.

Both fetch and convert what is missing, once; the second call finds the folder in the cache.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agent.errors import CheckpointError
from agent.files.foreign import read_file
from agent.models.adapter import LoraAdapter, merged, open_adapter
from agent.models.base import Base, open_base
from agent.models.cache import ModelCache, ModelRecord, Progress, quiet
from agent.models.fetch import LocalModel, obtain
from agent.models.safetensors_file import Floats, Stored, write_safetensors
from agent.models.shape import config_of
from agent.models.to_ct2 import Quantization, write_ct2
from agent.models.weights import ModelWeights
from agent.models.wheel import DEFAULT
from agent.policies.checkpoint import open_checkpoint
from agent.policies.model_folder import ABOUT, About, read_about, write_about

Report = Callable[[int, int], None]
"""Gets the tensors that are done, and how many there are."""

_FORM: Final = 2
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
    made = _made_of(found, adapter)

    def write(folder: Path) -> ModelRecord:
        read = open_base(found.path)
        weights = made.weights(read)
        write_ct2(
            read, weights, folder, about=made.about(read), quantization=quantization, report=_layers(progress)
        )  # fmt: skip
        made.put_protocols(folder)
        open_checkpoint(folder)
        return made.record(quantization)

    needs = 3 * _bytes(found.path) if quantization == "int8" else 12 * _bytes(found.path)
    return cache.make(
        "served", f"{made.name}-{made.key(quantization)[:12]}", write, needs=needs, progress=progress
    ).folder


def hub_folder(
    model: str = DEFAULT,
    *,
    adapter: Path | None = None,
    stored: Stored = "bfloat16",
    fetching: bool = True,
    cache: ModelCache | None = None,
    progress: Progress = quiet,
) -> Path:
    """The folder of a model in the hub's form, for transformers, vLLM and training; it is made first, in the cache.

    A model that is in this form already is not copied, unless an adapter is merged into it.

    Args:
        model: a known name, ORG/NAME on the hub, a GGUF file, or a folder in the hub's form.
        adapter: merged into it, as by `ready_policy_folder`; what its cairn.json says is put beside the model.
        stored: what the weights of a GGUF are kept as. bfloat16 takes half of the disk; float32 is exact.
        fetching: whether the model may be fetched where it isn't on this machine.
        cache: the user's, unless another one is given.
        progress: receives `fetching` and `unpacking` (bytes), and `converting` (tensors).

    Raises:
        SetupError: the model is not at hand, or the cache cannot be written. CheckpointError: it cannot be converted.
    """
    cache = cache or ModelCache()
    found = obtain(model, cache=cache, fetching=fetching, progress=progress)
    if found.path.is_dir() and adapter is None:
        return found.path
    made = _made_of(found, adapter)

    def write(folder: Path) -> ModelRecord:
        read = open_base(found.path)
        write_hub(read, made.weights(read), folder, stored=stored, report=_layers(progress))
        if adapter is not None:
            write_about(folder, made.about(read))
            made.put_protocols(folder)
        return made.record(stored)

    needs = 8 * _bytes(found.path)
    return cache.make(
        "hub", f"{made.name}-{stored}-{made.key(stored)[:12]}", write, needs=needs, progress=progress
    ).folder


@dataclass(frozen=True)
class _MadeOf:
    """A model and, where one is merged into it, an adapter with what it says of itself."""

    found: LocalModel
    folder: Path | None
    merging: LoraAdapter | None
    says: About | None
    own: Mapping[str, bytes]
    """Files of protocols that the adapter brings."""

    @property
    def name(self) -> str:
        alone = f"{self.found.name}-{self.folder.name}" if self.folder else self.found.name
        return self.says.name if self.says else alone

    def key(self, stored: str) -> str:
        says = self.says and self.says.model_dump_json()
        return _key(self.found.sha256, self.merging.sha256 if self.merging else "", stored, says, self.own)

    def record(self, stored: Stored | Quantization) -> ModelRecord:
        adapter = str(self.folder) if self.folder else ""
        return ModelRecord(
            name=self.name, source=self.found.name, sha256=self.key(stored), stored=stored, adapter=adapter
        )  # fmt: skip

    def weights(self, read: Base) -> ModelWeights:
        return read.weights if self.merging is None else merged(read.weights, self.merging, name=self.found.name)

    def about(self, read: Base) -> About:
        context = read.weights.shape.context
        says = self.says or About(
            name=self.name, protocols=_PROTOCOLS, context_tokens=context, eos=read.tokenizer.end
        )  # fmt: skip
        return says.model_copy(update={"context_tokens": min(context, says.context_tokens)})

    def put_protocols(self, folder: Path) -> None:
        for file, content in self.own.items():
            (folder / file).write_bytes(content)


def _made_of(found: LocalModel, adapter: Path | None) -> _MadeOf:
    if adapter is None:
        return _MadeOf(found, None, None, None, {})
    merging = open_adapter(adapter)
    says = read_about(adapter) if (adapter / ABOUT).is_file() else None
    return _MadeOf(found, adapter.resolve(), merging, says, _own_protocols(adapter, says) if says else {})


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


def write_hub(
    base: Base, weights: ModelWeights, out: Path, *, stored: Stored, report: Report = lambda _, __: None
) -> None:
    """Write a model into a folder that is there and empty.

    Args:
        base: the model, for its tokenizer.
        weights: its own, or with an adapter in them.
        out: the folder.
        stored: what the weights are kept as; bfloat16 takes half of the disk, and rounds.
        report: how far it is.

    Raises:
        CheckpointError: the model cannot be read.
        OSError: the folder cannot be written.
    """
    shape, tokenizer = weights.shape, base.tokenizer
    shapes = shape.tensors()

    def tensors() -> Iterator[tuple[str, Floats]]:
        for done, name in enumerate(shapes):
            report(done, len(shapes))
            yield name, weights.read(name)
        report(len(shapes), len(shapes))

    write_safetensors(out / "model.safetensors", tensors(), shapes, stored=stored)
    ids = base.tokenizer.ids()
    _write(out / "config.json", config_of(shape) | ids | {"dtype": stored})
    _write(out / "generation_config.json", ids)
    _write(out / "tokenizer_config.json", tokenizer.config() | {"model_max_length": shape.context})
    (out / "tokenizer.json").write_text(tokenizer.json, encoding="utf-8")
    if tokenizer.chat_template is not None:
        (out / "chat_template.jinja").write_text(tokenizer.chat_template, encoding="utf-8")


def _write(path: Path, fields: dict[str, Any]) -> None:
    path.write_text(json.dumps(fields, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
