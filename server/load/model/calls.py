"""What the embedded engine is called with, written down as it happens: the model's cost of a call is fitted on this."""

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from agent.policies.batching import Engine
from agent.policies.checkpoint import open_checkpoint
from agent.policies.embedded import EmbeddedPolicy
from agent.policies.requests import Request


@dataclass(frozen=True)
class Call:
    """One call of CTranslate2. Times are of `time.perf_counter_ns`."""

    began: int
    ended: int
    prompts: tuple[int, ...]
    """Tokens of each context that shares the call."""
    tokens: tuple[int, ...]
    """Sampled of each."""

    @property
    def seconds(self) -> float:
        return (self.ended - self.began) / 1e9


class WatchedEngine(Engine):
    """The engine itself, which writes down its calls: a line of JSON each."""

    def __init__(self, folder: Path, *, log: Path, tokens: Sequence[str], eos: int, workers: int) -> None:
        self._log = log.open("a", encoding="utf-8")
        self._writing = threading.Lock()
        super().__init__(folder, tokens=tokens, eos=eos, workers=workers)

    def _run(self, group: list[Request]) -> None:
        began = perf_counter_ns()
        try:
            super()._run(group)
        finally:
            prompts, tokens = (tuple(column) for column in zip(*((len(r.prompt), r.count) for r in group), strict=True))
            call = Call(began, perf_counter_ns(), prompts, tokens)
            with self._writing:
                self._log.write(json.dumps(asdict(call)) + "\n")
                self._log.flush()

    def close(self) -> None:
        super().close()
        self._log.close()


def watched_policy(folder: Path, log: Path, *, workers: int) -> EmbeddedPolicy:
    """The embedded policy, whose engine writes its calls to `log`.

    Raises:
        CheckpointError: the folder is missing, incomplete or damaged.
    """
    checkpoint = open_checkpoint(folder)
    codec = checkpoint.codec
    return EmbeddedPolicy(
        checkpoint, WatchedEngine(checkpoint.folder, log=log, tokens=codec.tokens, eos=codec.eos, workers=workers)
    )


def read_calls(log: Path) -> list[Call]:
    """The calls in the order of their beginning; the last line may have been cut, and is then left out."""
    with log.open(encoding="utf-8") as lines:
        read: list[dict[str, Any]] = [json.loads(line) for line in lines if line.endswith("\n")]
    calls = [Call(c["began"], c["ended"], tuple(c["prompts"]), tuple(c["tokens"])) for c in read]
    return sorted(calls, key=lambda call: call.began)
