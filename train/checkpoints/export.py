"""From the hub's form of a checkpoint to the form of the embedded engine: CTranslate2, tokenizer.json, cairn.json.

Beside it, what the hub's form says of itself: a cairn.json of its own, with which `--model DIR` is enough to serve it.
"""

import importlib
import json
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agent.errors import CheckpointError, SetupError
from agent.files.foreign import read_text
from agent.models.to_ct2 import Quantization, all_to_int8
from agent.policies.checkpoint import MANIFEST, Checkpoint, open_checkpoint, write_manifest
from agent.policies.hub_form import open_hub_form
from agent.policies.model_folder import ABOUT, About, read_about, write_about
from agent.protocols import TextProtocol, load_protocol
from train.checkpoints.garbage import no_full_collections

DEFAULT_PROTOCOLS = ("cairn", "multisearch")
_ALIKE: Final = {"int8": 0.98, "float32": 0.999}
"""How well logits of the engine must agree with the model's, as a correlation."""
_PROBED: Final = 48
_PROBED_MOST: Final = 1024
"""Tokens that they are looked at behind."""
_FIRST_ID, _IDS = 5, 250
"""Their ids, within every vocabulary."""


def export_checkpoint(
    hub_dir: Path,
    out_dir: Path,
    quantization: Quantization = "int8",
    *,
    name: str | None = None,
    protocols: Sequence[str] = (),
) -> Checkpoint:
    """Convert a checkpoint and write its manifest; files of the same names in `out_dir` are replaced.

    Args:
        hub_dir: a folder of transformers (config.json, model.safetensors, tokenizer.json), or of an adapter, which is
            merged into its model.
        out_dir: made if it is not there.
        quantization: of the weights. With `float32` log-probabilities agree with the trainer's.
        name: of the policy; without it what its cairn.json says, or else the name of the folder (of the one above, if
            the folder is called `hub`).
        protocols: what it was trained on, names or files, the default one first; without them what its cairn.json
            says, or else `DEFAULT_PROTOCOLS`. What a file holds is put beside the model, whole.

    Raises:
        CheckpointError: the folder cannot be converted, or what came out cannot be used.
        SetupError: the file of a protocol cannot be used, or an adapter cannot be merged.
    """
    with whole(hub_dir) as found:
        return _exported(found, out_dir, quantization, _about(found, name=name, protocols=protocols))


@contextmanager
def whole(folder: Path) -> Generator[Path]:
    """A folder itself; of an adapter, one in the hub's form with its model and the adapter merged into it.

    Raises:
        SetupError: the adapter cannot be merged.
    """
    if not (folder / "adapter_config.json").is_file():
        yield folder
        return
    from train.models.pretrained import in_hub_form

    with in_hub_form(folder) as made:
        yield made


def _exported(hub_dir: Path, out_dir: Path, quantization: Quantization, says: About) -> Checkpoint:
    out_dir.mkdir(parents=True, exist_ok=True)
    (out_dir / MANIFEST).unlink(missing_ok=True)  # until everything is written, it is no checkpoint
    probe = _Probe.of(hub_dir, context=says.context_tokens)
    _convert(hub_dir, out_dir, quantization, probe)
    complete(out_dir, hub_dir, eos=says.eos)
    own = [f"{protocol}.toml" for protocol in says.protocols if (hub_dir / f"{protocol}.toml").is_file()]
    for file in ("tokenizer.json", *own):
        shutil.copyfile(hub_dir / file, out_dir / file)
    write_manifest(out_dir, _with_own(out_dir, says))
    made = open_checkpoint(out_dir)
    try:
        probe.compare(made, least=_ALIKE[quantization])
    except CheckpointError:
        (out_dir / MANIFEST).unlink()
        raise
    return made


@dataclass
class _Probe:
    """A few tokens, and what the model says behind them: the engine must say about the same."""

    ids: Sequence[int]
    said: Any = None
    """Logits behind the last of them, [vocabulary]."""

    @classmethod
    def of(cls, hub_dir: Path, *, context: int) -> "_Probe":
        """More tokens than a layer looks back, where it does not look at all of them."""
        config: dict[str, Any] = json.loads(read_text(hub_dir / "config.json"))
        text = config.get("text_config") or config
        limited = set(text.get("layer_types") or ()) - {"full_attention"} or text.get("use_sliding_window")
        window = text.get("sliding_window") if limited else None
        length = min(context, _PROBED if window is None else min(_PROBED + window, _PROBED_MOST))
        return cls([_FIRST_ID + 7 * place % _IDS for place in range(length)])

    def ask(self, model: Any) -> None:
        """Note what the model says that is converted."""
        torch: Any = importlib.import_module("torch")
        with torch.no_grad():
            self.said = model.eval()(input_ids=torch.tensor([self.ids]), use_cache=False).logits[0, -1].float()

    def compare(self, made: Checkpoint, *, least: float) -> None:
        """Refuse an engine that computes something else.

        Raises:
            CheckpointError: it does, or it cannot compute at all.
        """
        engine: Any = importlib.import_module("ctranslate2")
        numpy: Any = importlib.import_module("numpy")
        torch: Any = importlib.import_module("torch")
        tokens = [made.codec.tokens[number] for number in self.ids]
        how = {"max_length": 1, "sampling_topk": 1, "return_logits_vocab": True, "include_prompt_in_result": False}
        try:
            (result,) = engine.Generator(str(made.folder), device="cpu").generate_batch([tokens], **how)
            found = torch.from_numpy(numpy.array(result.logits[0][0])).float()
            alike = float(torch.corrcoef(torch.stack([self.said, found[: len(self.said)]]))[0, 1])
            why = f"its logits agree with the model's only to {alike:.3f} (1 is the same)"
        except (RuntimeError, ValueError) as error:
            alike, why = 0.0, str(error)
        if not alike >= least:
            raise CheckpointError(
                f"CTranslate2 does not compute what this model computes: {why}; serve the hub's form instead, with "
                "--policy transformers or --policy vllm"
            )


def describe(
    hub_dir: Path,
    *,
    name: str | None = None,
    protocols: Sequence[str] = (),
    passages: Mapping[str, int] | None = None,
    dates: bool | None = None,
) -> About:
    """Write the cairn.json of a checkpoint in the hub's form: with it, the folder alone is enough to serve it.

    Args:
        hub_dir: a folder of transformers.
        name: of the policy; see `export_checkpoint`.
        protocols: what it was trained on, the default one first; see `export_checkpoint`.
        passages: a search showed in training, by protocol; without them what its cairn.json says.
        dates: whether passages had dates in training; without it what its cairn.json says.

    Raises:
        CheckpointError: the folder is none of that form.
        SetupError: the file of a protocol cannot be used.
    """
    says = _about(hub_dir, name=name, protocols=protocols)
    if passages is not None:
        says = says.model_copy(update={"passages": dict(passages)})
    if dates is not None:
        says = says.model_copy(update={"dates": dates})
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
        dates=said.dates if said else True,
    )


def complete(converted: Path, hub_dir: Path, *, eos: str) -> None:
    """Fill in what the converter leaves open, and the engine does not start without.

    Args:
        converted: what the converter wrote.
        hub_dir: what it converted.
        eos: the end of a turn, in the place of tokens that the tokenizer does not have. No context begins with one.

    Raises:
        CheckpointError: a config cannot be read.
    """
    path = converted / "config.json"
    try:
        said: dict[str, Any] = json.loads(read_text(path))
        model: dict[str, Any] = json.loads(read_text(hub_dir / "config.json"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{hub_dir} cannot be converted: {error}") from error
    text = model.get("text_config") or model
    open_ones = {"bos_token": eos, "unk_token": eos, "layer_norm_epsilon": text.get("rms_norm_eps")}
    filled = {name: value for name, value in open_ones.items() if name in said and said[name] is None}
    if filled or said.get("eos_token") != eos:
        path.write_text(json.dumps(said | filled | {"eos_token": eos}, indent=2), encoding="utf-8")


def _convert(hub_dir: Path, out_dir: Path, quantization: Quantization, probe: _Probe) -> None:
    converters: Any = importlib.import_module("ctranslate2.converters")
    logging: Any = importlib.import_module("transformers.utils.logging")
    logging.disable_progress_bar()

    class Converter(converters.TransformersConverter):
        """Runs no code of the folder's, and prompts for no consent."""

        def load_model(self, model_class: Any, model_name_or_path: str, **kwargs: Any) -> Any:
            model = model_class.from_pretrained(
                model_name_or_path, **kwargs | {"use_safetensors": True, "trust_remote_code": False}
            )
            probe.ask(model)
            return model

        def write(self) -> None:
            spec = self._load()
            spec.validate()
            spec.optimize("float32" if quantization == "float32" else None)
            if quantization == "int8":
                all_to_int8(spec)
            spec.save(str(out_dir))

        def load_tokenizer(self, tokenizer_class: Any, model_name_or_path: str, **kwargs: Any) -> Any:
            return tokenizer_class.from_pretrained(model_name_or_path, **kwargs | {"trust_remote_code": False})

    try:
        converter = Converter(str(hub_dir))
        with no_full_collections():
            converter.write()
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise CheckpointError(f"{hub_dir} cannot be converted: {error}") from error
    finally:
        logging.enable_progress_bar()


def put_beside(folder: Path, protocols: Sequence[str]) -> tuple[str, ...]:
    """Write each protocol that is named by its file into a folder, as NAME.toml with all its texts; gives the names.

    So the folder alone serves the checkpoint. A protocol that this package brings needs no file; its name is enough.

    Args:
        folder: of the checkpoint.
        protocols: names, or files.

    Raises:
        SetupError: a file cannot be used, or its protocol has no name that a file can have.
    """
    return tuple(_put(folder, Path(said)) if said.endswith(".toml") else said for said in protocols)


def as_toml(protocol: TextProtocol) -> str:
    """What `load_protocol` reads as the same protocol."""
    fields: dict[str, Any] = protocol.model_dump(mode="json", exclude_unset=True)
    return "".join(f"{name} = {_value(value)}\n" for name, value in fields.items() if value is not None)


def _put(folder: Path, file: Path) -> str:
    protocol = load_protocol(file)
    if Path(protocol.name).name != protocol.name:
        raise SetupError(f"the protocol of {file} is called {protocol.name!r}, which no file can be; rename it")
    (folder / f"{protocol.name}.toml").write_text(as_toml(protocol), encoding="utf-8")
    return protocol.name


def _value(value: Any) -> str:
    """JSON's strings are TOML's, but for one control character."""
    if isinstance(value, Mapping):
        inner = (f"{_value(name)} = {_value(kept)}" for name, kept in value.items() if kept is not None)
        return f"{{ {', '.join(inner)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
