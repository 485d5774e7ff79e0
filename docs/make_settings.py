"""Writes docs/settings.md: every setting with its default and what it means, as the code has it."""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic_core import PydanticUndefined

from agent.loop.budgets import Budgets
from agent.settings import BudgetSettings, CairnSettings, VllmSettings
from agent.settings.live import LimitSettings, LiveSettings
from agent.settings.local_file import HARMLESS
from agent.settings.server import ServerSettings
from agent.sources.limits import Limits

OUT: Final = Path(__file__).parent / "settings.md"
HEAD: Final = """# Settings

- A flag overrides the environment, the environment overrides `cairn.toml` in the current folder (or the file that
  `--config` names), that overrides your own settings file, which the page's [Settings](page.md#settings) write, and
  that overrides the default.
- In the environment a setting is `CAIRN_` and its name in capitals; a setting of a table has two underscores between:
  `CAIRN_BUDGETS__ROUNDS=2`. Write lists with commas there: `CAIRN_SOURCES=web,news`.
- Unknown names are refused; the error names the nearest setting. Put secrets into the environment.
- A `cairn.toml` that Cairn finds in the current folder may set only what is marked ✓, and for protocols, worlds and
  sources only names of built-in ones (not openalex, pubmed, semanticscholar and github). Anything else needs your
  consent: `cairn trust ./cairn.toml`, or name it with `--config ./cairn.toml` ([Quickstart](quickstart.md)).

`python docs/make_settings.py` writes this page from the code; a test checks that they agree.
"""
PARTS: Final[Mapping[str, tuple[str, type[BaseModel], type]]] = {
    "Agent": ("", CairnSettings, CairnSettings),
    "Budgets of one rollout": ("budgets", BudgetSettings, Budgets),
    "A model in this process through vLLM": ("vllm", VllmSettings, VllmSettings),
    "Server": ("", ServerSettings, ServerSettings),
    "Live sources, documents and graph": ("", LiveSettings, LiveSettings),
    "Limits of one back end or plug-in": ("limits.NAME", LimitSettings, Limits),
}
"""Its table, the settings, and the class with their defaults."""
ADDRESSES: Final = "Its address, where yours is another."
FREE: Final = frozenset({"budgets"})
"""Tables of which every setting is harmless."""
ELSEWHERE: Final = {"budgets": "A table, see below.", "vllm": "A table, see below."}
HIDDEN: Final = frozenset({"data"})
"""What only tests read."""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(f"\n## {title}\n\n{''.join(_part(*part))}" for title, part in PARTS.items())


def _part(table: str, model: type[BaseModel], source: type) -> Iterator[str]:
    if table:
        yield f"In the table `[{table}]`. {_cell(inspect.getdoc(source) or '')}\n\n"
    yield "| setting | default | found file | what it means |\n|---|---|---|---|\n"
    said = _docstrings(source) if source is not model else {}
    for name, own in _docstrings(model).items():
        field = model.model_fields[name]
        default = getattr(source, name, None) if said else field.get_default(call_default_factory=True)
        means = own or said.get(name) or ELSEWHERE.get(name) or (ADDRESSES if name.endswith("_url") else "")
        choices = f" One of {_listed(field.annotation)}." if get_origin(field.annotation) is Literal else ""
        if name not in HIDDEN:
            mark = "✓" if name in FREE or (f"{table}.{name}" if table else name) in HARMLESS else ""
            yield f"| `{name}` | {_default(default)} | {mark} | {_cell(means + choices)} |\n"


def _listed(annotation: Any) -> str:
    return ", ".join(f"`{choice}`" for choice in get_args(annotation))


def _docstrings(model: type) -> dict[str, str]:
    """The fields that the class itself declares, in its order, each with the string behind it."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(tree, ast.ClassDef)
    said: dict[str, str] = {}
    last = ""
    for node in tree.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)) if name != "model_config":
                said[last := name] = ""
            case ast.Expr(value=ast.Constant(value=str(text))) if last:
                said[last] = text
            case _:
                last = ""
    return said


def _default(value: Any) -> str:
    match value:
        case None | "" | () | SecretStr() | BaseModel():
            return "–"
        case _ if value is PydanticUndefined or (isinstance(value, Mapping) and not value):
            return "–"
        case bool():
            return f"`{str(value).lower()}`"
        case tuple():
            return ", ".join(f"`{part}`" for part in value)
        case _:
            return f"`{value}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    OUT.write_text(page(), encoding="utf-8")
