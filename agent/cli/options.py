"""Options that several commands share: each one is a setting of the same name, and None leaves it to the settings."""

from pathlib import Path
from typing import Annotated

import typer

PolicyOption = Annotated[
    str | None,
    typer.Option("--policy", metavar="NAME", help="What writes: embedded (the shipped checkpoint) or openai."),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option("--base-url", metavar="URL", help="OpenAI-compatible endpoint, as http://127.0.0.1:11434/v1."),
]
ModelOption = Annotated[str | None, typer.Option("--model", metavar="NAME", help="Name of the endpoint's model.")]
CheckpointOption = Annotated[
    Path | None, typer.Option("--checkpoint", metavar="DIR", help="An exported checkpoint for the embedded policy.")
]
ProtocolOption = Annotated[
    str | None, typer.Option("--protocol", metavar="NAME", help="cairn, multisearch, or a protocol file (.toml).")
]
SourcesOption = Annotated[
    str | None, typer.Option("--sources", metavar="A,B", help="Ask only these sources, as web,news.")
]
CorpusOption = Annotated[
    Path | None, typer.Option("--corpus", metavar="PATH", help="Search your documents, or an index of them.")
]
WorldOption = Annotated[
    str | None, typer.Option("--world", metavar="NAME", help="The little world to search: test, dev, or a folder.")
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings file, instead of ./cairn.toml.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
