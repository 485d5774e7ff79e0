"""The part of the page about real questions."""

from pathlib import Path
from typing import Final

from lab.reproduce.findings import MEANS, Findings
from lab.reproduce.jobs import REAL_JOB
from lab.reproduce.real import ARMS
from lab.reproduce.tables import LABELS, checked, looked, row, verdict_of
from lab.reproduce.verdict import Ruling

_HEADING: Final = "## On real questions"


def has_real_part(page: Path) -> bool:
    """Whether a page that is there has a part about real questions."""
    return page.is_file() and _HEADING in page.read_text(encoding="utf-8").splitlines()


def real_part(findings: Findings) -> list[str]:
    """Nothing where there are no real questions."""
    if not findings.real:
        return []
    heads = " | ".join(LABELS.get(metric, metric) for metric in MEANS)
    rows = [
        f"| `{arm.name}` | {arm.says} | {' | '.join(_means(findings, arm.name))} |"
        for arm in ARMS
        if arm.name in findings.real_arms
    ]
    return [
        _HEADING,
        "",
        "The shipped policy that reads English, greedy, over passages of Wikipedia. The intervals are bootstraps over "
        "questions, paired: they say what other questions would give. There is no other training to draw. "
        f"{findings.made_at(f'{REAL_JOB}/')}".rstrip(),
        "",
        *(line for one in findings.real.values() for line in _claim(one)),
        f"| arm | what it is | {heads} |",
        f"|---|---|{'---|' * len(MEANS)}",
        *rows,
        "",
    ]


def _means(findings: Findings, name: str) -> list[str]:
    means = findings.real_arms[name].means
    return [f"{means[metric]:.3f}" if metric in means else "–" for metric in MEANS]


def _claim(ruling: Ruling) -> list[str]:
    direction = ruling.direction
    judged = {id(one.expected): one for one in ruling.judged}
    seen = {id(one.check): one for one in ruling.checked}
    return [
        f"**{direction.name}**: {direction.claim} {verdict_of(ruling)}.",
        "",
        "| inequality | first | second | difference (95 %) | margin | questions, sets | |",
        "|---|---|---|---|---|---|---|",
        *(row(expected, judged.get(id(expected)), ruling.seeds) for expected in direction.expected),
        "",
        "| check | found (95 %) | |",
        "|---|---|---|",
        *(f"| {checked(check)} | {looked(seen.get(id(check)))} |" for check in direction.checks),
        "",
    ]
