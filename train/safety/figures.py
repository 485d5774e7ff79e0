"""A step's rollouts as figures by name. Nothing here writes, and nothing decides."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from agent.trace import Searched, SearchFailed, Trace
from train.evaluation.abstention import abstains
from train.evaluation.words import content_words
from train.rewards.support.masking import why_masked

Figures = dict[str, float]
"""Name → value. A figure of nothing (a mean over no searches) is left out; it is never 0 or nan."""

_LIMITS = ("policy_tokens", "context")
"""Budgets that end a rollout because it was too long."""


@dataclass(frozen=True)
class Watched:
    """One rollout, as the monitors see it."""

    trace: Trace
    parts: Mapping[str, float] | None
    """Of its reward, the penalty for its length among them; None where it is masked."""
    total: float = 0.0
    """Of the parts, each by its weight in the recipe: what is learned from."""
    too_long: bool = False
    """Whether it is masked for its length, as a recipe may ask."""

    @property
    def why_masked(self) -> str:
        """The reason; empty where it is not masked."""
        if self.parts is not None:
            return ""
        outside = "it is longer than may be" if self.too_long else "a judge, a reader or an embedder failed"
        return why_masked(self.trace) or outside


def figures_of(rollouts: Sequence[Watched]) -> Figures:
    """Everything to watch in the rollouts of one step.

    Shares are of 1, lengths in policy tokens. What the policy did is counted over the rollouts that nothing outside
    broke; searches are counted over all.
    """
    traces = [one.trace for one in rollouts]
    own = [trace for trace in traces if not why_masked(trace)]
    return {
        "rollouts": float(len(rollouts)),
        **_masked(rollouts),
        **_lengths(own),
        **_searches(traces, own),
        **_rewards(rollouts),
    }


def reasons_of(rollouts: Iterable[Watched]) -> dict[str, int]:
    """How many rollouts were masked for each reason, the most frequent first."""
    return dict(Counter(why for one in rollouts if (why := one.why_masked)).most_common())


def _masked(rollouts: Sequence[Watched]) -> Figures:
    return {"masked/share": _share(one.parts is None for one in rollouts)} if rollouts else {}


def _lengths(traces: Sequence[Trace]) -> Figures:
    """How long they are, and how they end."""
    if not traces:
        return {}
    tokens = [trace.usage.policy_tokens for trace in traces]
    ends = [trace.stopped for trace in traces]
    return {
        "length/mean": fmean(tokens),
        "length/longest": float(max(tokens)),
        "length/limit_share": _share(end is not None and end.budget in _LIMITS for end in ends),
        "answer/closed_share": _share(end is not None and end.reason == "answered" for end in ends),
        "answer/forced_share": _share(end is not None and end.reason == "forced" for end in ends),
        "answer/bad_format_share": _share(end is not None and end.reason == "bad_format" for end in ends),
        "answer/unknown_share": _share(abstains(trace.answer or "") for trace in traces),
    }


def _searches(traces: Sequence[Trace], own: Sequence[Trace]) -> Figures:
    """What was searched and found. A rollout that fails at its first search would make searching look rare."""
    searches = [step for trace in traces for step in trace.steps if isinstance(step, Searched | SearchFailed)]
    found = [step for step in searches if isinstance(step, Searched)]
    figures = {"search/mean": fmean(_search_count(trace) for trace in own)} if own else {}
    if searches:
        figures["search/seconds"] = sum(step.took for step in searches)
        figures["search/failed_share"] = 1 - len(found) / len(searches)
    if found:
        figures["search/empty_share"] = _share(not step.passages for step in found)
        figures["search/lost_share"] = _share(bool(step.lost) for step in found)
        figures["search/stale_share"] = _share(step.cached == "stale" for step in found)
        figures["search/duplicate_share"] = sum(map(_repeats, traces)) / len(found)
    return figures


def _search_count(trace: Trace) -> int:
    return sum(isinstance(step, Searched | SearchFailed) for step in trace.steps)


def _repeats(trace: Trace) -> int:
    """Searches that repeat the content words of an earlier search of the same source."""
    searches = [
        (step.source, tuple(sorted(content_words(step.query)))) for step in trace.steps if isinstance(step, Searched)
    ]
    return len(searches) - len(set(searches))


def _rewards(rollouts: Sequence[Watched]) -> Figures:
    """Every part and their weighted sum: mean, extremes, and how far they lie apart."""
    parts = [one.parts for one in rollouts if one.parts is not None]
    if not parts:
        return {}
    columns = {name: [one[name] for one in parts] for name in parts[0]}
    columns["total"] = [one.total for one in rollouts if one.parts is not None]
    figures: Figures = {}
    for name, values in columns.items():
        figures[f"reward/{name}"] = fmean(values)
        figures[f"reward/{name}_lowest"] = min(values)
        figures[f"reward/{name}_highest"] = max(values)
    figures["reward/total_std"] = pstdev(columns["total"])
    return figures


def _share(said: Iterable[bool]) -> float:
    values = list(said)
    return sum(values) / len(values)
