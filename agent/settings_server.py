"""The settings of the server: its address, who may ask, and how much. `agent.settings` reads them with its own."""

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings


class ServerSettings(BaseSettings):
    """What `cairn serve` needs beside an agent."""

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    server_key: SecretStr = SecretStr("")
    """What clients of the server must send as their bearer token; empty: nothing."""
    insecure: bool = False
    """Serve other machines although there is no `server_key`."""
    max_question_chars: int = Field(default=20_000, ge=1, le=20_000)
    max_body_bytes: int = Field(default=4 * 1024 * 1024, ge=1)
