"""One distillation: rollouts in, rows and a table out. Where there are no traces yet, `rollouts` makes them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from agent.errors import SetupError
from agent.protocols import protocol_named
from agent.sources.questions import GoldQuestion
from agent.trace import Trace
from train.distill.keep import KeepRules, KeepVerdict, judge
from train.distill.rows import TrainingRow, rows_of, write_rows
from train.evaluation.questions import fingerprint
from train.safety.manifest import hash_of, kept_manifest

if TYPE_CHECKING:
    from rich.table import Table

ROWS: Final = "rows.jsonl"


def _is_empty(said: Mapping[str, Any]) -> bool:
    """An empty field is left out, so that folders of earlier versions have the same recipe."""
    return not said


class DistillRecipe(BaseModel):
    """What decides which rows come out, for the manifest."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str = "distill"
    name: str
    right: bool
    supported: bool
    reward: str
    reward_settings: dict[str, Any] = Field(default={}, exclude_if=_is_empty)
    least: dict[str, float]
    each: int
    seeds: tuple[int, ...] = ()
    """Of the rollouts that were made for it."""
    agent: dict[str, Any] = Field(default={}, exclude_if=_is_empty)
    """Settings of the agent that made them."""


@dataclass(frozen=True)
class Distilled:
    """What came of a distillation."""

    verdicts: Sequence[KeepVerdict]
    rows: int

    @property
    def kept(self) -> list[KeepVerdict]:
        return [verdict for verdict in self.verdicts if not verdict.why_not]

    @property
    def reasons(self) -> dict[str, int]:
        """Why the others were not kept, the most frequent reason first."""
        return dict(Counter(verdict.why_not for verdict in self.verdicts if verdict.why_not).most_common())

    @property
    def figures(self) -> dict[str, float]:
        """For the manifest."""
        counts = {"rollouts": len(self.verdicts), "kept": len(self.kept), "rows": self.rows}
        whys = {f"not kept: {why}": count for why, count in self.reasons.items()}
        return {name: float(count) for name, count in (counts | whys).items()}

    def table(self) -> "Table":
        """What was kept by protocol and type of question, and why the rest was not."""
        from rich.table import Table

        table = Table("", "rollouts", "kept", title=f"{len(self.kept)} of {len(self.verdicts)} rollouts kept")
        for column in table.columns[1:]:
            column.justify = "right"
        all_of = Counter(map(_group, self.verdicts))
        kept = Counter(map(_group, self.kept))
        for name in sorted(all_of):
            table.add_row(name, str(all_of[name]), str(kept[name]))
        table.add_section()
        for why, count in self.reasons.items():
            table.add_row(f"not kept: {why}", str(count), "")
        return table


async def distill(
    traces: Iterable[Trace],
    questions: Sequence[GoldQuestion],
    check: KeepRules,
    out: Path,
    *,
    recipe: DistillRecipe,
    files: Sequence[Path] = (),
) -> Distilled:
    """Write the rows of what the check keeps to `rows.jsonl`, and leave a manifest beside them.

    Args:
        traces: of rollouts that have ended.
        questions: with their gold; may be empty where the check needs none.
        check: what is kept.
        out: folder.
        recipe: for the manifest.
        files: that the traces were read from; the manifest has their hashes.

    Raises:
        SetupError: nothing was kept; the sentence names the most frequent reason.
    """
    data = {"questions": fingerprint(questions), **_hashes(files)}
    with kept_manifest(out, recipe=recipe, seeds={}) as manifest:
        manifest.data = data
        verdicts = await judge(traces, questions, check)
        rows = [row for verdict in verdicts if not verdict.why_not for row in _rows(verdict, check)]
        done = Distilled(verdicts, len(rows))
        manifest.figures = done.figures
        if not rows:
            why = next(iter(done.reasons), "there are no rollouts")
            raise SetupError(f"none of {len(verdicts)} rollouts is kept, most often because {why}")
        write_rows(out / ROWS, rows)
        manifest.data["rows"] = hash_of(out / ROWS)
    return done


def _hashes(files: Sequence[Path]) -> dict[str, str]:
    """By name; those of one name, from several folders, by their whole paths."""
    names = Counter(file.name for file in files)
    return {file.name if names[file.name] == 1 else file.as_posix(): hash_of(file) for file in files}


def _rows(verdict: KeepVerdict, check: KeepRules) -> list[TrainingRow]:
    protocol = check.protocol or protocol_named(verdict.trace.protocol)
    return rows_of(verdict.trace, protocol, type=verdict.question.type if verdict.question else "")


def _group(verdict: KeepVerdict) -> str:
    kind = verdict.question.type if verdict.question else ""
    return f"{verdict.trace.protocol} {kind}".rstrip()
