"""`cairn kg`: build a knowledge graph file of triples, and look entities up in one."""

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.console import messages, note, output, print_json, printable
from agent.cli.options import JsonOption

if TYPE_CHECKING:
    from agent.sources.kg.schema import GraphCard
    from agent.sources.kg.store import Graph, NameMatch
    from agent.sources.kg.triples import GraphTriple

kg_app = typer.Typer(no_args_is_help=True, help="The knowledge graph: build one of triples, look entities up.")


def register(app: typer.Typer) -> None:
    """Add the `kg` commands."""
    app.add_typer(kg_app, name="kg")


@kg_app.command("build")
def build(
    triples: Annotated[
        list[Path], typer.Argument(metavar="TRIPLES...", help="Files of triples, also as .gz, .tar.gz or .tgz.")
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The graph file to write; an existing one is replaced.")
    ],
    aliases: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Names of entities: key<TAB>name<TAB>name, the first is shown.")
    ] = None,
    relations: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Names of relations, in the same form.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Build a graph file of triples: one on a line, as head<TAB>relation<TAB>tail.

    head|relation|tail and JSON lines {"h", "r", "t"} work, too. Wikidata5M
    is read as downloaded; its tar of aliases also names the relations.

    Example: cairn kg build triples.tsv --out my.kg

    Example: cairn kg build wikidata5m_transductive.tar.gz --aliases wikidata5m_alias.tar.gz --out wikidata5m.kg
    """
    started = perf_counter()
    card = _build(triples, out, aliases, relations)
    seconds = perf_counter() - started
    if card.bad_lines:
        note(f"{card.bad_lines:,} lines were skipped; the first is {card.first_bad}")
    if as_json:
        print_json({"out": str(out), **card.model_dump(), "bytes": out.stat().st_size, "seconds": round(seconds, 3)})
        return
    output().print(
        f"{out}: {card.triples:,} triples of {card.entities:,} entities and {card.relations:,} relations, "
        f"{out.stat().st_size / 1e6:,.1f} MB in {seconds:.1f} s"
    )
    output().print(f'next: cairn kg lookup {out} "a name"')


def _build(triples: list[Path], out: Path, aliases: Path | None, relations: Path | None) -> "GraphCard":
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from agent.sources.kg.build import BuildProgress as Far
    from agent.sources.kg.build import build_graph

    text = "{task.description} · {task.fields[lines]:,} lines · {task.fields[rate]:,.0f}/s"
    columns = (TextColumn(text), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    started = perf_counter()
    with Progress(*columns, console=messages(), transient=True, disable=not messages().is_terminal) as bar:
        task = bar.add_task("reading triples", total=None, lines=0, rate=0.0)

        def show(far: Far) -> None:
            rate = far.lines / max(perf_counter() - started, 1e-9)
            bar.update(task, description=far.stage, completed=far.done, total=far.total, lines=far.lines, rate=rate)

        return build_graph(triples, out, aliases=aliases, relations=relations, progress=show)


@kg_app.command("lookup")
def lookup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A graph file.")],
    entity: Annotated[str, typer.Argument(help="A name, its start, words of it, or a misspelling.")],
    relation: Annotated[str | None, typer.Option(help="Show only triples whose relation has these words.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Triples to show in each direction.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Find an entity and show its triples, out and in.

    Example: cairn kg lookup my.kg "tom hanks" --relation "starred actors"
    """
    from agent.sources.kg.source import SECONDS
    from agent.sources.kg.store import Graph

    if not entity.strip():
        raise typer.BadParameter("the entity is empty", param_hint="ENTITY")
    graph = Graph.open(file)
    started = perf_counter()
    graph.begin(SECONDS)
    try:
        matches = graph.lookup(entity, limit=8)
        triples = _triples(graph, matches[0], relation, limit) if matches else []
    finally:
        graph.close()
    seconds = perf_counter() - started
    if as_json:
        print_json(
            {
                "entity": entity,
                "seconds": round(seconds, 6),
                "matches": [_plain(match) for match in matches],
                "triples": [
                    {"head": t.head, "relation": t.relation, "tail": t.tail, "found_by": t.found_by} for t in triples
                ],
            }
        )
    else:
        _show(matches, triples)


def _triples(graph: "Graph", match: "NameMatch", relation: str | None, limit: int) -> "list[GraphTriple]":
    """One hop from the best match."""
    from agent.sources.kg.source import triples_of

    numbers = None
    if relation is not None:
        numbers = [r.id for r in graph.relations.values() if r.is_called(relation)]
        if not numbers:
            note(f"this graph has no relation {relation!r}")
    return triples_of(graph, match.entity, relations=numbers, limit=limit)


def _plain(match: "NameMatch") -> dict[str, object]:
    return {
        "key": match.entity.key,
        "label": match.entity.label,
        "degree": match.entity.degree,
        "how": match.how,
        "score": round(match.score, 4),
    }


def _show(matches: "list[NameMatch]", triples: "list[GraphTriple]") -> None:
    from rich.text import Text

    from agent.sources.kg.triples import pack, render

    if not matches:
        output().print("No entity has this name, or one like it.")
        return
    for at, match in enumerate(matches):
        key = () if match.entity.key == match.entity.label else (match.entity.key,)
        facts = " · ".join((*key, match.how, f"{match.entity.degree:,} triples"))
        output().print(
            Text.assemble((printable(match.entity.label), "" if at else "bold"), "  ", (printable(facts), "dim"))
        )
        if not at:
            for group in pack(triples):
                output().print(Text("  " + printable(render(group))))
    if len(matches) > 1:
        output().print("Showing the triples of the first one.")
