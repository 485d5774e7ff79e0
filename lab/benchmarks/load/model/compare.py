"""All of `cairn bench model`: fit, then predict loads that were not used to fit, then measure them."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final, Literal

from agent.settings import CairnSettings
from lab.benchmarks.load.measure import TOKENS, Show, Tokens, questions_of, server_of, show_seconds
from lab.benchmarks.load.model.fit import Fitted, fit, fit_paced, refit
from lab.benchmarks.load.model.paced import PacedCost, predict_paced
from lab.benchmarks.load.model.simulate import Predicted, predict
from lab.benchmarks.load.process import Running
from lab.benchmarks.load.streams import StreamLoad, load_embedded, load_paced

BOUND: Final = 0.2
"""By so much a prediction may be off."""


@dataclass(frozen=True)
class Compared:
    """A load as it was predicted and as it was measured."""

    policy: Literal["embedded", "paced"]
    predicted: Predicted
    measured: StreamLoad
    both: float = 1.0
    """By how much calls at the same time slowed each other down when this load was predicted."""

    @property
    def answers_off(self) -> float:
        """By which share the predicted answers/s are more than those that were measured."""
        return off(self.predicted.answers_per_s, self.measured.answers_per_s)

    @property
    def p95_off(self) -> float:
        return off(self.predicted.answer_s_p95, self.measured.answer_s_p95)

    @property
    def holds(self) -> bool:
        return abs(self.answers_off) <= BOUND and abs(self.p95_off) <= BOUND and not self.measured.lost


def off(predicted: float, measured: float) -> float:
    """Relative error; infinite where nothing was measured."""
    return predicted / measured - 1 if measured else float("inf")


@dataclass(frozen=True)
class ModelFigures:
    seconds: float
    """Of each load."""
    fitted: Fitted
    pace: PacedCost
    compared: tuple[Compared, ...]

    @property
    def holds(self) -> bool:
        return all(one.holds for one in self.compared)

    def as_dict(self) -> dict[str, Any]:
        """Plain names; the runs that were recorded are left out."""
        fitted = asdict(replace(self.fitted, alone=replace(self.fitted.alone, runs=())))
        compared = [
            asdict(one) | {"answers_off": one.answers_off, "p95_off": one.p95_off, "holds": one.holds}
            for one in self.compared
        ]
        return {"seconds": self.seconds, "fitted": fitted, "pace": asdict(self.pace), "compared": compared} | {
            "holds": self.holds
        }


def compare(
    settings: CairnSettings,
    *,
    fit_streams: int,
    streams: Sequence[int],
    paced_streams: Sequence[int],
    seconds: float,
    tokens: Tokens = TOKENS,
    show: Show = lambda what, done, total: None,
) -> ModelFigures:
    """Fit the model, predict each load, and then measure it.

    Before each load of the embedded policy the one that the model is fitted with is repeated, for half of the time, so
    that the model knows how fast the machine is by then.

    Args:
        settings: of the embedded policy and of the server; its port should be 0.
        fit_streams: of the one load that the model is fitted with.
        streams: of the loads of the embedded policy that are predicted.
        paced_streams: the same, of the paced policy.
        seconds: of each load, and of the one stream.
        tokens: stamped ones of a paced thought and of its answer.
        show: gets the progress.

    Raises:
        SetupError: a server could not be started, or the time was too short to fit anything.
    """
    fitted = fit(settings, streams=fit_streams, seconds=seconds, progress=lambda what, at: show(what, at, seconds))
    progress = partial(show_seconds, show, "the paced policy", seconds)
    pace = fit_paced(settings, tokens=tokens, streams=fit_streams, seconds=seconds, progress=progress)
    questions, runs = questions_of(settings), fitted.alone.runs
    compared: list[Compared] = []
    for count in streams:
        now = partial(show_seconds, show, "the machine as fast as it is now", seconds / 2)
        machine = refit(settings, fitted, seconds=seconds / 2, progress=now)
        predicted = predict(runs, machine, streams=count, seconds=seconds)
        load = partial(load_embedded, questions=questions, streams=count, seconds=seconds)
        measured = _measured(settings, None, load, count, seconds, show)
        compared.append(Compared("embedded", predicted, measured, machine.cost.both))
    for count in paced_streams:
        predicted = predict_paced(pace, streams=count, seconds=seconds).load
        load = partial(load_paced, streams=count, seconds=seconds, tokens=sum(tokens))
        compared.append(Compared("paced", predicted, _measured(settings, tokens, load, count, seconds, show)))
    return ModelFigures(seconds, fitted, pace, tuple(compared))


def _measured(
    settings: CairnSettings,
    tokens: Tokens | None,
    load: Callable[..., Coroutine[Any, Any, StreamLoad]],
    streams: int,
    seconds: float,
    show: Show,
) -> StreamLoad:
    what = f"{streams} streams of the {'paced' if tokens else 'embedded'} policy"
    progress = partial(show_seconds, show, what, seconds)

    async def run(server: Running) -> StreamLoad:
        return await load(server, progress=progress)

    with server_of(settings, {"max_runs": streams, "max_queue": streams}, tokens) as server:
        return asyncio.run(run(server))
