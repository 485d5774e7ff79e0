"""What the embedded engine is called with, written down as it happens: the model's cost of a call is fitted on this."""

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any

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


class CallLog:
    """Writes down every call that it hears of: a line of JSON each."""

    def __init__(self, log: Path) -> None:
        self._log = log.open("a", encoding="utf-8")
        self._writing = threading.Lock()

    def __call__(self, group: Sequence[Request], began: int) -> None:
        call = Call(began, perf_counter_ns(), tuple(len(r.prompt) for r in group), tuple(r.count for r in group))
        with self._writing:
            self._log.write(json.dumps(asdict(call)) + "\n")
            self._log.flush()


def read_calls(log: Path) -> list[Call]:
    """The calls in the order of their beginning; the last line may have been cut, and is then left out."""
    with log.open(encoding="utf-8") as lines:
        read: list[dict[str, Any]] = [json.loads(line) for line in lines if line.endswith("\n")]
    calls = [Call(c["began"], c["ended"], tuple(c["prompts"]), tuple(c["tokens"])) for c in read]
    return sorted(calls, key=lambda call: call.began)
