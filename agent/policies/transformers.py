"""A checkpoint in the hub's form as a policy, through torch and transformers: on a CPU or one GPU, batched, exact.

For training on a CPU and for tests. To serve a large model to many, `vllm` is faster.
"""

import asyncio
import importlib
import weakref
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, Self, cast

from agent.errors import CheckpointError, SetupError
from agent.policies.hub_form import HubForm, open_hub_form
from agent.policies.model_folder import dates_shown, trained_with
from agent.policies.token_context import TokenContext
from agent.policies.tokens import Codec
from agent.protocols.base import TextProtocol

if TYPE_CHECKING:
    from agent.policies.torch_engine import Session, TorchEngine, TorchUse

Dtype = Literal["auto", "float32", "bfloat16"]
KNOWN_LAYERS: Final = {"full_attention", "sliding_attention"}
MISSING: Final = (
    "the policy 'transformers' needs torch and transformers: pip install 'cairn-search[train]', "
    "or use --policy embedded, which needs neither"
)


class TransformersPolicy:
    """A model of this process. It keeps every id that it sampled; text is never encoded twice."""

    continues = True
    instructed = False

    def __init__(self, form: HubForm, engine: "TorchEngine") -> None:
        self.form = form
        self.engine = engine
        weakref.finalize(self, engine.stop)

    @classmethod
    def load(cls, model: str, *, device: str = "auto", dtype: Dtype = "auto") -> Self:
        """Load a model.

        Args:
            model: a folder in the hub's form, or a name on the hub.
            device: `cpu`, `cuda`, `cuda:1`; `auto` takes a GPU where there is one.
            dtype: of weights and arithmetic; `auto` is float32 on a CPU and the checkpoint's own elsewhere. The
                float32 of one engine agrees with that of another, and with the trainer's.

        Raises:
            SetupError: torch or transformers is missing, or there is no such device.
            CheckpointError: the model cannot be read.
        """
        try:
            torch = importlib.import_module("torch")
            from agent.policies.torch_engine import SMALL, TorchEngine
        except ImportError as error:
            raise SetupError(MISSING) from error
        form = open_hub_form(model)
        strange = set(form.layer_types) - KNOWN_LAYERS
        if strange:
            raise CheckpointError(f"{model} has layers of {', '.join(sorted(strange))}; use --policy vllm for it")
        where = _device(torch, device)
        loaded = _load(torch, form, where, dtype)
        threads = 1 if where == "cpu" and loaded.num_parameters() < SMALL else 0
        return cls(form, TorchEngine(loaded, device=where, threads=threads))

    @property
    def name(self) -> str:
        return self.form.name

    @property
    def context_tokens(self) -> int:
        return self.form.context_tokens

    @property
    def passages(self) -> Mapping[str, int]:
        """That a search showed in training, by protocol."""
        return trained_with(self.form.folder)

    @property
    def dates(self) -> bool:
        """Whether passages had dates in training."""
        return dates_shown(self.form.folder)

    @property
    def special_tokens(self) -> tuple[str, ...]:
        return self.form.codec.special

    @property
    def use(self) -> "TorchUse":
        """What the engine has done so far."""
        return self.engine.use

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> TokenContext:
        """Open a context with the protocol's prompt.

        Raises:
            ContextFull: the question is longer than the context.
        """
        return _RememberedContext(
            self,
            self.form.codec,
            protocol,
            question,
            limit=self.context_tokens,
            history=history,
            date=date,
        )

    async def aclose(self) -> None:
        """End what is running and the thread."""
        await asyncio.to_thread(self.engine.close)


class _RememberedContext(TokenContext):
    """A context whose sampler remembers what was computed for it."""

    def __init__(self, policy: TransformersPolicy, codec: Codec, *said: Any, **kept: Any) -> None:
        from agent.policies.torch_engine import Session

        super().__init__(Session(policy.engine), codec, *said, **kept)
        self._policy = policy
        """Held, so that the engine lives as long as its users."""

    def fork(self) -> Self:
        forked = super().fork()
        forked._sampler = cast("Session", self._sampler).fork()
        return forked


def _device(torch: Any, device: str) -> str:
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        why = str(error).splitlines()[0]
        raise SetupError(f"the device {device!r} cannot be used: {why}; try --device cpu") from error
    return device


def _load(torch: Any, form: HubForm, device: str, dtype: Dtype) -> Any:
    transformers: Any = importlib.import_module("transformers")
    if dtype == "auto" and device == "cpu":
        dtype = "float32"
    try:
        with _quiet():
            model = transformers.AutoModelForCausalLM.from_pretrained(
                form.folder,
                dtype="auto" if dtype == "auto" else getattr(torch, dtype),
                use_safetensors=True,
                trust_remote_code=False,
            )
        return model.to(device).eval()
    except Exception as error:  # readers of weights have errors of their own, with no base in common
        raise CheckpointError(f"transformers cannot load {form.folder}: {error}") from error


@contextmanager
def _quiet() -> Generator[None]:
    """Without progress bars on a terminal that belongs to the command."""
    logging: Any = importlib.import_module("transformers.utils.logging")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
