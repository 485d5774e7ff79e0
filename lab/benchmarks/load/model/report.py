"""`cairn bench model`: its table and its page. It measures nothing."""

import platform
from typing import TYPE_CHECKING, Final

from agent.cores import cores
from lab.benchmarks.load.model.compare import BOUND
from lab.benchmarks.load.model.fit import MANY
from lab.report import ReportTable

if TYPE_CHECKING:
    from lab.benchmarks.load.model.compare import Compared, ModelFigures

_OFF: Final = ("measured", "off")
_HEADS: Final = ("streams", "policy", "answers/s: model", *_OFF, "p95: model", *_OFF, "median: model", "measured")


def table(figures: "ModelFigures") -> ReportTable:
    title = f"predicted, then measured for {figures.seconds:.0f} s each"
    return ReportTable(_HEADS, [_row(one) for one in figures.compared], title=title, caption=_verdict(figures))


def _row(one: "Compared") -> tuple[str, ...]:
    predicted, measured = one.predicted, one.measured
    return (
        f"{measured.streams}",
        one.policy,
        f"{predicted.answers_per_s:.2f}",
        f"{measured.answers_per_s:.2f}",
        f"{one.answers_off:+.0%}",
        f"{predicted.answer_s_p95:.2f} s",
        f"{measured.answer_s_p95:.2f} s",
        f"{one.p95_off:+.0%}",
        f"{predicted.answer_s_p50:.2f} s",
        f"{measured.answer_s_p50:.2f} s",
    )


def _verdict(figures: "ModelFigures") -> str:
    missed = [f"{one.measured.streams} streams of the {one.policy} policy" for one in figures.compared if not one.holds]
    if not missed:
        return f"every prediction is within {BOUND:.0%}"
    return f"not within {BOUND:.0%}, or answers were lost: {', '.join(missed)}"


def page(figures: "ModelFigures") -> str:
    """What `--write` keeps."""
    fitted, pace = figures.fitted, figures.pace
    alone, load, machine, cost = fitted.alone, fitted.load, fitted.machine, fitted.machine.cost
    turns = sum(run.turns for run in alone.runs) / len(alone.runs)
    tokens = sum(run.tokens for run in alone.runs) / len(alone.runs)
    slower = sorted({f"{one.both:.2f}" for one in figures.compared if one.policy == "embedded"}) or ["1"]
    gaps = sum(run.gap_seconds for run in alone.runs) / len(alone.runs)
    return f"""# The model of the server under load

`cairn bench model --seconds {figures.seconds:.0f} --fit {load.streams} --write`; Python {platform.python_version()}, \
{cores()} cores, which server and client share.

A discrete-event model replays what one stream showed: for each question of the little world its turns (tokens of the \
context, tokens sampled) and the event loop's time between them, where plans, searches and HTTP are. Turns wait for \
the engine's {machine.workers} workers and share calls by the engine's own rule; what the loop does waits for the \
loop. Each load was predicted first and measured then, with a server of its own; none of them was used to fit. Before \
each load of the embedded policy the one load that the model is fitted with was repeated for half of the time: by its \
answers/s the model knows how fast the machine is by then.

{table(figures).markdown()}

Bound: {BOUND:.0%} for answers/s and p95; {_verdict(figures)}.

| fitted on one stream of the embedded policy ({alone.answers} answers, {alone.seconds:.0f} s) | |
|---|---|
| turns, tokens of an answer | {turns:.2f}, {tokens:.0f} |
| an answer, median | {1000 * alone.answer_s_p50:.0f} ms |
| the event loop between the turns of an answer | {1000 * gaps:.1f} ms |
| a call of the engine | {1000 * cost.call:.2f} ms |
| a token that is read | {1e6 * cost.prompt:.1f} µs |
| a token that is sampled | {1e6 * cost.step:.0f} µs |
| at each step, a token of the context | {1e6 * cost.attend:.3f} µs |

| fitted on one load of {load.streams} streams ({fitted.calls} calls of the engine, {load.answers} answers) | |
|---|---|
| a context more in a call, share of a step | {cost.member:.2f} |
| calls at the same time, each slower by | {cost.both:.2f}; before each load {", ".join(slower)} |
| the event loop, for a token that is passed on | {1e6 * machine.token_seconds:.0f} µs |

| fitted on one stream of the paced policy, and on loads of {load.streams} and {MANY * load.streams} | |
|---|---|
| the event loop, each time that it wakes up | {1e6 * pace.wake_seconds:.0f} µs |
| the event loop, for a token | {1e6 * pace.token_seconds:.0f} µs |
| an answer beside its tokens and its search | {1000 * pace.rest_seconds:.1f} ms |

What it leaves out: the client's share of the cores, admission (every stream has a slot), and the store.
"""
