"""What lab adds to `cairn`: `bench`, `reproduce`, `train plan` and `train reader`."""

import typer

from lab.benchmarks.fills import commands as fills
from lab.benchmarks.load import commands as load
from lab.cli import (
    building,
    checks,
    conversion,
    engine,
    engines,
    kg,
    libraries,
    reader,
    retrieval,
    rollouts,
    rungs,
    serve,
    sft,
    trajectories,
)
from lab.cli.bench import bench_app
from lab.plan import commands as plan
from lab.reproduce.commands import reproduce

__all__ = [
    "building",
    "checks",
    "conversion",
    "engine",
    "engines",
    "fills",
    "kg",
    "libraries",
    "load",
    "plan",
    "reader",
    "register",
    "register_train",
    "retrieval",
    "rollouts",
    "rungs",
    "serve",
    "sft",
    "trajectories",
]
"""Each of these adds its commands to `bench` or `train` when it is imported."""


def register(app: typer.Typer) -> None:
    """Add `bench` and `reproduce`."""
    rungs.register()
    app.add_typer(bench_app, name="bench")
    app.command("reproduce")(reproduce)


def register_train(_app: typer.Typer) -> None:
    """Nothing more: `plan` and `reader` joined `train` when this module was imported."""
