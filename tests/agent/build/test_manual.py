"""What is searched where nothing is configured: Cairn's own manual."""

import asyncio
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from agent.build.agent import build_sources, notices
from agent.build.manual import manual_pages, open_manual
from agent.build.sources import uses_manual, uses_world
from agent.errors import SetupError
from agent.settings import CairnSettings
from agent.sources.base import SearchRequest
from server.ui.routes import ABOUT_CAIRN, examples_of


@pytest.fixture(autouse=True)
def nothing_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CAIRN_WORLD")


def test_the_manual_is_searched_where_nothing_else_is_named(tmp_path: Path):
    (tmp_path / "a.md").write_text("# A page", encoding="utf-8")
    assert uses_manual(CairnSettings())
    assert not uses_manual(CairnSettings(world="test"))
    assert uses_world(CairnSettings(world="test"))
    mine = CairnSettings(world="test", corpus=tmp_path)
    assert not uses_manual(mine)
    assert not uses_world(mine)
    assert "Cairn searches its own manual" in notices(CairnSettings())[-1]


def test_a_plan_finds_the_manual_under_every_name():
    sources = build_sources(CairnSettings())
    assert {"all", "corpus", "web", "wiki"} <= set(sources)
    hits = asyncio.run(sources["all"].search(SearchRequest("Which port does the server listen on?", limit=5)))
    assert any("8000" in passage.text for passage in hits.passages)


def test_the_manual_says_how_cairn_is_used_and_has_no_pages_of_figures():
    pages = {page.stem for page in manual_pages()}
    assert {"index", "quickstart", "documents", "settings", "protocols"} <= pages
    assert not {"log", "benchmarks", "reproduction"} & pages


@pytest.mark.parametrize("question", ABOUT_CAIRN)
def test_what_the_page_offers_to_ask_can_be_found(question: str):
    assert open_manual().find(question, limit=3)


def test_the_page_offers_questions_about_what_is_searched(tmp_path: Path):
    assert examples_of(CairnSettings()) == ABOUT_CAIRN
    assert not examples_of(CairnSettings(corpus=tmp_path))


def test_an_installation_without_its_manual_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agent.build.manual.FOLDERS", (tmp_path,))
    with pytest.raises(SetupError, match="lacks Cairn's manual"):
        manual_pages()


@pytest.mark.slow
def test_a_wheel_holds_the_manual(tmp_path: Path):
    root = Path(__file__).parents[3]
    made = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(made, cwd=root, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = {name for name in ZipFile(wheel).namelist() if not name.startswith(("server/", "train/"))}
    assert {f"agent/manual/{page.name}" for page in manual_pages()} <= names
    assert not any(name.startswith("docs/") for name in names)
