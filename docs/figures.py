"""Every table of figures says when it was measured, at which commit, and of which code. `make figures` checks that.

A line such as `*Measured 2026-11-24 at 1a2b3c4; code: agent/plan agent/sources/kg*` counts for what is below it, until
the next one; `lab.report.write_report` writes it. A `+` behind the commit says that there were changes
beside it. A table of numbers that were not measured has `<!-- not measured -->` above it.

    python docs/figures.py        # lists what is older than its code; exit status 1 where a table has no such line
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
MARK: Final = re.compile(r"\*Measured (\d{4}-\d\d-\d\d) at ([0-9a-f]{7,40})\+?; code: ([^*]+)\*")
SET: Final = "<!-- not measured -->"
FEWEST: Final = 6
"""Numbers of a table from which on it is one of figures."""
_NUMBER: Final = re.compile(r"\d")
_PLAIN: Final = re.compile(r"[\W_]*\d[\d,.]*[\W_]*(?:%|s|ms|µs|[KMG]B|M|min)?[\W_]*(?:\(.*\))?")
_EXEMPT: Final = frozenset({"docs/log.md", "docs/settings.md"})
"""A journal, of the days of its entries; and a page of defaults."""


@dataclass(frozen=True)
class Mark:
    """One line that says when something was measured."""

    page: str
    line: int
    date: str
    commit: str
    code: tuple[str, ...]


def pages() -> list[Path]:
    """Everything that may hold figures."""
    found = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "agent/checkpoints").glob("*/README.md")]
    return [path for path in sorted(found) if path.relative_to(ROOT).as_posix() not in _EXEMPT]


def marks(text: str, page: str) -> list[Mark]:
    """The marks of a page, in their order."""
    found = ((number, MARK.fullmatch(line.strip())) for number, line in enumerate(text.splitlines(), start=1))
    return [Mark(page, at, m[1], m[2], tuple(m[3].split())) for at, m in found if m]


def unmarked(text: str) -> list[int]:
    """The first lines of tables of figures without a mark above them."""
    first = min((mark.line for mark in marks(text, "")), default=sys.maxsize)
    return [line for line, rows, above in _tables(text) if line < first and above != SET and _numbers(rows) >= FEWEST]


def _tables(text: str) -> Iterator[tuple[int, list[str], str]]:
    """Of each table its first line's number, its body, and the last line above it that says something."""
    lines = text.splitlines()
    above, fenced, at = "", False, 0
    while at < len(lines):
        line = lines[at].strip()
        fenced ^= line.startswith("```")
        end = at + 1
        if line.startswith("|") and not fenced:
            while end < len(lines) and lines[end].lstrip().startswith("|"):
                end += 1
            yield at + 1, lines[at + 2 : end], above
        above = line or above
        at = end


def _numbers(rows: list[str]) -> int:
    """Cells that hold a number and nothing else."""
    cells = (cell.strip() for row in rows for cell in row.strip().strip("|").split("|"))
    return sum(bool(_NUMBER.search(cell) and _PLAIN.fullmatch(cell)) for cell in cells)


def git(*arguments: str) -> str | None:
    """What git says; None where it cannot."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def wrong(mark: Mark) -> str:
    """What is wrong with a mark; empty where nothing is. A shallow clone knows too little to say."""
    if gone := [path for path in mark.code if not (ROOT / path).exists()]:
        return f"{', '.join(gone)} is not there"
    shallow = git("rev-parse", "--is-shallow-repository") != "false"
    if not shallow and git("merge-base", "--is-ancestor", mark.commit, "HEAD") is None:
        return f"{mark.commit} is no commit of this branch"
    return ""


def changes(mark: Mark) -> int:
    """Commits since then that touch the code."""
    return int(git("rev-list", "--count", f"{mark.commit}..HEAD", "--", *mark.code) or 0)


def main() -> int:
    """List what is wrong and what is old; 1 where something is wrong."""
    failed = 0
    for path in pages():
        text, page = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
        said = [
            f"{page}:{line}: a table of figures without a line that says when it was measured"
            for line in unmarked(text)
        ]
        found = marks(text, page)
        said += [f"{page}:{mark.line}: {why}" for mark in found if (why := wrong(mark))]
        failed += len(said)
        old = {mark: count for mark in found if not wrong(mark) and (count := changes(mark))}
        said += [f"{page}:{m.line}: measured {m.date}; {n} commits have changed its code since" for m, n in old.items()]
        sys.stdout.write("".join(f"{line}\n" for line in said))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
