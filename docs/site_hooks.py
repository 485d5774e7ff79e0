"""What building the site needs beside its theme: menus by folder, pages for linked source files, colours of code."""

import posixpath
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from properdocs.config.defaults import MkDocsConfig
from properdocs.structure.files import File, Files, InclusionLevel
from properdocs.structure.pages import Page
from pygments.formatters import HtmlFormatter

DOCS: Final = Path(__file__).parent
ROOT: Final = DOCS.parent
LINK: Final = re.compile(r"(\]\()(?![a-z]+:|#|/)([^)#\s]+)")
"""A relative link in Markdown: the text before its target, and the target without its anchor."""
SOURCE: Final = "source/"
"""Where the pages of linked files lie in the site."""
LANGUAGES: Final = {".py": "python", ".toml": "toml", ".yaml": "yaml", ".json": "json", ".md": "markdown", ".sh": "sh"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of a folder where the menu says `folder/*.md`."""
    for section in config.nav or []:
        for title, entries in section.items():
            if isinstance(entries, list):
                section[title] = [page for entry in entries for page in _expanded(entry)]
    return config


def _expanded(entry: object) -> list[object]:
    if not isinstance(entry, str) or "*" not in entry:
        return [entry]
    return [path.relative_to(DOCS).as_posix() for path in sorted(DOCS.glob(entry))]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each file outside of docs/ that a page links to, and the colours of code."""
    files.append(File.generated(config, "site/code.css", content=_colours()))
    for target in linked():
        page = f"{SOURCE}{target}.md"
        files.append(File.generated(config, page, content=_shown(target), inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links that leave docs/, or lead back to it, at the pages of the site."""
    here = page.file.src_uri
    written = here.removeprefix(SOURCE).removesuffix(".md") if here.startswith(SOURCE) else f"docs/{here}"

    def fixed(link: re.Match[str]) -> str:
        target = _target(written, link[2])
        if not (ROOT / target).exists():
            return link[0]  # the strict build says so
        there = target.removeprefix("docs/") if target.startswith("docs/") else f"{SOURCE}{target}.md"
        return link[1] + posixpath.relpath(there, posixpath.dirname(here) or ".")

    return LINK.sub(fixed, markdown)


def linked() -> Sequence[str]:
    """What pages link to that lies outside of docs/, as paths from the repository's root; Markdown among it, too."""
    found: set[str] = set()
    waiting = [path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md")]
    while waiting:
        page = waiting.pop()
        for link in LINK.finditer((ROOT / page).read_text(encoding="utf-8")):
            target = _target(page, link[2])
            if not target.startswith(("docs/", "..")) and target not in found and (ROOT / target).exists():
                found.add(target)
                waiting += [target] if target.endswith(".md") else []
    return sorted(found)


def _target(page: str, link: str) -> str:
    """Where a link of a page leads, from the repository's root."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


def _shown(target: str) -> str:
    """The file as a page; of a folder, every file that is text."""
    path = ROOT / target
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    inside = sorted(one for one in path.rglob("*") if one.suffix in LANGUAGES) if path.is_dir() else [path]
    return f"# {target}\n\n" + "\n\n".join(map(_block, inside))


def _block(path: Path) -> str:
    name, language = path.relative_to(ROOT).as_posix(), LANGUAGES.get(path.suffix, "text")
    return f"`{name}`\n\n~~~~{language}\n{path.read_text(encoding='utf-8').rstrip()}\n~~~~"


def _colours() -> str:
    """Of code, for both schemes of the theme."""
    light = HtmlFormatter(style="default", cssclass="code").get_style_defs()
    dark = HtmlFormatter(style="github-dark", cssclass="code").get_style_defs("[data-bs-theme=dark] .code")
    return f"{light}\n{dark}\n"
