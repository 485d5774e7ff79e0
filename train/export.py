"""From the hub's form of a checkpoint to the form of the embedded engine: CTranslate2, tokenizer.json, cairn.json.

Beside it, what the hub's form says of itself: a cairn.json of its own, with which `--model DIR` is enough to serve it.
"""

import importlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from agent.errors import CheckpointError
from agent.policies.checkpoint import MANIFEST, Checkpoint, open_checkpoint, write_manifest
from agent.policies.hub_form import open_hub_form
from agent.policies.model_folder import ABOUT, About, read_about, write_about
from train.garbage import frozen_heap
from train.own_protocols import put_beside

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
    protocols: Sequence[str] = (),
) -> Checkpoint:
    """Convert a checkpoint and write its manifest; what stands in `out_dir` by the same file names is replaced.

    Args:
        hub_dir: a folder of transformers (config.json, model.safetensors, tokenizer.json).
        out_dir: made if it is not there.
        quantization: of the weights. With `float32` log-probabilities agree with the trainer's.
        name: of the policy; without it what its cairn.json says, or else the name of the folder (of the one above, if
            the folder is called `hub`).
        protocols: what it was trained on, names or files, the default one first; without them what its cairn.json
            says, or else `DEFAULT_PROTOCOLS`. What a file holds is put beside the model, whole.

    Raises:
        CheckpointError: the folder cannot be converted, or what came out cannot be used.
        SetupError: the file of a protocol cannot be used.
    """
    says = _about(hub_dir, name=name, protocols=protocols)
    out_dir.mkdir(parents=True, exist_ok=True)
    (out_dir / MANIFEST).unlink(missing_ok=True)  # until everything is written, it is no checkpoint
    _convert(hub_dir, out_dir, quantization)
    own = [f"{protocol}.toml" for protocol in says.protocols if (hub_dir / f"{protocol}.toml").is_file()]
    for file in ("tokenizer.json", *own):
        shutil.copyfile(hub_dir / file, out_dir / file)
    write_manifest(out_dir, _with_own(out_dir, says))
    return open_checkpoint(out_dir)


def describe(
    hub_dir: Path,
    *,
    name: str | None = None,
    protocols: Sequence[str] = (),
    passages: Mapping[str, int] | None = None,
) -> About:
    """Write the cairn.json of a checkpoint in the hub's form: with it, the folder alone is enough to serve it.

    Args:
        hub_dir: a folder of transformers.
        name: of the policy; see `export_checkpoint`.
        protocols: what it was trained on, the default one first; see `export_checkpoint`.
        passages: a search showed in training, by protocol; without them what its cairn.json says.

    Raises:
        CheckpointError: the folder is none of that form.
        SetupError: the file of a protocol cannot be used.
    """
    says = _about(hub_dir, name=name, protocols=protocols)
    if passages is not None:
        says = says.model_copy(update={"passages": dict(passages)})
    says = _with_own(hub_dir, says)
    write_about(hub_dir, says)
    return says


def _with_own(folder: Path, says: About) -> About:
    """With the names of the protocols that were named by their files; these are put into the folder."""
    return says.model_copy(update={"protocols": put_beside(folder, says.protocols)})


def _about(hub_dir: Path, *, name: str | None, protocols: Sequence[str]) -> About:
    """What is said of a checkpoint: by the caller, by its own cairn.json, by its other files."""
    if not hub_dir.is_dir():
        raise CheckpointError(f"there is no folder {hub_dir}; name a checkpoint in the hub's form")
    form = open_hub_form(str(hub_dir))
    said = read_about(hub_dir) if (hub_dir / ABOUT).is_file() else None
    return About(
        name=name or (said.name if said else form.name),
        protocols=tuple(protocols) or (said.protocols if said else DEFAULT_PROTOCOLS),
        context_tokens=form.context_tokens,
        eos=form.codec.tokens[form.codec.eos],
        passages=said.passages if said else {},
    )


def _convert(hub_dir: Path, out_dir: Path, quantization: Quantization) -> None:
    converters: Any = importlib.import_module("ctranslate2.converters")
    logging: Any = importlib.import_module("transformers.utils.logging")
    logging.disable_progress_bar()

    class Converter(converters.TransformersConverter):
        """Runs no code of the folder's, and asks nobody whether it may."""

        def load_model(self, model_class: Any, model_name_or_path: str, **kwargs: Any) -> Any:
            return model_class.from_pretrained(
                model_name_or_path, **kwargs | {"use_safetensors": True, "trust_remote_code": False}
            )

        def load_tokenizer(self, tokenizer_class: Any, model_name_or_path: str, **kwargs: Any) -> Any:
            return tokenizer_class.from_pretrained(model_name_or_path, **kwargs | {"trust_remote_code": False})

    try:
        converter = Converter(str(hub_dir))
        with frozen_heap():
            converter.convert(str(out_dir), quantization=_STORED[quantization], force=True)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise CheckpointError(f"{hub_dir} cannot be converted: {error}") from error
    finally:
        logging.enable_progress_bar()
