"""`cairn dataset`: look at a published question set, and make a corpus or a question list of it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from agent.cli.console import note, output, print_json
from agent.cli.options import JsonOption

dataset_app = typer.Typer(no_args_is_help=True, help="Published question sets: what a file holds, and its paragraphs.")

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A file of questions, as it is published.")]
NameOption = Annotated[
    str | None, typer.Option("--dataset", metavar="NAME", help="Its form, where it should not be guessed.")
]
OutOption = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write JSON lines.")]


@dataset_app.command("list")
def list_forms(*, as_json: JsonOption = False) -> None:
    """Name the forms that are read, and what a file of each looks like.

    Example: cairn dataset list
    """
    from train.evaluation.datasets import FORMATS

    if as_json:
        print_json({"forms": [{"name": f.name, "label": f.label, "expects": f.expects} for f in FORMATS.values()]})
        return
    table = Table("--dataset", "set", "a file of it")
    for form in FORMATS.values():
        table.add_row(form.name, form.label, form.expects)
    output().print(table)


@dataset_app.command("show")
def show(file: FileArgument, *, dataset: NameOption = None, as_json: JsonOption = False) -> None:
    """Show which set a file is, how many questions it has, and the first of them.

    Example: cairn dataset show hotpot_dev_distractor_v1.json
    """
    from train.evaluation.datasets import read_dataset

    found = read_dataset(file, dataset)
    first = found.questions[0]
    shown = {
        "dataset": found.name,
        "label": found.label,
        "sha256": found.sha256,
        "n": len(found.questions),
        "unanswerable": sum(q.unanswerable for q in found.questions),
        "with_gold_passages": sum(bool(q.supporting) for q in found.questions),
        "with_options": sum(bool(q.options) for q in found.questions),
        "first": {"id": first.id, "question": first.question, "answers": list(first.answers)},
    }
    if as_json:
        print_json(shown)
        return
    output().print(
        f"{file}: {found.label}, {shown['n']} questions, {shown['unanswerable']} without an answer, "
        f"{shown['with_gold_passages']} with gold passages"
    )
    output().print(f"first: {first.question} {' | '.join(first.answers)}", markup=False)


@dataset_app.command("corpus")
def corpus(file: FileArgument, *, out: OutOption, dataset: NameOption = None, as_json: JsonOption = False) -> None:
    """Write the paragraphs that come with the questions as a corpus, each once.

    The ids are those that the questions name as gold, so recall can be measured:

    cairn dataset corpus hotpot_dev_distractor_v1.json --out hotpot.jsonl

    cairn index build hotpot.jsonl --out hotpot-index

    cairn eval --questions hotpot_dev_distractor_v1.json --corpus hotpot-index
    """
    from train.evaluation.datasets import write_corpus

    written = write_corpus(file, out, dataset)
    if as_json:
        print_json({"paragraphs": written, "out": str(out)})
    else:
        output().print(f"{out}: {written} paragraphs")
        note(f"next: cairn index build {out} --out FOLDER")


@dataset_app.command("questions")
def questions(file: FileArgument, *, out: OutOption, dataset: NameOption = None, as_json: JsonOption = False) -> None:
    """Write the questions in the project's own form, one a line.

    Example: cairn dataset questions popQA.tsv --out popqa.jsonl
    """
    from train.evaluation.datasets import read_dataset, write_questions

    written = write_questions(read_dataset(file, dataset).questions, out)
    if as_json:
        print_json({"questions": written, "out": str(out)})
    else:
        output().print(f"{out}: {written} questions")


def register(app: typer.Typer) -> None:
    """Add the `dataset` commands."""
    app.add_typer(dataset_app, name="dataset")
