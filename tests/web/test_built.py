"""What is committed as built is built of what is committed as source. None of this needs Node or a browser."""

import gzip
import hashlib
import re
from pathlib import Path

import agent.trace
from server.ui.routes import STATIC
from server.ui.types import written

VIEW = Path(agent.trace.__file__).parent / "view"
WEB = Path(__file__).parent.parent.parent / "web"
FILES = ("index.html", "package-lock.json", "tsconfig.json", "vite.config.ts")
FOLDERS = ("public", "src")
FIRST_LOAD_BYTES = 60 * 1024
GRAPH_BYTES = 25 * 1024
VIEW_BYTES = 72 * 1024


def sum_of_sources() -> str:
    """As web/tools/sources.mjs makes it."""
    listed = [
        str(path.relative_to(WEB).as_posix())
        for folder in FOLDERS
        for path in (WEB / folder).rglob("*")
        if path.is_file()
    ]
    made = hashlib.sha256()
    for path in sorted([*FILES, *listed]):
        made.update(f"{path}\0".encode() + (WEB / path).read_bytes() + b"\0")
    return made.hexdigest()


def packed(pattern: str) -> int:
    return sum(len(gzip.compress(path.read_bytes(), 9)) for path in STATIC.glob(pattern))


def test_the_built_page_is_of_these_sources() -> None:
    for folder in (STATIC, VIEW):
        assert (folder / "sources.sha256").read_text().strip() == sum_of_sources(), f"run make web and commit {folder}"


def test_the_schema_for_the_page_is_that_of_the_models() -> None:
    assert (WEB / "schema.json").read_text(encoding="utf-8") == written(), "run make web and commit web/schema.json"


def test_the_types_of_the_page_are_made_of_that_schema() -> None:
    first = (WEB / "src" / "api" / "types.gen.ts").read_text(encoding="utf-8").split("\n", 1)[0]
    wanted = hashlib.sha256((WEB / "schema.json").read_bytes()).hexdigest()
    assert first.endswith(wanted), "run make web and commit web/src/api/types.gen.ts"


def test_the_first_load_and_the_graph_are_small() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    first = set(re.findall(r"/static/([\w-]+\.js)", page))
    assert sum(packed(name) for name in first) <= FIRST_LOAD_BYTES
    assert packed("graph-*.js") <= GRAPH_BYTES
    later = {path.name.partition("-")[0] for path in STATIC.glob("*.js") if path.name not in first}
    assert later == {"graph", "library", "document", "report", "settings"}


def test_the_view_that_files_embed_is_small_and_cannot_end_its_script_element() -> None:
    script = (VIEW / "view.js").read_text(encoding="utf-8")
    assert len(gzip.compress(script.encode(), 9)) <= VIEW_BYTES
    assert not re.search(r"</script|<!--", script, re.IGNORECASE)
    assert not re.search(r"@import|url\(|@font-face", (VIEW / "view.css").read_text(encoding="utf-8"))


def test_nothing_that_is_built_names_another_place_to_load_from() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert set(re.findall(r'(?:src|href)="(/static/)?', page)) == {"/static/"}
    for style in STATIC.glob("*.css"):
        assert not re.search(r"@import|url\(|@font-face", style.read_text(encoding="utf-8"))
    for script in STATIC.glob("*.js"):
        text = script.read_text(encoding="utf-8")
        assert "eval(" not in text
        assert "document.write" not in text


def test_our_own_sources_hand_no_markup_to_the_browser() -> None:
    for source in (WEB / "src").rglob("*.ts*"):
        text = source.read_text(encoding="utf-8")
        for danger in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "dangerouslySetInnerHTML",
            "document.write",
            "eval(",
            "new Function",
        ):
            assert danger not in text, f"{source.name}: {danger}"
