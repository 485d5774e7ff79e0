"""`cairn world`: build a little world, and check one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from agent.cli.console import output, print_json
from agent.errors import SetupError

if TYPE_CHECKING:
    from agent.world.validate import Check

world_app = typer.Typer(no_args_is_help=True, help="The little world: generated documents and questions.")


@world_app.command("build")
def build(
    seed: Annotated[int, typer.Option(help="The same seed gives the same world.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder to write.")],
    size: Annotated[int, typer.Option(min=30, help="How many people; everything else follows.")] = 110,
    questions: Annotated[int, typer.Option(min=0, help="How many questions.")] = 200,
    split: Annotated[str, typer.Option(help="Whose names: train, dev or test.")] = "train",
    json: Annotated[bool, typer.Option("--json", help="Print the card as one object.")] = False,
) -> None:
    """Generate a world: encyclopedia pages, news, abstracts, a knowledge graph, and questions with gold answers.

    Example: cairn world build --seed 7 --out my-world --size 200 --questions 100
    """
    from agent.world import build_world
    from agent.world.names import SPLITS, split_named

    chosen = split_named(split)
    if chosen is None:
        raise typer.BadParameter(f"{split!r} is no split; there are {', '.join(SPLITS)}", param_hint="--split")
    try:
        card = build_world(seed, split=chosen, people=size, questions=questions, out=folder, name=folder.name)
    except ValueError as error:
        raise SetupError(f"{error}: give a larger --size or fewer --questions") from error
    if json:
        print_json(card.model_dump())
    else:
        output().print(f"{folder}: {card.documents} documents, {card.questions} questions, generator {card.generator}")


@world_app.command("validate")
def check(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A world's folder, or test, test-v1, dev.")],
    json: Annotated[bool, typer.Option("--json", help="Print one object.")] = False,
) -> None:
    """Check that a world's questions are sound, mixed as promised, and not given away. Exit status 1 if not.

    Example: cairn world validate test-v1
    """
    from agent.world import load_world
    from agent.world.store import read_card
    from agent.world.validate import validate

    world = load_world(folder)
    if not world.questions:
        raise SetupError(f"{folder} has no questions to validate: build it with --questions")
    path = Path(folder)
    split = read_card(path).split if path.is_dir() else ("dev" if folder == "dev" else "test")
    checks = validate(world, split)
    if json:
        print_json({"world": world.name, "holds": all(c.holds for c in checks), "checks": _plain(checks)})
    else:
        output().print(_table(world.name, checks))
    if not all(c.holds for c in checks):
        raise typer.Exit(1)


def _plain(checks: "list[Check]") -> list[dict[str, object]]:
    return [c.model_dump() for c in checks]


def _table(name: str, checks: "list[Check]") -> Table:
    table = Table("check", "value", "bound", "", title=f"World {name}")
    for c in checks:
        table.add_row(c.name, f"{c.value:.3f}", c.bound, "[green]holds[/]" if c.holds else "[red]does not hold[/]")
    return table


def register(app: typer.Typer) -> None:
    """Add the `world` commands."""
    app.add_typer(world_app, name="world")
