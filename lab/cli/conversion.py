"""`cairn bench conversion`: its command, its table and its page."""

import platform
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from agent.cli.console import messages
from agent.cli.options import JsonOption
from lab.cli.bench import bench_app
from lab.report import ReportTable, print_report, write_report

if TYPE_CHECKING:
    from lab.benchmarks.conversion import ConversionFigures

REPORT: Final = Path("docs/bench/conversion.md")
CODE: Final = ("agent/models", "lab/benchmarks/conversion.py")
"""What the figures depend on."""
_HEADS: Final = ("model", "adapter", "to", "seconds", "second call, s", "peak memory, MB", "on disk, MB")


@bench_app.command("conversion")
def conversion(
    model: Annotated[
        str, typer.Argument(metavar="[NAME]", help="A GGUF file, or the name of a model that was fetched.")
    ] = "smollm2-135m-instruct",
    *,
    adapter: Annotated[Path | None, typer.Option(metavar="DIR", help="Measure with this adapter, too.")] = None,
    write: Annotated[bool, typer.Option("--write", help=f"Write the table to {REPORT}, too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Convert a model for the embedded policy, in int8 and float32, on one core and without torch.

    Example: cairn bench conversion --write
    """
    from agent.models.cache import ModelCache
    from agent.models.fetch import obtain
    from lab.benchmarks.conversion import measure

    file = obtain(model, cache=ModelCache()).path
    with messages().status("converting"):
        rows = [measure(file, quantization=each) for each in ("int8", "float32")]
        rows += [measure(file, adapter=adapter)] if adapter else []
    if write:
        write_report(REPORT, page(rows), code=CODE)
    print_report([_table(rows)], {"conversions": [asdict(row) for row in rows]}, as_json=as_json)


def _table(rows: "list[ConversionFigures]") -> ReportTable:
    return ReportTable(_HEADS, [_cells(row) for row in rows])


def _cells(row: "ConversionFigures") -> tuple[str, ...]:
    return (
        f"{row.model}, {row.model_mb:.0f} MB",
        "merged" if row.adapter else "none",
        row.quantization,
        f"{row.seconds:.1f}",
        f"{row.again_seconds:.3f}",
        f"{row.peak_mb:.0f}",
        f"{row.served_mb:.0f}",
    )


def page(rows: "list[ConversionFigures]") -> str:
    """What `--write` keeps."""
    return f"""# From GGUF to the embedded policy

`cairn bench conversion --write`; Python {platform.python_version()}, one core, no torch.

Dequantized, merged, quantized and written by `cairn model convert`; a process of its own each, the start of its \
libraries included. The second call finds the folder; it hashes a GGUF that is named as a file, and the adapter.

{_table(rows).markdown()}
"""
