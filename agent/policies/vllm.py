"""The policy that runs a model in this process, through vLLM: ids in, ids out, many rollouts at once.

vLLM keeps what it has read (prefix caching), so that the next round of a rollout reads only what is new.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from agent.errors import SetupError
from agent.policies.base import Sampling
from agent.policies.hub_form import HubForm, open_hub_form
from agent.policies.model_folder import dates_shown, trained_with
from agent.policies.token_context import Sampled, TokenContext
from agent.policies.vllm_engine import VllmEngine, VllmRequest, VllmUse
from agent.protocols.base import TextProtocol


class VllmPolicy:
    """A checkpoint in the hub's form as a policy. It keeps every id that it sampled; text is never encoded twice."""

    continues = True
    instructed = False

    def __init__(self, form: HubForm, engine: VllmEngine) -> None:
        self.form = form
        self.engine = engine

    @classmethod
    def load(cls, model: str, **arguments: Any) -> "VllmPolicy":
        """Load a model.

        Args:
            model: a folder in the hub's form, or a name on the hub.
            arguments: of vLLM's AsyncEngineArgs, such as `dtype` (float32 where log-probabilities must agree with the
                trainer's), `gpu_memory_utilization`, `max_model_len`, `tensor_parallel_size`. None: vLLM's own default.

        Raises:
            SetupError: vLLM is not installed, or cannot run the model so; CheckpointError where the folder is not
                whole.
        """
        form = open_hub_form(model)
        said = {name: value for name, value in arguments.items() if value is not None}
        wanted = said.get("max_model_len", 0)
        if wanted > form.context_tokens:
            raise SetupError(f"{form.name} takes {form.context_tokens} tokens, and max_model_len is {wanted}; lower it")
        return cls(form, VllmEngine(str(form.folder), arguments=said))

    @property
    def name(self) -> str:
        return self.form.name

    @property
    def context_tokens(self) -> int:
        return self.engine.context_tokens

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
    def use(self) -> VllmUse:
        """What vLLM's scheduler counts."""
        return self.engine.use

    @property
    def busy(self) -> int:
        """Turns that wait or are worked on."""
        return self.engine.busy

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> TokenContext:
        """Open a context with the protocol's prompt.

        Raises:
            ContextFull: the question is longer than the context.
        """
        limit = self.context_tokens
        return TokenContext(self, self.form.codec, protocol, question, limit=limit, history=history, date=date)

    async def sample(
        self, ids: Sequence[int], sampling: Sampling, *, ends: frozenset[int], max_tokens: int
    ) -> AsyncGenerator[list[Sampled]]:
        """Continue ids; see `agent.policies.token_context.Sampler`. Closing it aborts the request in vLLM at once."""
        request = VllmRequest(
            self.engine,
            prompt=tuple(ids),
            sampling=sampling,
            ends=ends,
            max_tokens=max_tokens,
            loop=asyncio.get_running_loop(),
        )
        self.engine.submit(request)
        try:
            while sampled := await request.take():
                yield sampled
        finally:
            self.engine.drop(request)

    async def aclose(self) -> None:
        """End what is running and vLLM's processes."""
        await asyncio.to_thread(self.engine.close)
