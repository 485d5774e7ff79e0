"""The transfer's figures as a page of the documentation, and as rows of a table."""

import platform
from collections.abc import Sequence
from typing import Final

from agent.cores import cores
from lab.reader.transfer import BOUND, CONDITIONS, ROOM, TOP, Condition, Transfer
from lab.report import ReportTable
from train.evaluation.statistics import Interval
from train.reader.reading import TrainedReader

_NAMES: Final[dict[Condition, str]] = {
    "alone": "the reader alone",
    "top_5": f"from plain retrieval, top {TOP}",
    "as_many_as_fit": "from plain retrieval, as many as fit",
    "evidence": "from our evidence",
}


def table(figures: Transfer) -> ReportTable:
    """Condition, EM with its interval, characters given, share of gold passages given."""
    rows = [
        (_NAMES[name], _interval(figures.em[name]), f"{figures.chars[name]:.0f}", f"{figures.gold_given[name]:.2f}")
        for name in CONDITIONS
    ]
    rows.append(("(the agent's own answer)", _interval(figures.agent_em), "", ""))
    title = f"{figures.world}, {figures.n} questions"
    return ReportTable(("", "EM", "characters", "gold given"), rows, title=title, caption=verdict(figures))


def verdict(figures: Transfer) -> str:
    """The difference in a sentence, and whether it is what was to be shown."""
    gain = figures.gain
    said = "met" if figures.holds else "not met"
    p = "" if gain.p_mcnemar is None else f", McNemar p = {gain.p_mcnemar:.2g}"
    return (
        f"Evidence − {_NAMES[figures.plain].removeprefix('from ')}: {_signed(gain.difference)}{p}; {gain.better} "
        f"questions better, {gain.worse} worse. The bound (at least {BOUND:.2f}, 0 excluded) is {said}."
    )


def report(measured: Sequence[Transfer], reader: TrainedReader) -> str:
    """The page."""
    worlds = "\n".join(_world(figures) for figures in measured)
    return f"""# Transfer: evidence in the hands of another model

`cairn bench transfer --write`; Python {platform.python_version()}, {cores()} cores.

The reader (`{reader.name}`, {reader.parameters:,} parameters) is another architecture than the policy: an encoder \
that reads question and passages both ways and points at the answer's first and last word, with words of its own and \
no pieces of words. It was trained on passages and questions of training worlds (`lab/recipes/reader.toml`), never \
on evidence of an agent. What is in no passage (counts, "I do not know", what every world knows) it answers from a \
fixed list.

It answers the same questions of unseen worlds with the same room, {ROOM:,} characters: alone; from one BM25 search \
over all sources with the question, {TOP} passages or as many as fit; and from the evidence that the agent gathered \
(`agent.rstool`), claims with their quotations. Evidence is compared with the better one of the two plain retrievals. \
Intervals are 95 % bootstrap over the questions, differences are paired. `gold given` is the share of a question's \
gold passages that were given, as evidence by a claim under their head. This is the second figure of R-Search (Zhao \
et al., 2025) in miniature.

{worlds}"""


def _world(figures: Transfer) -> str:
    kinds = [
        (kind, f"{em['n']:.0f}", *(f"{em[name]:.2f}" for name in (*CONDITIONS, "agent")))
        for kind, em in figures.by_type.items()
    ]
    head = ("type", "n", "alone", f"top {TOP}", "as many as fit", "evidence", "agent")
    outcomes = ", ".join(f"{count} {name}" for name, count in figures.outcomes.items() if count)
    return f"""## {figures.world}, {figures.n} questions

Evidence by {figures.agent}.

{table(figures).markdown()}

{verdict(figures)} Evidence − alone: {_signed(figures.gain_over_alone.difference)}. Bundles: {outcomes}.

{ReportTable(head, kinds).markdown()}
"""


def _interval(interval: Interval) -> str:
    return f"{interval.value:.3f} ({interval.low:.3f}–{interval.high:.3f})"


def _signed(interval: Interval) -> str:
    return f"{interval.value:+.3f} ({interval.low:+.3f} to {interval.high:+.3f})"
