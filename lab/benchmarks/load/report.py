"""`cairn bench load`: its table and its page. It measures nothing."""

import platform
from typing import TYPE_CHECKING

from agent.cores import cores
from lab.benchmarks.load.bounds import ADDED_MS, CANCEL_MS, GROWTH, REFUSED_MS, growth
from lab.report import ReportTable

if TYPE_CHECKING:
    from lab.benchmarks.load.measure import LoadFigures
    from lab.benchmarks.load.streams import StreamLoad


def table(figures: "LoadFigures") -> ReportTable:
    return ReportTable(
        ["", "paced policy", *(["embedded policy"] if figures.embedded else [])],
        _rows(figures),
        title=f"{figures.paced.streams} streams at once for {figures.paced.seconds:.0f} s",
        caption="; ".join(_verdicts(figures)),
    )


def _rows(figures: "LoadFigures") -> list[tuple[str, ...]]:
    loads = [figures.paced, *([figures.embedded] if figures.embedded else [])]

    def row(name: str, of: "StreamLoad") -> str:
        return {
            "answers": f"{of.answers}",
            "lost": f"{of.lost}",
            "interleaved": f"{of.interleaved}",
            "answers/s": f"{of.answers_per_s:.1f}",
            "tokens/s": f"{of.tokens_per_s:.0f}",
            "an answer, median": f"{of.answer_s_p50:.2f} s",
            "an answer, p95": f"{of.answer_s_p95:.2f} s",
            "added, median": f"{of.added_ms_p50:.2f} ms",
            "added, p99": f"{of.added_ms_p99:.2f} ms",
            "added, longest": f"{of.added_ms_max:.1f} ms",
            "memory of the server": f"{of.rss_mb:.0f} MB",
            "memory's slope": f"{of.rss_mb_slope:+.2f} MB/min",
            "memory's growth": f"{growth(of):+.1%}",
            "cores that the server kept busy": f"{of.cores_busy:.2f}",
        }[name]

    names = ("answers", "lost", "interleaved", "answers/s", "tokens/s")
    names += ("an answer, median", "an answer, p95", "added, median", "added, p99")
    names += ("added, longest", "memory of the server", "memory's slope", "memory's growth")
    names += ("cores that the server kept busy",)
    return [(name, *(row(name, of) for of in loads)) for name in names]


def _verdicts(figures: "LoadFigures") -> list[str]:
    flood, leaving = figures.flood, figures.leaving
    refused = (
        f"{flood.refused} of {flood.requests} refused, p99 {flood.refused_ms_p99:.1f} ms (bound {REFUSED_MS}), "
        f"{flood.accepted} accepted, {flood.accepted_lost} of them lost"
        if flood.refused
        else f"nothing was refused of {flood.requests}: there is no admission control"
    )
    return [
        f"added to a token, p99 {figures.paced.added_ms_p99:.2f} ms (bound {ADDED_MS})",
        refused,
        f"{leaving.cancelled} of {leaving.disconnects} disconnects heard of, "
        f"at most {leaving.cancel_ms_max:.0f} ms (bound {CANCEL_MS})",
        f"missed: {', '.join(figures.missed)}" if figures.missed else "every bound was kept",
    ]


def page(figures: "LoadFigures") -> str:
    """What `--write` keeps."""
    from lab.benchmarks.load.measure import FLOOD_QUEUE, FLOOD_RUNS
    from lab.benchmarks.load.paced import SEARCH_SECONDS

    flood, leaving, paced = figures.flood, figures.leaving, figures.paced
    return f"""# The server under load

`cairn bench load --streams {paced.streams} --write`; Python {platform.python_version()}, {cores()} cores, \
which server and client share.

The server that `cairn serve` makes, with its store, in a process of its own, over HTTP with {paced.streams} \
streams that are open at the same time; each one sends the next request when it has ended, and it went on for \
{paced.seconds:.0f} s. The *paced* policy writes 20 tokens a second and stream, and searches once \
({1000 * SEARCH_SECONDS:.0f} ms) in an answer of 300; the *embedded* policy samples as fast as the cores let it.

{table(figures).markdown()}

*Lost* is a stream that did not bring every token once and in order, usage and `[DONE]`. *Interleaved* is a stream \
that brought anything of another one: each token of the paced policy holds its stream's own mark, the embedded \
policy's frames their completion's id. *Added* is, for the paced policy, the time from the moment in which a token is \
due until the client has read it, of every token: a server that has no time for the policy makes it late, too; for the \
embedded one the time of an answer less the rollout's own seconds. The slope of the memory is that of a line through \
its samples after the first quarter; its growth, by that slope, is flat below {GROWTH:.0%}.

Bounds: {"; ".join(figures.missed) + " (missed)" if figures.missed else "every one was kept"}.

| more than the server takes | |
|---|---|
| requests, of which {FLOOD_RUNS} may run and {FLOOD_QUEUE} wait | {flood.requests} |
| accepted | {flood.accepted} |
| of these without a whole answer | {flood.accepted_lost} |
| refused with 429 | {flood.refused} |
| of these without Retry-After | {flood.refused_without_retry_after} |
| anything else | {flood.others} |
| time of a refusal, median | {flood.refused_ms_p50:.1f} ms |
| time of a refusal, p99 | {flood.refused_ms_p99:.1f} ms |

What comes while the server is full comes at 500 requests a second.

| clients that leave | |
|---|---|
| left, a quarter each: streamed or not, while the policy writes or a search runs | {leaving.disconnects} |
| policy or search was let go | {leaving.cancelled} |
| time until then, median | {leaving.cancel_ms_p50:.1f} ms |
| time until then, longest | {leaving.cancel_ms_max:.1f} ms |

Policy and search write down themselves when they are let go. All clients leave at nearly the same time.
"""
