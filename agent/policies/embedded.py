"""The policy that needs nothing: a checkpoint on this machine's CPU, through CTranslate2, many rollouts at once."""

import asyncio
import weakref
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

from agent.cores import cores
from agent.policies.base import Sampling
from agent.policies.batching import Engine, EngineUse, Listener
from agent.policies.checkpoint import Checkpoint, open_checkpoint
from agent.policies.requests import sample_through
from agent.policies.token_context import Sampled, TokenContext
from agent.protocols.base import TextProtocol


class EmbeddedPolicy:
    """A checkpoint folder as a policy. It keeps every id that it sampled; text is never encoded twice."""

    continues = True
    instructed = False

    def __init__(self, checkpoint: Checkpoint, engine: Engine) -> None:
        self.checkpoint = checkpoint
        self._engine = engine
        weakref.finalize(self, engine.stop)

    @classmethod
    def load(cls, folder: Path, *, workers: int | None = None, compute_type: str = "default") -> "EmbeddedPolicy":
        """Check and load a checkpoint folder.

        Args:
            folder: what `cairn checkpoint export` made.
            workers: contexts that are worked on at the same time; one per core by default.
            compute_type: CTranslate2's; `float32` where log-probabilities must agree with the trainer's.

        Raises:
            CheckpointError: the folder is missing, incomplete or damaged.
        """
        checkpoint = open_checkpoint(Path(folder))
        engine = Engine(
            checkpoint.folder,
            tokens=checkpoint.codec.tokens,
            eos=checkpoint.codec.eos,
            workers=workers or cores(),
            compute_type=compute_type,
        )
        return cls(checkpoint, engine)

    @property
    def name(self) -> str:
        return self.checkpoint.manifest.name

    @property
    def context_tokens(self) -> int:
        return self.checkpoint.manifest.context_tokens

    @property
    def passages(self) -> Mapping[str, int]:
        """That a search showed in training, by protocol."""
        return self.checkpoint.manifest.passages

    @property
    def dates(self) -> bool:
        """Whether passages had dates in training."""
        return self.checkpoint.manifest.dates

    @property
    def special_tokens(self) -> tuple[str, ...]:
        return self.checkpoint.codec.special

    @property
    def use(self) -> EngineUse:
        """What the engine has done so far."""
        return self._engine.use

    @property
    def busy(self) -> int:
        """Turns that wait or are worked on."""
        return self._engine.busy

    def listen(self, listener: Listener) -> None:
        """Report every call of the engine from now on."""
        self._engine.listener = listener

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> TokenContext:
        """Open a context with the protocol's prompt.

        Raises:
            ContextFull: the question is longer than the context.
        """
        codec, limit = self.checkpoint.codec, self.context_tokens
        return TokenContext(self, codec, protocol, question, limit=limit, history=history, date=date)

    def sample(
        self, ids: Sequence[int], sampling: Sampling, *, ends: frozenset[int], max_tokens: int
    ) -> AsyncGenerator[list[Sampled]]:
        """Continue ids; see `agent.policies.token_context.Sampler`."""
        return sample_through(self._engine.submit, ids, sampling, ends=ends, max_tokens=max_tokens)

    async def aclose(self) -> None:
        """End what is running and the threads."""
        await asyncio.to_thread(self._engine.close)
