"""The settings on the page: keys, sources and the model of a server that only this machine reaches, each with a check.

They are written into the user's own settings file and hold after a restart. What a flag, the environment or a
`cairn.toml` says counts more, and is only shown. No key ever leaves the server.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Literal, get_args

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from agent.doctor import checks_of
from agent.doctor.run import State, examine
from agent.errors import SetupError
from agent.sanitize.strict import Strict
from agent.settings import CairnSettings, settings_of
from agent.settings.live import KEYED
from agent.settings.user_file import read_user_file, user_file, write_user_file
from server.auth.keys import caller
from server.http.errors import ApiError, bad_request, sentence

Kind = Literal["text", "secret", "choice", "switch"]
_CHECK_SECONDS: Final = 15.0


@dataclass(frozen=True)
class _Known:
    """A setting that the page offers."""

    name: str
    label: str
    group: str
    kind: Kind = "text"
    checks: tuple[str, ...] = ()
    """Names of the doctor's checks that look at it."""
    hint: str = ""


_LIVE: Final = "Live sources: web, news, arXiv, Wikipedia, Wikidata"
_LABELS: Final = {"gnews": "GNews"}
_KNOWN: Final = (
    _Known("base_url", "Address", "Model", checks=("policy",), hint="http://127.0.0.1:11434/v1"),
    _Known("model", "Name", "Model", checks=("model",), hint="qwen3:8b"),
    _Known("api_key", "Key", "Model", "secret"),
    _Known("corpus", "Folder or index", "Documents on this machine", checks=("corpus",), hint="/home/me/papers"),
    _Known("kg", "Graph file", "Documents on this machine", checks=("kg",)),
    _Known("live", "Search them", _LIVE, "switch", ("live",)),
    *(_Known(f"{name}_key", _LABELS.get(name, name.capitalize()), _LIVE, "secret", (name,)) for name in KEYED),
    _Known("searxng_url", "SearXNG", _LIVE, checks=("searxng",), hint="https://searx.example.org"),
    _Known("answer_style", "Answers show", "Answers", "choice"),
)
_NAMES: Final = {known.name: known for known in _KNOWN}


@dataclass
class SettingsEditor:
    """What the page may change, and how the server begins again."""

    settings: CairnSettings
    """Those that it runs with."""
    restart: Callable[[], None] | None = None
    """Ends the server and starts it again; None: its process can't."""
    own: Mapping[str, Any] = field(default_factory=read_user_file)
    """What the user's own file said when the server started."""
    saved: bool = field(default=False, init=False)
    """Something was saved that does not hold yet."""


class _Said(BaseModel):
    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class SettingField(_Said):
    name: str
    label: str
    group: str
    kind: Kind
    value: str | bool | None = Field(description="Null where it is not set, and for a secret.")
    is_set: bool
    fixed: bool = Field(description="A flag, the environment or a cairn.toml says it, so it cannot be changed here.")
    choices: list[str]
    hint: str


class SettingsPage(_Said):
    fields: list[SettingField]
    file: str = Field(description="Where changes are written.")
    pending: bool = Field(description="Something was saved that holds after a restart.")
    can_restart: bool


class SettingsChange(Strict):
    """New values by name; null takes one back to its default."""

    values: dict[str, str | bool | None] = Field(max_length=len(_KNOWN))


class CheckedSetting(_Said):
    name: str = Field(description="Of the check.")
    fields: list[str] = Field(description="The settings that it looks at.")
    state: State
    says: str
    fix: str


class CheckedSettings(_Said):
    checks: list[CheckedSetting]


def add_settings(app: FastAPI, editor: SettingsEditor) -> None:
    """Add the addresses of the page's settings."""

    @app.get("/api/settings", include_in_schema=False)
    async def get_settings() -> SettingsPage:
        _refuse_clients()
        return _page(editor)

    @app.post("/api/settings", include_in_schema=False)
    async def save_settings(body: SettingsChange) -> SettingsPage:
        _refuse_clients()
        own = _changed(editor, body.values)
        try:
            _with(editor.settings, own, body.values)
            write_user_file(own)
        except SetupError as error:
            raise bad_request(sentence(error), param="values", code="invalid_setting") from error
        editor.saved = True
        return _page(editor)

    @app.post("/api/settings/check", include_in_schema=False)
    async def check_settings(body: SettingsChange) -> CheckedSettings:
        """What the doctor says of the settings with these values, which are not saved."""
        _refuse_clients()
        try:
            settings = _with(editor.settings, _changed(editor, body.values), body.values)
            found = await examine(checks_of(settings), seconds=_CHECK_SECONDS)
        except SetupError as error:
            raise bad_request(sentence(error), param="values", code="invalid_setting") from error
        return CheckedSettings(
            checks=[
                CheckedSetting(name=one.name, fields=_fields_of(one.name), state=one.state, says=one.says, fix=one.fix)
                for one in found
            ]
        )

    @app.post("/api/settings/restart", include_in_schema=False, status_code=HTTPStatus.ACCEPTED)
    async def restart() -> None:
        _refuse_clients()
        if editor.restart is None:
            message = "This server cannot start itself again; stop it and start it."
            raise ApiError(HTTPStatus.CONFLICT, message, code="no_restart")
        editor.restart()


def _refuse_clients() -> None:
    """With a key of a client, no one reads or changes settings.

    Raises:
        ApiError: the caller has one.
    """
    if caller().key:
        message = "Only the operator may see the settings; use the server's own key."
        raise ApiError(HTTPStatus.FORBIDDEN, message, code="not_the_operator")


def _page(editor: SettingsEditor) -> SettingsPage:
    own = read_user_file()
    return SettingsPage(
        fields=[_field(known, own, editor) for known in _KNOWN],
        file=str(user_file()),
        pending=editor.saved,
        can_restart=editor.restart is not None,
    )


def _field(known: _Known, own: Mapping[str, Any], editor: SettingsEditor) -> SettingField:
    running = _plain(getattr(editor.settings, known.name))
    fixed = _fixed(known, editor)
    value = running if fixed else own.get(known.name)
    secret = known.kind == "secret"
    return SettingField(
        name=known.name,
        label=known.label,
        group=known.group,
        kind=known.kind,
        value=None if secret or value in (None, "") else value,
        is_set=value not in (None, "", False),
        fixed=fixed,
        choices=_choices(known.name) if known.kind == "choice" else [],
        hint=known.hint,
    )


def _fixed(known: _Known, editor: SettingsEditor) -> bool:
    """Whether something that counts more than the user's own file says it."""
    running = getattr(editor.settings, known.name)
    default = CairnSettings.model_fields[known.name].get_default(call_default_factory=True)
    own = editor.own.get(known.name)
    if isinstance(running, Path) and isinstance(own, str):
        own = Path(own)  # `./papers/` is `papers`
    return _plain(running) not in (_plain(default), _plain(own), None, "")


def _plain(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return value if isinstance(value, str | bool) or value is None else str(value)


def _choices(name: str) -> list[str]:
    return [str(choice) for choice in get_args(CairnSettings.model_fields[name].annotation)]


def _changed(editor: SettingsEditor, values: Mapping[str, str | bool | None]) -> dict[str, Any]:
    """What the user's own file sets after a change.

    Raises:
        ApiError: it names what the page does not offer, or what is decided elsewhere.
    """
    own = read_user_file()
    for name, value in values.items():
        known = _NAMES.get(name)
        if known is None:
            raise bad_request(f"There is no setting {name!r} on this page.", param=f"values.{name}")
        if _fixed(known, editor):
            why = "a flag, the environment or a cairn.toml says it; change it there"
            raise bad_request(f"{known.label!r} cannot be changed here: {why}.", param=f"values.{name}")
        if isinstance(value, str):
            value = value.strip()
        if value is None or value == "":
            own.pop(name, None)
        else:
            own[name] = value
    return own


def _with(running: CairnSettings, own: Mapping[str, Any], changed: Mapping[str, object]) -> CairnSettings:
    """The settings as they will be after a restart.

    Raises:
        SetupError: a value that cannot be.
    """
    kept = {name: getattr(running, name) for name in running.model_fields_set if name not in changed}
    decided = {"policy", "checkpoint", "protocols", "budgets"} & set(kept)  # by a model that is not named any more
    said = {name: value for name, value in kept.items() if name not in decided}
    return settings_of(**(said | {name: value for name, value in own.items() if name not in said or name in changed}))


def _fields_of(check: str) -> list[str]:
    return [known.name for known in _KNOWN if check in known.checks]
