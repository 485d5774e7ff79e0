"""The settings of the server: its address, who may ask, and how much. `agent.settings` reads them with its own."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, SecretStr
from pydantic_settings import BaseSettings, NoDecode

from agent.settings_live import split


class ServerSettings(BaseSettings):
    """What `cairn serve` needs beside an agent."""

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    server_key: SecretStr = SecretStr("")
    """What clients of the server must send as their bearer token; empty: nothing."""
    insecure: bool = False
    """Serve other machines although there is no `server_key`."""
    profile: Literal["default", "openwebui", "markdown-links", "perplexity"] = "default"
    """For which kind of client answers are made where a request does not say it."""
    answer_style: Literal["short", "sentence", "with_evidence"] = "short"
    """The answer alone, with the claim behind it, or with all claims, where a request does not say it."""
    max_question_chars: int = Field(default=20_000, ge=1, le=20_000)
    max_body_bytes: int = Field(default=4 * 1024 * 1024, ge=1)

    answer_url: str = ""
    """Of an OpenAI-compatible server whose models may answer from evidence (`answer_with` of /v1/evidence)."""
    answer_key: SecretStr = SecretStr("")
    """Of that server."""
    answer_models: Annotated[tuple[str, ...], NoDecode, BeforeValidator(split)] = ()
    """The models there that a request may name."""
