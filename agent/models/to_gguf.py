"""From a model to one GGUF file, which llama.cpp, Ollama and LM Studio run."""

from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final, Literal

import gguf
import numpy as np
from numpy.typing import NDArray

from agent.errors import CheckpointError
from agent.models.adapter import CONFIG, merged, open_adapter
from agent.models.base import Base, open_base
from agent.models.cache import ModelCache
from agent.models.fetch import obtain
from agent.models.safetensors_file import Floats
from agent.models.shape import DecoderShape, gguf_name
from agent.models.tokenizer import TokenizerFiles, begins, gguf_tokenizer
from agent.models.weights import ModelWeights, permute, permuted_heads
from agent.policies.hub_form import open_hub_form
from agent.policies.model_folder import ABOUT, look_at, read_about

Packing = Literal["f16", "bf16", "q8_0", "f32"]
Report = Callable[[int, int], None]
"""Gets the tensors that are done, and how many there are."""
_KINDS: Final[dict[Packing, tuple[gguf.GGMLQuantizationType, gguf.LlamaFileType]]] = {
    "f32": (gguf.GGMLQuantizationType.F32, gguf.LlamaFileType.ALL_F32),
    "f16": (gguf.GGMLQuantizationType.F16, gguf.LlamaFileType.MOSTLY_F16),
    "bf16": (gguf.GGMLQuantizationType.BF16, gguf.LlamaFileType.MOSTLY_BF16),
    "q8_0": (gguf.GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
}


def export_gguf(
    folder: Path, out: Path, *, packing: Packing, name: str | None = None, report: Report = lambda _, __: None
) -> str:
    """Write a checkpoint in the hub's form as GGUF; gives the name that the file says.

    Args:
        folder: of the checkpoint, of a run with one in its folder `hub`, or of an adapter in peft's form, which is
            merged into the model that it names.
        out: the file.
        packing: of the matrices.
        name: of the model; without it what its cairn.json says, or the folder's.
        report: how far it is.

    Raises:
        CheckpointError: the checkpoint cannot be read or converted, or the file cannot be written.
    """
    if out.is_dir():
        raise CheckpointError(f"{out} is a folder; name the file to write, such as {out / 'model.gguf'}")
    base, weights, named = _with_adapter(folder) if (folder / CONFIG).is_file() else _checkpoint(folder)
    named = name or named
    try:
        write_gguf(base, weights, out, name=named, packing=packing, report=report)
    except OSError as error:
        raise CheckpointError(f"{out} cannot be written: {error.strerror or error}; choose another place") from error
    return named


def _checkpoint(folder: Path) -> tuple[Base, ModelWeights, str]:
    """A checkpoint in the hub's form, with its name."""
    found = look_at(folder)
    if found.hub is None or found.missing:
        raise CheckpointError(found.missing)
    base = open_base(found.hub)
    return base, base.weights, found.about.name if found.about else open_hub_form(str(found.hub)).name


def _with_adapter(folder: Path) -> tuple[Base, ModelWeights, str]:
    """The model that an adapter names, with the adapter in it, and the adapter's name."""
    adapter = open_adapter(folder)
    found = obtain(adapter.base, cache=ModelCache())
    base = open_base(found.path)
    named = read_about(folder).name if (folder / ABOUT).is_file() else folder.resolve().name
    return base, merged(base.weights, adapter, name=found.name), named


def write_gguf(
    base: Base, weights: ModelWeights, out: Path, *, name: str, packing: Packing, report: Report = lambda _, __: None
) -> None:
    """Write a model into a file; an older one of this name is replaced once the new one is whole.

    Args:
        base: the model, for its tokenizer.
        weights: its own, or with an adapter in them.
        out: the file.
        name: of the model, as the file says it.
        packing: of the matrices; norms and biases are float32. Matrices whose rows q8_0 cannot cut are f16.
        report: how far it is.

    Raises:
        CheckpointError: the model cannot be read, or llama.cpp has no name for what its tokenizer does.
        OSError: the file cannot be written.
    """
    said = gguf_tokenizer(base.tokenizer.json, weights.shape.vocabulary)
    out.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(mkdtemp(dir=out.parent, prefix=".gguf-"))
    try:
        _write(folder / out.name, base.tokenizer, said, weights, name=name, packing=packing, report=report)
        (folder / out.name).replace(out)
    finally:
        (folder / out.name).unlink(missing_ok=True)
        folder.rmdir()


def _write(
    path: Path,
    tokenizer: TokenizerFiles,
    said: dict[str, Any],
    weights: ModelWeights,
    *,
    name: str,
    packing: Packing,
    report: Report,
) -> None:
    shape = weights.shape
    kind, file_type = _KINDS[packing]
    writer = gguf.GGUFWriter(path, shape.kind)
    try:
        writer.add_name(name)
        writer.add_file_type(file_type)
        writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
        _say_shape(writer, shape)
        _say_tokenizer(writer, tokenizer, said)
        shapes = shape.tensors()
        kinds = {tensor: _kind(size, kind) for tensor, size in shapes.items()}
        for tensor, size in shapes.items():
            block, of_block = gguf.GGML_QUANT_SIZES[kinds[tensor]]
            count = int(np.prod(size)) // block * of_block
            writer.add_tensor_info(gguf_name(tensor), size, np.dtype(np.float32), count, raw_dtype=kinds[tensor])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for done, tensor in enumerate(shapes):
            report(done, len(shapes))
            writer.write_tensor_data(_packed(weights, tensor, kinds[tensor]))
        report(len(shapes), len(shapes))
    finally:
        writer.close()


def _kind(size: tuple[int, ...], kind: gguf.GGMLQuantizationType) -> gguf.GGMLQuantizationType:
    if len(size) == 1:
        return gguf.GGMLQuantizationType.F32
    return kind if size[-1] % gguf.GGML_QUANT_SIZES[kind][0] == 0 else gguf.GGMLQuantizationType.F16


def _packed(weights: ModelWeights, tensor: str, kind: gguf.GGMLQuantizationType) -> NDArray[Any]:
    numbers: Floats = weights.read(tensor)
    heads = permuted_heads(weights.shape, tensor)
    if heads is not None:
        numbers = permute(numbers, heads)
    if kind == gguf.GGMLQuantizationType.F16 and np.abs(numbers).max() > np.finfo(np.float16).max:
        raise CheckpointError(f"{tensor} holds numbers that f16 cannot hold; save it as bf16 or f32")
    return gguf.quants.quantize(numbers, kind)


def _say_shape(writer: gguf.GGUFWriter, shape: DecoderShape) -> None:
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_width)
    writer.add_value_length(shape.head_width)
    writer.add_rope_dimension_count(shape.head_width)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_layer_norm_rms_eps(shape.epsilon)
    writer.add_vocab_size(shape.vocabulary)
    if shape.rope_factor != 1.0:
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(shape.rope_factor)


def _say_tokenizer(writer: gguf.GGUFWriter, tokenizer: TokenizerFiles, said: dict[str, Any]) -> None:
    number = {token: at for at, token in enumerate(said["tokens"])}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(said["pre"])
    writer.add_token_list(said["tokens"])
    writer.add_token_types(said["types"])
    writer.add_token_merges(said["merges"])
    writer.add_eos_token_id(number[tokenizer.end])
    for token, say in (
        (tokenizer.begin, writer.add_bos_token_id),
        (tokenizer.unknown, writer.add_unk_token_id),
        (tokenizer.padding, writer.add_pad_token_id),
    ):
        if token in number:
            say(number[token])
    writer.add_add_bos_token(begins(tokenizer.json))
    if tokenizer.chat_template is not None:
        writer.add_chat_template(tokenizer.chat_template)
