"""vLLM in this process with live weights, which go to its workers as bytes. Rollouts go through ids.

A vLLM server is in `live_server`.
"""

import importlib
from typing import Any, Final

from agent.build.agent import VLLM_ENVIRONMENT
from agent.errors import SetupError
from agent.policies.vllm import VllmPolicy
from agent.settings import default_environment
from train.models.pretrained import named_weights
from train.rl.vllm_worker import WORKER

_HANDOVER_SECONDS: Final = 600
_AGAIN: Final = "look at its log, and go on with --resume"


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
