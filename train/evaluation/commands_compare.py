"""`cairn eval-report` and `cairn eval-compare`: what stored runs say, without another request."""

from pathlib import Path
from typing import Annotated

import typer

from agent.cli.console import note, output, print_json
from agent.cli.options import JsonOption

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that cairn eval --out wrote.")]
FirstArgument = Annotated[Path, typer.Argument(metavar="RUN_A", help="The run to compare with, as the baseline.")]
SecondArgument = Annotated[Path, typer.Argument(metavar="RUN_B", help="The run to judge.")]
OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Write compare.json, compare.md and compare.html there.")
]
HtmlOption = Annotated[bool, typer.Option("--html/--no-html", help="Also draw the page, report.html.")]

_REPORT_EXAMPLES = """
[bold]Examples[/bold]

cairn eval-report runs/dev             # writes report.json, report.md and report.html again

cairn eval-report runs/dev --json
"""
_COMPARE_EXAMPLES = """
[bold]Examples[/bold]

cairn eval-compare runs/before runs/after

cairn eval-compare runs/before runs/after --out runs/compared
"""


def register(app: typer.Typer) -> None:
    """Add `eval-report` and `eval-compare` to the root."""
    app.command("eval-report", epilog=_REPORT_EXAMPLES)(report_command)
    app.command("eval-compare", epilog=_COMPARE_EXAMPLES)(compare_command)


def report_command(run: RunArgument, *, html: HtmlOption = True, as_json: JsonOption = False) -> None:
    """Write the report of a stored run again.

    The figures come from the folder's results, the drill-down from its
    traces; no question runs again. report.html is one file that opens
    anywhere, without a network.
    """
    from train.evaluation.report import table
    from train.evaluation.report_files import read_run, write_report

    stored = read_run(run)
    figures = stored.figures()
    written = write_report(run, figures, stored.results, title=stored.title, measured=stored.measured, html=html)
    note(f"written: {', '.join(map(str, written))}")
    if as_json:
        print_json(figures)
    else:
        output().print(table(figures, stored.title))


def compare_command(
    first: FirstArgument, second: SecondArgument, *, out: OutOption = None, as_json: JsonOption = False
) -> None:
    """Compare two runs question by question: differences with intervals and tests.

    Only questions that both runs scored count, each paired with itself. Every
    figure has the paired bootstrap's 95 % interval and a paired permutation
    test; EM also has McNemar's exact test. --out writes a page
    with both traces of every question that changed.
    """
    import json

    from train.evaluation import compare
    from train.evaluation.compare_html import compare_page
    from train.evaluation.report_files import read_run, write

    runs = read_run(first), read_run(second)
    figures = compare.compared(*runs)
    if out:
        texts = {
            "compare.json": json.dumps(figures, indent=2, ensure_ascii=False) + "\n",
            "compare.md": compare.markdown(figures),
            "compare.html": compare_page(figures, *runs),
        }
        note(f"written: {', '.join(map(str, write(out, texts)))}")
    if as_json:
        print_json(figures)
    else:
        output().print(compare.table(figures))
