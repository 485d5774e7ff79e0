"""`cairn protocol`: which protocols there are, what one holds, and what a transcript is under it."""

import json
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer
from rich.table import Table
from rich.text import Text

from agent.cli.console import output, print_json, printable
from agent.cli.options import JsonOption, PromptFileOption
from agent.errors import wrong_fields

if TYPE_CHECKING:
    from agent.policies.tokens import Codec
    from agent.protocols import TextProtocol
    from agent.trace import Trace
    from agent.trace.transcript import Said, Transcript, TranscriptPart

_TRANSCRIPTS_BYTES: Final = 256 << 20
_TOKENIZER_BYTES: Final = 256 << 20
protocol_app = typer.Typer(
    no_args_is_help=True, help="The text formats that policies were trained on, and transcripts under them."
)
_SHOWN: Final = 160
"""Characters of a block in the table."""
_STYLES: Final = {"policy": "cyan", "environment": "green", "loop": "magenta", "prompt": "dim"}

ProtocolArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="A name of cairn protocol list, or a .toml file.")
]


def register(app: typer.Typer) -> None:
    """Add `protocol` to the root."""
    app.add_typer(protocol_app, name="protocol")


@protocol_app.command("list")
def list_protocols(*, as_json: JsonOption = False) -> None:
    """List the built-in protocols and the profiles of public checkpoints.

    Example: cairn protocol list
    """
    from agent.protocols import profile_names, protocol_named, protocol_names

    protocols = [protocol_named(name) for name in (*protocol_names(), *profile_names())]
    if as_json:
        rows = [{"name": p.name, "description": p.description, "needs": list(p.foreign)} for p in protocols]
        print_json({"protocols": rows})
        return
    table = Table("protocol", "needs", "what it is")
    for protocol in protocols:
        table.add_row(protocol.name, ", ".join(protocol.foreign), protocol.description)
    output().print(table)


@protocol_app.command("show")
def show_protocol(name: ProtocolArgument, *, as_json: JsonOption = False) -> None:
    """Show everything that a protocol holds, texts with their exact white space.

    Example: cairn protocol show search-r1
    """
    fields = _protocol(name).model_dump(mode="json")
    if as_json:
        print_json(fields)
        return
    table = Table("key", "value")
    for key, value in fields.items():
        table.add_row(key, Text(json.dumps(value, ensure_ascii=False)))
    output().print(table)


@protocol_app.command("check")
def check(
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="Text, a trace (JSONL), or messages (JSON).")
    ],
    *,
    protocol: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Check it as this protocol.", show_default="the trace's own, else cairn"),
    ] = None,
    prompt_file: PromptFileOption = None,
    question: Annotated[str, typer.Option(help="The question; it helps to find where the prompt ends.")] = "",
    tokenizer: Annotated[
        Path | None, typer.Option(metavar="FILE", exists=True, help="A tokenizer.json, or its folder.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Explain what a transcript is under a protocol, block by block, with token counts and loss mask.

    A trace or messages say who wrote what; in plain text, the protocol's
    wrapper marks what the environment wrote. The exit status is 0 if every
    transcript is well-formed or could be repaired, else 1.

    Example: cairn protocol check rollout.txt --protocol search-r1
    """
    inputs = _transcripts(file)
    checked = [_explained(one, protocol=protocol, prompt_file=prompt_file, question=question) for one in inputs]
    codec = _codec(tokenizer)
    reports = [
        _report(transcript, used, codec, one.trace) for one, (transcript, used) in zip(inputs, checked, strict=True)
    ]
    if as_json:
        print_json({"transcripts": reports})
    else:
        for (transcript, used), report in zip(checked, reports, strict=True):
            _print(transcript, used, report)
    if any(transcript.verdict == "rejected" for transcript, _ in checked):
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Input:
    """One transcript of a file: plain text, messages, or a trace."""

    text: str = ""
    messages: tuple[Any, ...] = ()
    trace: "Trace | None" = None


def _transcripts(file: Path) -> list[_Input]:
    """What a file holds. JSON that is neither a trace nor messages is text, as is everything else."""
    from agent.files.foreign import read_text

    try:
        text = read_text(file, most=_TRANSCRIPTS_BYTES, pipe=True)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", "") or error
        raise typer.BadParameter(f"{file} cannot be read: {why}", param_hint="FILE") from error
    if not text.strip():
        raise typer.BadParameter(f"{file} is empty", param_hint="FILE")
    values = _json_values(text)
    found = [_input(value) for value in values]
    return [one for one in found if one is not None] if values and all(found) else [_Input(text=text)]


def _json_values(text: str) -> list[Any]:
    """The JSON value that a text is, or the values of its lines; none if it is neither."""
    for parts in ([text], [line for line in text.split("\n") if line.strip()]):
        try:
            return [json.loads(part) for part in parts]
        except (json.JSONDecodeError, RecursionError):
            continue
    return []


def _input(value: Any) -> _Input | None:
    from pydantic import ValidationError

    from agent.trace import Trace

    if isinstance(value, dict) and "segments" in value:
        try:
            return _Input(trace=Trace.model_validate(value))
        except ValidationError as error:
            why = wrong_fields(error, most=1)
            raise typer.BadParameter(f"not a trace of this version: {why}", param_hint="FILE") from error
    held: Any = cast("dict[str, Any]", value).get("messages") if isinstance(value, dict) else value
    messages = cast("list[Any]", held) if isinstance(held, list) else []
    if messages and all(isinstance(message, dict) and "role" in message for message in messages):
        return _Input(messages=tuple(messages))
    return None


def _explained(
    one: _Input, *, protocol: str | None, prompt_file: Path | None, question: str
) -> "tuple[Transcript, TextProtocol]":
    from agent.protocols.registry import with_texts
    from agent.trace.transcript import explain, said_by, said_in

    used = _protocol(protocol or (one.trace.protocol if one.trace else "cairn"))
    used = with_texts(used, prompt_file) if prompt_file else used
    said: str | list[Said] = one.text
    if one.trace is not None:
        said = said_in(one.trace)
    elif one.messages:
        said = said_by(one.messages, protocol=used)
    return explain(said, protocol=used, question=question), used


def _protocol(name: str) -> "TextProtocol":
    from agent.protocols import load_protocol, protocol_named

    return load_protocol(Path(name)) if name.endswith(".toml") else protocol_named(name)


def _codec(path: Path | None) -> "Codec":
    from agent.build.shipped import newest_checkpoint
    from agent.errors import SetupError
    from agent.files.foreign import read_text
    from agent.policies.tokens import Codec

    folder = newest_checkpoint() if path is None else path
    file = folder / "tokenizer.json" if folder.is_dir() else folder
    try:
        return Codec(read_text(file, most=_TOKENIZER_BYTES), ends=[0])  # it only counts: no turn ends here
    except (OSError, ValueError) as error:
        raise SetupError(f"the tokenizer {file} cannot be used: {error}") from error


# What is said of a transcript


def _report(
    transcript: "Transcript", protocol: "TextProtocol", codec: "Codec", trace: "Trace | None"
) -> dict[str, Any]:
    counts = _kept(transcript, codec, trace) if trace is not None else None
    kept = counts is not None
    if counts is None:
        counts = [len(codec.encode(part.text, tags=_marks(part, protocol))) for part in transcript.parts]
    trained = sum(count for part, count in zip(transcript.parts, counts, strict=True) if part.trained)
    return {
        "protocol": protocol.name,
        "verdict": transcript.verdict,
        "why": transcript.why,
        "answer": transcript.answer,
        "unknown_tags": list(transcript.unknown_tags),
        "tokens": sum(counts),
        "trained_tokens": trained,
        "tokens_kept": kept,
        "blocks": [_row(part, count) for part, count in zip(transcript.parts, counts, strict=True)],
    }


def _kept(transcript: "Transcript", codec: "Codec", trace: "Trace") -> list[int] | None:
    """Tokens of each part as the trace keeps them; None where it keeps none, or another tokenizer's.

    A token counts for the part in which its text ends, one without a text for the part before it.
    """
    segments = [segment for segment in trace.segments if segment.branch == "main"]
    if any(segment.ids is None or codec.decode(segment.ids) != segment.text for segment in segments):
        return None
    counts = [0] * len(transcript.parts)
    ends = list(accumulate(len(part.text) for part in transcript.parts))
    place = read = 0
    for segment in segments:
        stream = codec.stream()
        for number in segment.ids or ():
            read += len(stream.feed(number))
            while place < len(ends) - 1 and read > ends[place]:
                place += 1
            counts[place] += 1
    return counts


def _row(part: "TranscriptPart", tokens: int) -> dict[str, Any]:
    plan = None if part.plan is None else [node.model_dump(mode="json") for node in part.plan.nodes]
    return {
        "by": part.by,
        "role": part.role,
        "text": part.text,
        "tokens": tokens,
        "trained": part.trained,
        "plan": plan,
        "why": part.why,
        "repaired": part.repaired,
    }


def _marks(part: "TranscriptPart", protocol: "TextProtocol") -> tuple[str, ...]:
    """What may be control tokens in a part, as the loop encodes it."""
    if part.by == "environment" and protocol.deliver == "continue":
        return protocol.environment_marks
    return protocol.all_marks


def _print(transcript: "Transcript", protocol: "TextProtocol", report: dict[str, Any]) -> None:
    table = Table("", "by", "block", "tokens", "loss", "text", title=f"under {protocol.name}")
    for number, (part, row) in enumerate(zip(transcript.parts, report["blocks"], strict=True), start=1):
        loss = "trained" if part.trained else "–"
        by = Text(part.by, style=_STYLES[part.by])
        table.add_row(str(number), by, part.role, str(row["tokens"]), loss, _cell(part))
    output().print(table)
    kept = ", as the trace keeps them" if report["tokens_kept"] else ""
    output().print(f"{report['tokens']} tokens{kept}, of which {report['trained_tokens']} are trained")
    if transcript.unknown_tags:
        output().print(Text(f"tags that the protocol does not know: {', '.join(transcript.unknown_tags)}"))
    if transcript.answer is not None:
        output().print(Text(f"answer: {printable(transcript.answer)}"))
    why = transcript.why or ("a plan cannot run" if transcript.rejected_plans else "")
    output().print(Text(f"{transcript.verdict}{': ' if why else ''}{why}", style="bold"))


def _cell(part: "TranscriptPart") -> Text:
    """A block's text on one line, white space made visible; below it, its plan or what is wrong with it."""
    shown = part.text if len(part.text) <= _SHOWN else f"{part.text[: _SHOWN // 2]} … {part.text[-_SHOWN // 2 :]}"
    cell = Text(printable(shown).replace("\n", "⏎").replace("\t", "⇥"))
    for node in part.plan.nodes if part.plan else ():
        after = f" after {', '.join(node.parents)}" if node.parents else ""
        cell.append(f"\n{node.id}: {printable(node.query)} → {node.source}{after}", style="dim")
    if part.why:
        cell.append(f"\n{printable(part.why)}", style="yellow" if part.repaired else "red")
    return cell
