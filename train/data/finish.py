"""The end of a build: questions in their order, the corpus that they are about, and a folder where it is a world."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final

from agent.errors import SetupError
from agent.sanitize.text import in_markdown
from agent.sources.questions import GoldQuestion
from train.data.folder import Folder, Step, counted
from train.data.inputs import Inputs, WorldInput
from train.data.recipe import DataRecipe
from train.data.records import Candidate, Doc
from train.data.steps import UNITS, Made, Steps
from train.safety.manifest import hash_of
from train.world.writing import write_world

if TYPE_CHECKING:
    from rich.table import Table


QUESTIONS: Final = "questions.jsonl"
CORPUS: Final = "corpus.jsonl"
WORLD: Final = "world"
REPORT: Final = "report.md"


@dataclass(frozen=True)
class Finished:
    """What a build gave."""

    folder: Path
    steps: list[Step]
    questions: int

    @property
    def figures(self) -> dict[str, float]:
        """For the manifest: what every step took, gave and dropped."""
        figures: dict[str, float] = {}
        for step in self.steps:
            figures |= {f"{step.name}: in": step.taken, f"{step.name}: out": step.given}
            figures |= {f"{step.name}: {why}": number for why, number in step.dropped.items()}
        return {name: float(number) for name, number in figures.items()}

    @property
    def hashes(self) -> dict[str, str]:
        return {name: hash_of(self.folder / name) for name in (QUESTIONS, CORPUS)}

    @property
    def has_world(self) -> bool:
        return (self.folder / WORLD).is_dir()

    def next_commands(self) -> list[str]:
        """What to do with it, in a few lines."""
        questions, corpus = self.folder / QUESTIONS, self.folder / CORPUS
        if self.has_world:
            world = self.folder / WORLD
            return [
                f"to learn from the oracle: built = '{self.folder}' in [data] of a recipe for cairn train sft",
                f"to learn by reward: questions = '{questions}', order = 'listed', search = {{ world = '{world}' }}",
                f"to ask them: cairn eval --world {world}",
            ]
        return [
            f"to search in: cairn index build {corpus} --out INDEX",
            f"to learn by reward: questions = '{questions}', order = 'listed', search = {{ corpus = 'INDEX' }}",
            f"to ask them: cairn eval --questions {questions} --dataset cairn --corpus INDEX",
        ]

    def table(self) -> "Table":
        """A line a step, and under it why things were left out."""
        from rich.table import Table

        table = Table("step", "in", "out", "s", "", title=f"{self.questions} questions")
        for column in table.columns[1:4]:
            column.justify = "right"
        for step in self.steps:
            said = ", ".join(f"{name} {number:g}" for name, number in step.figures.items())
            taken, given = f"{step.taken} {step.of}", f"{step.given} {step.gives}"
            table.add_row(step.name, taken, given, f"{step.seconds:.1f}", said)
            for why, number in step.dropped.items():
                table.add_row("", "", f"[dim]−{number}[/]", "", f"[dim]{why}[/]")
        return table


def finished(
    steps: Steps, recipe: DataRecipe, inputs: Inputs, found: Sequence[Candidate], docs: dict[str, Doc]
) -> Finished:
    """Write what training and evaluation read, where that is not done.

    Raises:
        SetupError: no question is left, or the folder cannot be written.
    """
    folder = steps.folder
    if not steps.done("ordering"):
        began = perf_counter()
        if not found:
            raise SetupError(f"no question is left: {_why_none(folder)}; take more documents, or another writer")
        order = ordered(found, seed=recipe.seed)
        folder.write_rows(QUESTIONS, [as_question(candidate, docs) for candidate in order])
        folder.write_rows(CORPUS, [_line(doc) for doc in docs.values()])
        if isinstance(inputs, WorldInput) and all(candidate.plan for candidate in order):
            _write_world(inputs, order, folder.path / WORLD)
        figures = counted(f"over {len(candidate.sources)} sources" for candidate in order)
        steps.end("ordering", Made(len(order), len(order), figures=dict(sorted(figures.items()))), began=began)
    done = Finished(folder.path, [folder.steps[name] for name in UNITS if name in folder.steps], _given(folder))
    folder.write(REPORT, _report(done, recipe).encode())
    return done


def read_finished(path: Path) -> Finished:
    """What a folder holds, whether its build came to its end or not.

    Raises:
        SetupError: it holds no build.
    """
    folder = Folder(path) if path.is_dir() else None
    if folder is None or not folder.steps:
        raise SetupError(f"{path} has no build; make one with cairn data build --out {path}")
    return Finished(path, [folder.steps[name] for name in UNITS if name in folder.steps], _given(folder))


def _given(folder: Folder) -> int:
    step = folder.step("ordering")
    return step.given if step else 0


def _line(doc: Doc) -> dict[str, object]:
    held = doc.model_dump(exclude_defaults=True)
    return {name: value for name, value in held.items() if name != "part"}


def _write_world(inputs: WorldInput, order: Sequence[Candidate], out: Path) -> None:
    questions = [candidate.plan.model_copy(update={"id": candidate.id}) for candidate in order if candidate.plan]
    card = inputs.card.model_copy(update={"name": f"{inputs.card.name}-data"})
    write_world(inputs.with_questions(questions), card, out)


def _why_none(folder: Folder) -> str:
    last = next((step for step in reversed(folder.steps.values()) if step.dropped and not step.given), None)
    return f"in {last.name!r}, {last.taken} were dropped, most often because {next(iter(last.dropped))}" if last else ""


def _report(done: Finished, recipe: DataRecipe) -> str:
    """The table for people who read files."""
    lines = [
        f"# {in_markdown(recipe.name)}: {done.questions} questions",
        "",
        "| step | in | out | seconds | |",
        "|---|---|---|---|---|",
    ]
    for step in done.steps:
        said = [f"{name} {number:g}" for name, number in step.figures.items()]
        said += [f"−{number} {why}" for why, number in step.dropped.items()]
        row = (step.name, f"{step.taken} {step.of}", f"{step.given} {step.gives}", f"{step.seconds:g}", "; ".join(said))
        lines.append(f"| {' | '.join(map(in_markdown, row))} |")
    settings = json.dumps(recipe.model_dump(mode="json", exclude={"kind", "name", "documents"}), ensure_ascii=False)
    return "\n".join([*lines, "", f"Settings: {in_markdown(settings)}", ""])


def ordered(candidates: Sequence[Candidate], *, seed: int) -> list[Candidate]:
    """From easy to hard; the seed decides among those that are alike."""
    rng = random.Random(f"cairn data order {seed}")
    drawn = [(len(one.sources), len(one.supporting), _steps(one), rng.random(), one) for one in candidates]
    return [one for *_, one in sorted(drawn, key=lambda row: row[:4])]


def _steps(candidate: Candidate) -> int:
    """Rounds of the gold plan; of what a model wrote, what asks for a fact comes before what asks why."""
    return candidate.plan.hops if candidate.plan else ("factual", "choice", "causal").index(candidate.type)


def as_question(candidate: Candidate, docs: dict[str, Doc]) -> dict[str, object]:
    """A line of a question list, with `sources` beside what every list has."""
    question = GoldQuestion(
        id=candidate.id,
        question=candidate.question,
        answers=candidate.answers,
        supporting=candidate.supporting,
        titles=tuple(docs[key].title for key in candidate.supporting),
        hops=candidate.plan.hops if candidate.plan else len(candidate.supporting),
        type=candidate.type,
        options=candidate.options,
        dataset="cairn-data",
    )
    held: dict[str, object] = question.model_dump(mode="json", exclude_defaults=True)
    return held | {"sources": list(candidate.sources)}
