"""`cairn world`: build a little world, check one, and write one for agents that are not ours."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from agent.cli.console import output, print_json
from agent.errors import SetupError, wrong_fields

if TYPE_CHECKING:
    from agent.world.difficulty import Difficulty
    from agent.world.names import Split
    from train.world.validate import WorldCheck

world_app = typer.Typer(no_args_is_help=True, help="The little world: generated documents and questions.")


@world_app.command("build")
def build(
    seed: Annotated[int, typer.Option(help="The same seed gives the same world.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder to write.")],
    size: Annotated[int, typer.Option(min=100, help="About how many documents, up to a million.")] = 1200,
    questions: Annotated[int, typer.Option(min=0, help="How many questions.")] = 200,
    split: Annotated[str, typer.Option(help="Whose names: train, dev or test.")] = "train",
    difficulty: Annotated[
        list[str] | None,
        typer.Option("--difficulty", metavar="NAME=VALUE", help="How hard it is; may be given several times."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the card as one object.")] = False,
) -> None:
    """Generate a world: encyclopedia pages, news, abstracts, a knowledge graph, and questions with gold answers.

    It is written part by part, so that also a world of a million documents
    needs little memory. README.md in the folder says what it holds. A world
    that is too large to be searched in memory is indexed like any documents:
    cairn index build DIR/documents.jsonl --out INDEX.

    Difficulty (shares from 0 to 1, but for hops): noise (distractors), namesakes,
    paraphrase (other words than the standard query's), exclusivity (facts in
    one source only), staleness (outdated pages), contradiction (wrong pages),
    hops (the longest chain, 1 to 4), unanswerable, well_known.

    Example: cairn world build --seed 7 --out my-world --size 5000 --questions 500

    Example: cairn world build --seed 7 --out hard --difficulty noise=0.8 --difficulty paraphrase=1
    """
    from agent.cli.progress import Stages
    from train.world.writing import build_world

    chosen, hard = _split(split), _difficulty(difficulty or [])
    with Stages({"writing": "documents"}) as stages:

        def show(done: int, total: int) -> None:
            stages.show("writing", done, total)

        try:
            card = build_world(
                seed,
                split=chosen,
                size=size,
                questions=questions,
                out=folder,
                name=folder.name,
                difficulty=hard,
                show=show,
            )
        except ValueError as error:
            raise SetupError(f"{error}: choose another --size or fewer --questions") from error
    if json:
        print_json(card.model_dump())
    else:
        output().print(f"{folder}: {card.documents} documents, {card.questions} questions, generator {card.generator}")


@world_app.command("validate")
def check(
    world: Annotated[
        str | None, typer.Argument(metavar="DIR", help="A world's folder, or test, test-v1, test-v2, dev-v2.")
    ] = None,
    each: Annotated[
        int,
        typer.Option(
            min=0, help="Instead of a folder: make worlds until this many questions of each type are checked."
        ),
    ] = 0,
    seed: Annotated[int, typer.Option(help="Of the first world that --each makes.")] = 0,
    split: Annotated[str, typer.Option(help="Whose names --each uses: train, dev or test.")] = "test",
    json: Annotated[bool, typer.Option("--json", help="Print one object.")] = False,
) -> None:
    """Check that a world's questions are sound, mixed as promised, and not given away. Exit status 1 if not.

    Sound: every question is answered by its gold passages and by no fewer of
    them; one without an answer, by nothing that is written about its subjects;
    and the gold plan's searches find the gold passages. Two baselines show
    that it is not given away: a perfect reader of the first passage, and a
    guess without any search. A large world is checked part by part.

    Example: cairn world validate test-v2

    Example: cairn world validate --each 10000
    """
    from agent.cli.progress import Stages
    from train.world.validate import check_folder, survey

    if (world is None) == (each == 0):
        raise typer.BadParameter("name a world, or give --each N", param_hint="DIR")
    with Stages({"checking": "questions"}) as stages:

        def show(done: int, total: int) -> None:
            stages.show("checking", done, total)

        checks, types = check_folder(world, show) if world else survey(each, seed, _split(split), show)
    name, holds = world or f"{split}, {each} of each type", all(c.holds for c in checks)
    if json:
        print_json({"world": name, "holds": holds, "types": types, "checks": [c.model_dump() for c in checks]})
    else:
        output().print(_table(name, checks))
        output().print(", ".join(f"{kind} {count:,}" for kind, count in types.items()))
    if not holds:
        raise typer.Exit(1)


@world_app.command("export")
def export(
    world: Annotated[str, typer.Argument(metavar="DIR", help="A world's folder, or test, test-v1, test-v2, dev-v2.")],
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder to write, empty or new.")],
    pages: Annotated[
        bool, typer.Option("--pages", help="Also write a static page for each document, and an index of links.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one object.")] = False,
) -> None:
    """Write a world's documents for an agent that is not ours: to index, to serve or to crawl.

    corpus.jsonl has a document a line: id, source, title, text, url, date. No
    questions are written, and nothing of what the generator knows about a
    document. `cairn eval --world NAME --endpoint URL` asks the questions.

    Example: cairn world export test-v2 --out the-world --pages
    """
    from agent.cli.progress import Stages
    from train.world.export import export_world

    with Stages({"writing": "documents"}) as stages:

        def show(done: int, total: int) -> None:
            stages.show("writing", done, total)

        written = export_world(world, folder, pages=pages, show=show)
    if json:
        print_json(written._asdict())
    else:
        output().print(f"{folder}: {written.documents} documents, {written.pages} pages")


def _split(name: str) -> "Split":
    from agent.world.names import SPLITS, split_named

    split = split_named(name)
    if split is None:
        raise typer.BadParameter(f"{name!r} is no split; there are {', '.join(SPLITS)}", param_hint="--split")
    return split


def _difficulty(turned: list[str]) -> "Difficulty":
    from pydantic import ValidationError

    from agent.world.difficulty import Difficulty

    pairs = dict[str, str]()
    for each in turned:
        name, sign, value = each.partition("=")
        if not sign:
            raise typer.BadParameter(f"{each!r} is not NAME=VALUE", param_hint="--difficulty")
        pairs[name] = value
    try:
        return Difficulty.model_validate_strings(pairs)
    except ValidationError as error:
        known = ", ".join(Difficulty.model_fields)
        raise typer.BadParameter(
            f"{wrong_fields(error, most=1)}; the settings are {known}", param_hint="--difficulty"
        ) from error


def _table(name: str, checks: "list[WorldCheck]") -> Table:
    table = Table("check", "value", "bound", "", title=f"World {name}")
    for c in checks:
        table.add_row(c.name, f"{c.value:.3f}", c.bound, "[green]holds[/]" if c.holds else "[red]does not hold[/]")
    return table


def register(app: typer.Typer) -> None:
    """Add the `world` commands."""
    app.add_typer(world_app, name="world")
