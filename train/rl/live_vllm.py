"""vLLM with live weights: in this process, or a server that takes weights. The rollouts are our own, through ids.

In this process the weights are handed over by `reload_weights`; a server gets them from TRL over NCCL (CUDA only).
"""

import importlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch

from agent.errors import SetupError
from agent.outbound.llm import LlmClient
from agent.policies.base import Policy
from agent.policies.hub_form import open_hub_form
from agent.policies.openai_completions import CompletionsPolicy
from agent.policies.vllm import VllmPolicy
from agent.settings import default_environment
from train.models.pretrained import plain_model
from train.rl.recipe import RolloutSettings

_HANDOVER_SECONDS: Final = 600


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
        default_environment({"VLLM_ALLOW_INSECURE_SERIALIZATION": "1"})  # functions, to its own processes alone
        self._policy = VllmPolicy.load(start, **arguments)
        self.exact = arguments.get("dtype") == "float32"

    def refresh(self, model: Any) -> VllmPolicy:
        safetensors: Any = importlib.import_module("safetensors.torch")
        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in _named(model)}
        written = safetensors.save(weights)  # tensors do not survive vLLM's two serialisations

        async def hand_over(llm: Any) -> None:
            await llm.collective_rpc(_take, args=(written,))
            await llm.reset_prefix_cache()

        self._policy.engine.inside(hand_over).result(timeout=_HANDOVER_SECONDS)
        return self._policy

    def close(self) -> None:
        self._policy.engine.close()


class ServerLive:
    """A vLLM server. The run sets `hand_over`: TRL's trainer knows how to gather and send the weights."""

    exact = False

    def __init__(self, start: str, *, url: str, hub: Path | None = None) -> None:
        """Take note of a server; nothing is sent yet.

        Args:
            start: as the server knows the model.
            hub: its folder in the hub's form, for its tokenizer; left out, it is `start`.
            url: of the server, without /v1.

        Raises:
            CheckpointError: the tokenizer cannot be used.
        """
        form = open_hub_form(str(hub or start))
        endpoint = LlmClient(base_url=f"{url.rstrip('/')}/v1", model=str(Path(start)), api_key="")
        self._policy = CompletionsPolicy(endpoint, form.codec, context_tokens=form.context_tokens)
        self._url = url
        self.hand_over: Callable[[Any], None] | None = None
        """Sends the weights of a model to the server, and returns when the server samples with them."""

    def refresh(self, model: Any) -> Policy:
        """Hand the weights over; see `train.rl.live.Live`.

        Raises:
            SetupError: the server did not take them.
        """
        if self.hand_over is None:
            raise SetupError("a vLLM server gets its weights from the trainer, and there is none yet")
        try:
            self.hand_over(model)
        except Exception as error:  # HTTP, NCCL and TRL have errors of their own, with no base in common
            raise SetupError(
                f"the vLLM server at {self._url} did not take the trainer's weights ({error}): look at its log, start "
                "it again with the command that `cairn train plan` prints, and go on with --resume"
            ) from error
        return self._policy

    def close(self) -> None:
        """The server belongs to others."""


@contextmanager
def joined_server(rollout: RolloutSettings) -> Generator[None]:
    """Turn what keeps TRL from joining the recipe's vLLM server into a sentence; before anything is loaded, if it can.

    Raises:
        SetupError: there is no GPU, vLLM is not installed here, or the server cannot be reached or takes no weights.
    """
    if rollout.engine != "vllm-server":
        yield
        return
    if not torch.cuda.is_available():
        raise SetupError(
            "the engine 'vllm-server' needs a GPU: weights go to the server over NCCL; take 'vllm', 'transformers' or "
            "'embedded' on a CPU"
        )
    try:
        yield
    except ImportError as error:
        raise SetupError(f"the engine 'vllm-server' needs vLLM beside TRL ({error}); see docs/scaling.md") from error
    except (OSError, RuntimeError) as error:  # requests' are OSErrors; TRL says in a RuntimeError what is missing
        raise SetupError(f"the vLLM server at {rollout.server} cannot be joined: {error}") from error


def _take(worker: Any, written: bytes) -> None:
    """In a process of vLLM: take new weights."""
    safetensors: Any = importlib.import_module("safetensors.torch")
    worker.reload_weights(weights_iterator=list(safetensors.load(written).items()))


def _named(model: Any) -> list[tuple[str, Any]]:
    """Every weight by its name in the checkpoint; one that two layers share only once."""
    return list((plain_model(model) if hasattr(model, "peft_config") else model).named_parameters())
