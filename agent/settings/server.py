"""The settings of the server: its address, who may ask, and how much. `agent.settings` reads them with its own."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic_settings import BaseSettings, NoDecode

from agent.settings.live import split


def _as_sent(key: SecretStr) -> SecretStr:
    """The key as a header can carry it: without the line break that a file or a pipe put behind it.

    Raises:
        ValueError: no client could ever send it, so that no client, or every one, would be let in.
    """
    given = key.get_secret_value()
    sent = given.strip()
    if (given and not sent) or not (sent.isascii() and sent.isprintable()):
        raise ValueError("clients must be able to send it: letters, digits and signs of ASCII alone, or leave it out")
    return SecretStr(sent)


class ServerSettings(BaseSettings):
    """What `cairn serve` needs beside an agent."""

    host: str = "127.0.0.1"
    """Where it listens; another address than this machine's own needs a key."""
    port: int = Field(default=8000, ge=0, le=65535)
    """0 picks a free one."""
    server_key: Annotated[SecretStr, AfterValidator(_as_sent)] = SecretStr("")
    """What clients of the server must send as their bearer token; empty: nothing."""
    insecure: bool = False
    """Serve other machines even if no `server_key` is set."""
    profile: Literal["default", "openwebui", "markdown-links", "perplexity"] = "default"
    """For which kind of client answers are made where a request does not say it."""
    answer_style: Literal["short", "sentence", "with_evidence"] = "short"
    """The answer alone, with the claim behind it, or with all claims, where a request does not say it."""
    max_question_chars: int = Field(default=20_000, ge=1, le=20_000)
    """A longer question is refused."""
    max_body_bytes: int = Field(default=4 * 1024 * 1024, ge=1)
    """A larger request is refused."""

    answer_url: str = ""
    """Of an OpenAI-compatible server whose models may answer from evidence (`answer_with` of /v1/evidence)."""
    answer_key: SecretStr = SecretStr("")
    """Of that server."""
    answer_models: Annotated[tuple[str, ...], NoDecode, BeforeValidator(split)] = ()
    """The models there that a request may name."""

    max_runs: int | None = Field(default=None, ge=1)
    """Runs at the same time; left out, as many as suit what writes (128 for the embedded policy, 16 for a model of
    transformers, 256 for vLLM and for endpoints)."""
    max_queue: int = Field(default=256, ge=0)
    """Runs that may wait for a place; further ones get 429, with the time to come back."""
    queue_seconds: float = Field(default=15.0, gt=0)
    """The longest that a run may wait for a place."""
    max_body_seconds: float = Field(default=20.0, gt=0)
    """A request whose head or body is not there by then is given up."""
    grace_seconds: float = Field(default=10.0, ge=0)
    """How long active runs may continue when the server is stopped …"""
    grace_answer_seconds: float = Field(default=5.0, ge=0)
    """… and how long they then have to answer with what they found. What is left after that is ended."""
    log_format: Literal["auto", "console", "json"] = "auto"
    """Of the log on standard error; auto: for people in a terminal, JSON elsewhere."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least that is logged."""
    otel: bool = False
    """Send traces over OTLP (the extra `otel`); OTEL_EXPORTER_OTLP_ENDPOINT says where to."""
    otel_text: bool = False
    """Put questions, queries and answers into those traces."""

    store: SecretStr = SecretStr("")
    """Where runs, keys and their usage are kept: a file, postgresql://user:password@host/database for several servers,
    or memory, which ends with the server. Empty: a file in the user's data folder."""
    library_folder: Path | None = None
    """Where uploaded files and their indices are kept; several servers with one store share it. Left out: beside
    the file of the store, in the user's data folder for PostgreSQL, or, for a store in memory, a folder that ends with
    the server."""
    file_bytes: int = Field(default=512 * 1024 * 1024, ge=1)
    """A larger file is refused."""
    library_bytes: int = Field(default=10 * 1024 * 1024 * 1024, ge=0)
    """What the files of one key may take, in all; 0: no file can be uploaded."""
    library_files: int = Field(default=20_000, ge=0)
    """How many files one key may have."""
    store_days: float | None = Field(default=None, gt=0)
    """Days that a run is kept; left out: for ever."""
    store_runs: int | None = Field(default=10_000, ge=1)
    """Runs that are kept; the oldest go first."""
    lease_seconds: float = Field(default=10.0, ge=1)
    """After so long without word of a server, another one ends its runs as interrupted."""
