"""Policies whose weights follow the trainer's: what a run makes its rollouts with.

vLLM's own server is in `live_server`. Each is refreshed before a batch. The log-probabilities that it gives are
those of the weights at that moment.
"""

import importlib
import tempfile
from pathlib import Path
from typing import Any, Final, Protocol

import torch

from agent.build.agent import VLLM_ENVIRONMENT
from agent.errors import SetupError
from agent.policies.base import Policy
from agent.policies.batching import Engine
from agent.policies.embedded import EmbeddedPolicy
from agent.policies.hub_form import open_hub_form
from agent.policies.torch_engine import EVERY, SMALL, TorchEngine
from agent.policies.transformers import TransformersPolicy
from agent.policies.vllm import VllmPolicy
from agent.settings import default_environment
from train.checkpoints.export import complete, export_checkpoint
from train.checkpoints.garbage import no_full_collections
from train.models.adapters import bare, read_adapter
from train.models.pretrained import base_folder, named_weights, plain_model
from train.rl.recipe import RlRecipe
from train.rl.vllm_worker import WORKER

_HANDOVER_SECONDS: Final = 600
_AGAIN: Final = "look at its log, and go on with --resume"


class Live(Protocol):
    """An engine that samples with the weights of a model that is trained."""

    exact: bool
    """Whether its log-probabilities are of float32, and so the trainer's up to rounding."""

    def refresh(self, model: Any) -> Policy:
        """The policy with the model's weights as they are now; the previous one must not be used any more."""
        ...

    def check(self) -> None:
        """Called after a batch of rollouts, before anything is learned from it.

        Raises:
            SetupError: the engine died, or no longer has the weights of the last refresh.
        """
        ...

    def close(self) -> None:
        """Let go of everything. It may be called twice."""
        ...


class EmbeddedLive:
    """CTranslate2 in float32: each refresh writes the weights again and opens them.

    Vocabulary and tokenizer are converted once, with the whole checkpoint; a refresh converts a model that is in
    memory already, which takes a small part of that.
    """

    exact = True

    def __init__(self, hub: Path, *, workers: int) -> None:
        """Convert a checkpoint.

        Args:
            hub: in the hub's form; the model that is trained has its shape.
            workers: rollouts that are sampled at the same moment; one a core.

        Raises:
            CheckpointError: CTranslate2 cannot run it.
        """
        self._kept = tempfile.TemporaryDirectory(prefix="cairn-rl-")
        self._folder = Path(self._kept.name)
        self._workers = workers
        self._hub = hub
        self._converter = _converter(hub)
        self._checkpoint = export_checkpoint(hub, self._folder, "float32")
        self._engine: Engine | None = None

    def refresh(self, model: Any) -> EmbeddedPolicy:
        if self._engine is not None:
            self._engine.close()
        self._converter.model = plain_model(model, dtype=torch.float32, device="cpu")
        try:
            with no_full_collections():
                self._converter.convert(str(self._folder / "now"), quantization="float32", force=True)
        finally:
            self._converter.model = None
        codec = self._checkpoint.codec
        complete(self._folder / "now", self._hub, eos=codec.tokens[codec.eos])
        self._engine = Engine(
            self._folder / "now",
            tokens=codec.tokens,
            eos=codec.eos,
            workers=self._workers,
            compute_type="float32",
        )
        return EmbeddedPolicy(self._checkpoint, self._engine)

    def check(self) -> None:
        """Nothing can happen to it: it is in this process."""

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
        self._kept.cleanup()


class TransformersLive:
    """On a CPU the trainer's own model: nothing is copied, but it is slower than `embedded`.

    On a GPU a copy in bfloat16 with the adapter merged into it: without the adapter a token starts fewer kernels.
    """

    def __init__(self, hub: str, *, rows: int, threads: int = 0) -> None:
        """Read the tokenizer.

        Args:
            hub: a checkpoint in the hub's form.
            rows: rollouts that grow at the same time at most.
            threads: of arithmetic on a CPU; 0: what torch takes. A small model has as many workers with one each.

        Raises:
            CheckpointError: it cannot be used.
        """
        self.exact = False
        self._form = open_hub_form(hub)
        self._rows = rows
        self._threads = threads
        self._policy: TransformersPolicy | None = None

    def refresh(self, model: Any) -> TransformersPolicy:
        parameter = next(model.parameters())
        if parameter.device.type == "cuda":
            self.close()  # what it keeps of contexts is of the former weights
            model = plain_model(model, dtype=torch.bfloat16).eval()
            engine = TorchEngine(model, device=str(parameter.device), rows=self._rows, every=EVERY)
            return self._opened(engine)
        self.exact = parameter.dtype == torch.float32
        if self._policy is None:
            model = bare(model)
            small = model.num_parameters() < SMALL
            workers, threads = (self._threads or torch.get_num_threads(), 1) if small else (1, self._threads)
            device = str(parameter.device)
            return self._opened(
                TorchEngine(model, device=device, workers=workers, threads=threads, rows=self._rows, every=EVERY)
            )
        return self._policy

    def _opened(self, engine: TorchEngine) -> TransformersPolicy:
        self._policy = TransformersPolicy(self._form, engine)
        return self._policy

    def check(self) -> None:
        """Nothing can happen to it: it is in this process."""

    def close(self) -> None:
        if self._policy is not None:
            self._policy.engine.close()


def live_of(recipe: RlRecipe, *, threads: int = 0) -> Live:
    """The engine that a recipe names; the run says who hands weights to `vllm-server`.

    Raises:
        SetupError: it is not installed, or cannot run the checkpoint.
    """
    engine, hub = recipe.rollout.engine, base_folder(recipe.start)
    if engine == "transformers":
        return TransformersLive(str(hub), rows=recipe.rollout.concurrency, threads=threads)
    if engine == "embedded":
        return EmbeddedLive(hub, workers=threads or torch.get_num_threads())
    if engine == "vllm":
        return VllmLive(str(hub), arguments=recipe.rollout.vllm)
    from train.rl.live_server import ServerLive

    known = str(hub) if read_adapter(Path(recipe.start)) else recipe.start
    return ServerLive(known, hub=hub, url=recipe.rollout.server)


def _converter(hub: Path) -> Any:
    """CTranslate2's converter of a folder, which takes a model from memory in the place of the folder's weights."""
    try:
        converters: Any = importlib.import_module("ctranslate2.converters")
    except ImportError as error:
        raise SetupError(
            "the engine 'embedded' needs transformers to convert: pip install 'cairn-search[train]'"
        ) from error

    class FromMemory(converters.TransformersConverter):
        model: Any = None
        tokenizer: Any = None

        def load_model(self, model_class: Any, model_name_or_path: str, **kwargs: Any) -> Any:
            return self.model

        def load_tokenizer(self, tokenizer_class: Any, model_name_or_path: str, **kwargs: Any) -> Any:
            if self.tokenizer is None:
                self.tokenizer = super().load_tokenizer(tokenizer_class, model_name_or_path, **kwargs)
            return self.tokenizer

    return FromMemory(str(hub))


class VllmLive:
    """vLLM beside the trainer. It knows the weights by the names that the checkpoint has them under."""

    def __init__(self, start: str, *, arguments: dict[str, Any]) -> None:
        """Start vLLM: some ten seconds, or minutes for a large model.

        Args:
            start: a checkpoint in the hub's form.
            arguments: of vLLM's AsyncEngineArgs.

        Raises:
            SetupError: vLLM is not installed, or cannot run the model so.
        """
        default_environment(VLLM_ENVIRONMENT)
        self._policy = VllmPolicy.load(start, **{**arguments, "worker_extension_cls": WORKER})
        self.exact = arguments.get("dtype") == "float32"

    def refresh(self, model: Any) -> VllmPolicy:
        """Hand the weights over; see `train.rl.live.Live`.

        Raises:
            SetupError: vLLM did not take them.
        """
        safetensors: Any = importlib.import_module("safetensors.torch")
        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in named_weights(model).items()}
        written = safetensors.save(weights)  # tensors do not survive vLLM's two serialisations

        async def hand_over(llm: Any) -> None:
            await llm.collective_rpc("cairn_take_weights", args=(written,))
            await llm.reset_prefix_cache(True)  # also under turns that were given up a moment ago

        try:
            self._policy.engine.inside(hand_over).result(timeout=_HANDOVER_SECONDS)
        except Exception as error:  # vLLM has errors of its own, with no base in common
            raise SetupError(
                f"vLLM did not take the trainer's weights ({str(error) or type(error).__name__}): {_AGAIN}"
            ) from error
        return self._policy

    def check(self) -> None:
        """See `train.rl.live.Live`."""

        async def check(llm: Any) -> None:
            await llm.check_health()

        try:
            self._policy.engine.inside(check).result(timeout=_HANDOVER_SECONDS)
        except Exception as error:  # as above
            raise SetupError(f"vLLM died ({str(error) or type(error).__name__}): {_AGAIN}") from error

    def close(self) -> None:
        self._policy.engine.close()
