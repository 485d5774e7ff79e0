"""A vLLM server as the engine of a run: joined once, given the trainer's weights before each batch, checked after it.

TRL sends the weights over NCCL where the trainer has a GPU. Without one they go through a folder that the server reads,
on the same machine. Both ways call vLLM's development endpoints (VLLM_SERVER_DEV_MODE=1), which have no key.
"""

import importlib
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

import httpx2
import torch

from agent.errors import SetupError
from agent.outbound.address import Address
from agent.outbound.numbers import count
from agent.policies.base import Policy
from agent.policies.hub_form import open_hub_form
from train.models.pretrained import named_weights
from train.rl.recipe import RlRecipe
from train.rl.vllm_worker import WEIGHTS, WORKER

if TYPE_CHECKING:
    from agent.policies.openai_completions import CompletionsPolicy

_HANDOVER_SECONDS: Final = 600.0
_SECONDS: Final = 30.0
"""Of any other request."""
_NO_QUERY: Final[Mapping[str, str]] = {}
_SHOWN: Final = 300
"""Characters of a server's refusal."""
_AGAIN: Final = "look at its log, start it again at the same address, and go on with --resume"


class ServerError(Exception):
    """A request to the server failed; says why, for the inside of a sentence that names the server."""


class ServerLive:
    """A vLLM server. The run sets `hand_over`: `take`, or what sends the weights by TRL."""

    exact = False

    def __init__(self, start: str, *, url: str, hub: Path | None = None) -> None:
        """Take note of a server; nothing is sent yet.

        Args:
            start: as the server knows the model.
            hub: its folder in the hub's form, for its tokenizer; left out, it is `start`.
            url: of the server, without /v1.

        Raises:
            CheckpointError: the tokenizer cannot be used.
            SetupError: `url` is no http address.
        """
        from agent.outbound.llm import LlmClient

        self._form = open_hub_form(str(hub or start))
        self._name = str(Path(start))
        self._server = VllmServer(url)
        self._endpoint = LlmClient(base_url=f"{url.rstrip('/')}/v1", model=self._name, api_key="")
        self._policy: CompletionsPolicy | None = None
        self._version = ""
        """Of the weights that the server has, since `take` was called."""
        self.hand_over: Callable[[Any], None] | None = None
        """Sends the weights of a model to the server, and returns when the server samples with them."""

    def refresh(self, model: Any) -> Policy:
        """Hand the weights over; see `train.rl.live.Live`.

        Raises:
            SetupError: the server did not take them, or serves another model.
        """
        if self.hand_over is None:
            raise SetupError("a vLLM server gets its weights from the trainer, and there is none yet")
        try:
            if self._policy is None:
                self._policy = self._joined()
            self.hand_over(model)
        except SetupError:
            raise
        except Exception as error:  # HTTP, NCCL and TRL have errors of their own, with no base in common
            raise SetupError(
                f"the vLLM server at {self._server.url} did not take the trainer's weights ({error}): {_AGAIN}"
            ) from error
        return self._policy

    def take(self, model: Any) -> None:
        """Write the weights into a folder for this user alone, and let the server read it.

        Raises:
            ServerError: the server cannot be reached, or refuses.
        """
        safetensors: Any = importlib.import_module("safetensors.torch")
        weights = {name: weight.detach().cpu().contiguous() for name, weight in named_weights(model).items()}
        self._version = f"cairn-{uuid4().hex}"
        with tempfile.TemporaryDirectory(prefix="cairn-rl-weights-") as made:
            safetensors.save_file(weights, Path(made) / WEIGHTS)
            self._server.load(Path(made), version=self._version)

    def check(self) -> None:
        """See `train.rl.live.Live`."""
        try:
            if not self._version:
                self._server.check()
                return
            version = self._server.version()
        except ServerError as error:
            raise SetupError(f"the vLLM server at {self._server.url} is gone ({error}): {_AGAIN}") from error
        if version != self._version:
            raise SetupError(
                f"the vLLM server at {self._server.url} no longer has the weights of this step: it was started again, "
                "or another run uses it; go on with --resume, with a server of its own"
            )

    def close(self) -> None:
        """The server belongs to others."""

    def _joined(self) -> "CompletionsPolicy":
        """The policy behind the server, with the context that the server takes.

        Raises:
            ServerError: the server cannot be reached.
            SetupError: it serves another model.
        """
        from agent.policies.openai_completions import CompletionsPolicy

        listed = self._server.models()
        if self._name not in listed:
            raise SetupError(
                f"the vLLM server at {self._server.url} serves {', '.join(listed) or 'nothing'}, and not {self._name}: "
                f"start it with that model, or with --served-model-name {self._name}"
            )
        most = self._form.context_tokens
        return CompletionsPolicy(self._endpoint, self._form.codec, context_tokens=min(listed[self._name] or most, most))


class VllmServer:
    """What a run requests of vLLM's server beside completions."""

    def __init__(self, url: str) -> None:
        """Take note of an address, without /v1; nothing is sent yet.

        Raises:
            SetupError: it is no http address.
        """
        self._address = Address.of(url)
        self.url = self._address.base

    def check(self) -> None:
        """Find out whether server and engine are alive.

        Raises:
            ServerError: one of them is not.
        """
        self._request("GET", "/health")

    def ready(self) -> None:
        """Find out whether its workers can take weights.

        Raises:
            ServerError: they cannot, or there is no server.
        """
        self._request("POST", "/collective_rpc", body={"method": "cairn_ready"})

    def models(self) -> dict[str, int | None]:
        """The names of what it serves, each with its longest context in tokens, where the server reports it.

        Raises:
            ServerError: there is no server.
        """
        rows: Any = self._json("GET", "/v1/models").get("data")
        models = [cast(dict[str, Any], row) for row in cast(list[Any], rows or []) if isinstance(row, dict)]
        return {str(row.get("id")): count(row.get("max_model_len")) for row in models}

    def load(self, folder: Path, *, version: str) -> None:
        """Let it read weights, forget what it kept of the previous ones, and note the version.

        Args:
            folder: with the weights, as `train.rl.vllm_worker` reads them.
            version: a name for them.

        Raises:
            ServerError: it does not.
        """
        work = {"method": "cairn_read_weights", "args": [str(folder)]}
        self._request("POST", "/collective_rpc", body=work, seconds=_HANDOVER_SECONDS)
        if not self._json("POST", "/reset_prefix_cache", {"reset_running_requests": "true"}).get("success"):
            raise ServerError("it keeps what it computed with the previous weights")
        self._request("POST", "/update_weight_version", body={"new_version": version})

    def version(self) -> str:
        """Of the weights that it has now.

        Raises:
            ServerError: it cannot be reached, or its engine died.
        """
        return str(self._json("GET", "/weight_info").get("weight_version"))

    def _json(self, method: str, path: str, query: Mapping[str, str] = _NO_QUERY) -> Mapping[str, Any]:
        reply = self._request(method, path, query)
        try:
            said: Any = reply.json()
        except ValueError as error:
            raise ServerError(f"{path} is not answered as vLLM's server does: {error}") from error
        return cast(Mapping[str, Any], said) if isinstance(said, dict) else {}

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] = _NO_QUERY,
        *,
        body: object = None,
        seconds: float = _SECONDS,
    ) -> httpx2.Response:
        address = self._address
        try:
            reply = httpx2.request(
                method,
                address.base + path,
                params=[*address.query, *query.items()],
                json=body,
                headers=address.headers,
                timeout=seconds,
            )
        except httpx2.HTTPError as error:
            raise ServerError(str(error) or type(error).__name__) from error
        if not reply.is_success:
            said = " ".join(reply.text.split())[:_SHOWN]
            raise ServerError(f"it answered {path} with {reply.status_code}: {said}")
        return reply


def by_nccl(recipe: RlRecipe) -> bool:
    """Whether TRL sends the weights of this process to the recipe's server: it needs a GPU for that."""
    return recipe.rollout.engine == "vllm-server" and torch.cuda.is_available()


def _check_ready(server: VllmServer) -> None:
    try:
        server.ready()
    except ServerError as error:
        raise SetupError(
            f"the vLLM server at {server.url} cannot be joined ({error}): start it with VLLM_SERVER_DEV_MODE=1 in its "
            f"environment, --worker-extension-cls {WORKER}, and --host 127.0.0.1, because every client that reaches "
            "it can change its weights then"
        ) from error


@contextmanager
def joinable(recipe: RlRecipe) -> Generator[None]:
    """Turn what keeps a run from its vLLM server into a sentence; before anything is loaded, if it can.

    Raises:
        SetupError: the server cannot be reached or takes no weights, or vLLM is not installed here, beside TRL.
    """
    server = recipe.rollout.server
    if not by_nccl(recipe):
        if recipe.rollout.engine == "vllm-server":
            _check_ready(VllmServer(server))
        yield
        return
    try:
        yield
    except ImportError as error:
        raise SetupError(f"the engine 'vllm-server' needs vLLM beside TRL ({error}); see docs/scaling.md") from error
    except (OSError, RuntimeError) as error:  # requests' are OSErrors; TRL says in a RuntimeError what is missing
        raise SetupError(f"the vLLM server at {server} cannot be joined: {error}") from error
