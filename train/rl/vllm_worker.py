"""What vLLM's own processes do with new weights. vLLM loads it there, so nothing but vLLM and safetensors is imported.

vllm serve … --worker-extension-cls train.rl.vllm_worker.WeightWorker
"""

import importlib
from pathlib import Path
from typing import Any, Final

WORKER: Final = "train.rl.vllm_worker.WeightWorker"
"""As vLLM's `worker_extension_cls`."""
WEIGHTS: Final = "model.safetensors"
"""The file in the folder that is read."""


class WeightWorker:
    """Methods that are added to each of vLLM's workers. Weights have the names that they have in the checkpoint."""

    def cairn_ready(self) -> None:
        """Does nothing: that it can be called says that the others are there."""

    def cairn_read_weights(self, folder: str) -> None:
        """Take weights from a file in a folder of this machine."""
        _take(self, _safetensors().load_file(Path(folder) / WEIGHTS))

    def cairn_take_weights(self, written: bytes) -> None:
        """Take weights that are written as safetensors."""
        _take(self, _safetensors().load(written))


def _take(worker: Any, weights: dict[str, Any]) -> None:
    worker.reload_weights(weights_iterator=list(weights.items()))
    _pack_again(worker.get_model())


def _pack_again(model: Any) -> None:
    """Renew the packed copies that vLLM's CPU kernels keep of a matrix beside the matrix itself.

    vLLM 0.31 renews those of layers that load something. The head of a model that shares the matrix of the embeddings
    loads nothing, and would go on with the previous matrix. On a GPU there are no such copies.
    """
    for layer in model.modules():
        if hasattr(layer, "cpu_linear") and layer.weight.numel():  # others have given the matrix itself up
            layer.quant_method.process_weights_after_loading(layer)


def _safetensors() -> Any:
    return importlib.import_module("safetensors.torch")
