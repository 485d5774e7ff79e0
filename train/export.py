"""From the hub's form of a checkpoint to the form of the embedded engine: CTranslate2, tokenizer.json, cairn.json."""

import importlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from agent.errors import CheckpointError
from agent.policies.checkpoint import MANIFEST, Checkpoint, open_checkpoint, write_manifest

Quantization = Literal["int8", "float32"]
_STORED = {"int8": "int8_float32", "float32": "float32"}
"""What is not quantized is kept in float32: few CPUs compute in the bfloat16 that a checkpoint may be saved in."""
DEFAULT_PROTOCOLS = ("cairn", "multisearch")


def export_checkpoint(
    hub_dir: Path,
    out_dir: Path,
    quantization: Quantization = "int8",
    *,
    name: str | None = None,
    protocols: Sequence[str] = DEFAULT_PROTOCOLS,
) -> Checkpoint:
    """Convert a checkpoint and write its manifest; what stands in `out_dir` by the same file names is replaced.

    Args:
        hub_dir: a folder of transformers (config.json, model.safetensors, tokenizer.json).
        out_dir: made if it is not there.
        quantization: of the weights. With `float32` log-probabilities agree with the trainer's.
        name: of the policy; without it the name of the folder (of the one above, if the folder is called `hub`).
        protocols: what it was trained on, the default one first.

    Raises:
        CheckpointError: the folder cannot be converted, or what came out cannot be used.
    """
    config = _read(hub_dir / "config.json")
    tokenizer = _read(hub_dir / "tokenizer_config.json")
    eos = tokenizer.get("eos_token")
    eos = eos.get("content") if isinstance(eos, dict) else eos
    if not isinstance(eos, str):
        raise CheckpointError(f"{hub_dir / 'tokenizer_config.json'} names no eos_token; add it")
    if not (hub_dir / "tokenizer.json").is_file():
        raise CheckpointError(f"{hub_dir} has no tokenizer.json; save its tokenizer in the fast form")
    out_dir.mkdir(parents=True, exist_ok=True)
    (out_dir / MANIFEST).unlink(missing_ok=True)  # until everything is written, it is no checkpoint
    _convert(hub_dir, out_dir, quantization)
    shutil.copyfile(hub_dir / "tokenizer.json", out_dir / "tokenizer.json")
    above = hub_dir.resolve()
    write_manifest(
        out_dir,
        name=name or (above.parent.name if above.name == "hub" else above.name),
        protocols=tuple(protocols),
        context_tokens=int(config["max_position_embeddings"]),
        eos=eos,
    )
    return open_checkpoint(out_dir)


def _convert(hub_dir: Path, out_dir: Path, quantization: Quantization) -> None:
    converters: Any = importlib.import_module("ctranslate2.converters")
    logging: Any = importlib.import_module("transformers.utils.logging")
    logging.disable_progress_bar()
    try:
        converter = converters.TransformersConverter(str(hub_dir))
        converter.convert(str(out_dir), quantization=_STORED[quantization], force=True)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise CheckpointError(f"{hub_dir} cannot be converted: {error}") from error
    finally:
        logging.enable_progress_bar()


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}); name a checkpoint in the hub's form") from error
