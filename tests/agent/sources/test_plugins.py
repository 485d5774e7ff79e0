"""Plug-ins: what is installed becomes a source, and whatever is wrong with one is a sentence with its package."""

import asyncio
import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.build.backends import plugin_source
from agent.errors import SetupError, SourceError
from agent.settings import CairnSettings
from agent.sources.base import SearchRequest, SearchResult, Source, ask, close_sources
from agent.sources.plugins import installed, load_plugin
from tests.virtual_clock import now, run

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "cairn-source-example"

GOOD = """
from agent.sources.base import SearchResult
class Made:
    def __init__(self, **options): self.options = options
    async def search(self, request): return SearchResult()
def make(*, file, depth=1): return Made(file=file, depth=depth)
"""

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Lay a package with one module and its entry points where Python finds it; it is forgotten after the test."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    before = set(sys.modules)

    def lay(code: str, *, package: str = "their-package", points: str = "archive = {module}:make") -> None:
        module = package.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(code, encoding="utf-8")
        info = tmp_path / f"{module}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[cairn.sources]\n{points.format(module=module)}\n", encoding="utf-8")

    yield lay
    for name in set(sys.modules) - before:
        if name.startswith("their"):
            del sys.modules[name]


def refusal(name: str = "archive", **options: Any) -> str:
    with pytest.raises(SetupError) as caught:
        load_plugin(name, options)
    return str(caught.value)


def test_a_plug_in_is_made_with_its_options(install: Install) -> None:
    install(GOOD)
    made: Any = load_plugin("archive", {"file": "a.txt"})
    assert made.options == {"file": "a.txt", "depth": 1}
    assert asyncio.run(made.search(SearchRequest("x", limit=1))) == SearchResult()


def test_looking_what_is_installed_imports_nothing(install: Install) -> None:
    install("raise RuntimeError('imported')")
    assert installed()["archive"].value == "their_package:make"
    assert "their_package" not in sys.modules


def test_a_name_that_no_package_brings_lists_what_there_is(install: Install) -> None:
    install(GOOD)
    why = refusal("shlef")
    assert "no plug-in 'shlef'" in why
    assert "archive" in why.split("installed are:")[1]


def test_two_packages_with_the_same_name_are_both_named(install: Install) -> None:
    install(GOOD)
    install(GOOD, package="their-other")
    assert "their-other 1.2 and their-package 1.2 both bring" in refusal()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import module_that_no_one_has", "cannot be imported (ModuleNotFoundError"),
        ("1 / 0", "cannot be imported (ZeroDivisionError"),
        ("other = 1", "cannot be imported (AttributeError"),
        ("make = 3", "is a int, not something to call"),
        ("def make(): return None", "which is not a source: it has no 'search'"),
        ("class make:\n def search(self, request): return None", "is not 'async def'"),
        (
            "class make:\n async def search(self, query, *, limit, filters=()): return []",
            "cannot be called as search(request), with a SearchRequest: missing a required argument: 'limit'",
        ),
        ("def make(): raise KeyError('token')", "cannot make its source (KeyError: 'token'); check [plugins.archive]"),
        (
            "from agent.errors import SetupError\ndef make(): raise SetupError('no file; write one')",
            "of their-package 1.2: no file; write one",
        ),
    ],
)
def test_a_broken_plug_in_is_a_sentence_with_its_package(install: Install, code: str, says: str) -> None:
    install(code)
    why = refusal()
    assert "their-package 1.2" in why
    assert says in why


def test_options_that_do_not_fit_name_the_setting_and_what_fits(install: Install) -> None:
    install(GOOD)
    wrong = refusal(fil="a.txt")
    assert "'fil'" in wrong or "'file'" in wrong
    assert "it takes: file, depth. Correct [plugins.archive] in cairn.toml" in wrong
    assert "'file'" in refusal()


@pytest.mark.parametrize("name", ["web", "all", "kg"])
def test_a_built_in_name_is_not_given_away(install: Install, name: str) -> None:
    install(GOOD, points=name + " = {module}:make")
    assert "a name that Cairn itself uses" in refusal(name, file="a")


@pytest.mark.parametrize("name", ["my archive", "9th", "regal.größe"])
def test_a_name_that_no_plan_can_write_is_refused(install: Install, name: str) -> None:
    install(GOOD, points=name + " = {module}:make")
    assert "which no plan can name" in refusal(name, file="a")


def test_a_method_that_was_wrapped_is_still_a_search(install: Install) -> None:
    install(
        "import functools\n"
        "def timed(f):\n @functools.wraps(f)\n def g(*a, **k): return f(*a, **k)\n return g\n"
        "class make:\n @timed\n async def search(self, request): return None"
    )
    load_plugin("archive", {})


FAILING = """
from agent.evidence import Passage
from agent.sources.base import SearchResult
from agent.sources.limits import Limits
class make:
    {limits}
    requests, closed = 0, 0
    async def search(self, request):
        make.requests += 1
        {act}
        return SearchResult((Passage(id=request.query, source="archive", title="", text="found"),))
    async def aclose(self): make.closed += 1
"""


def guarded_plugin(tmp_path: Path, **limits: float) -> Source:
    given: dict[str, Any] = {
        "plugins": {"archive": {}},
        "limits": {"archive": limits},
        "cache": str(tmp_path / "cache"),
    }
    return plugin_source(CairnSettings.model_validate(given), "archive")


def times_searched() -> int:
    return importlib.import_module("their_package").make.requests


def test_a_plug_in_that_fails_is_tried_again_and_each_failure_is_reported(install: Install, tmp_path: Path) -> None:
    install(FAILING.format(limits="", act="if self.requests < 3: raise RuntimeError('the archive fell')"))

    async def main() -> None:
        source = guarded_plugin(tmp_path)
        hits = await ask(source, SearchRequest("x", limit=3), seconds=60)
        assert [passage.text for passage in hits.passages] == ["found"]
        failures = [(f.backend, f.kind, f.why) for f in hits.failures]
        assert failures == [("archive", "upstream", "RuntimeError: the archive fell")] * 2
        await close_sources([source])
        assert importlib.import_module("their_package").make.closed == 1

    run(main())


def test_a_plug_in_that_hangs_is_not_waited_for_and_then_left_alone(install: Install, tmp_path: Path) -> None:
    install(
        FAILING.format(limits="limits = Limits(breaker_failures=4)", act="import asyncio; await asyncio.sleep(1e6)")
    )

    async def main() -> None:
        source = guarded_plugin(tmp_path, timeout_seconds=2, tries=2)
        for _ in range(2):
            with pytest.raises(SourceError, match="no answer in 2 s") as caught:
                await ask(source, SearchRequest("x", limit=3), seconds=60)
            assert [failure.kind for failure in caught.value.failures] == ["timeout"] * 2
        began = now()
        with pytest.raises(SourceError, match="archive is paused, it will be tried again in"):
            await ask(source, SearchRequest("x", limit=3), seconds=60)
        assert (now(), times_searched()) == (began, 4)

    run(main())


@pytest.mark.parametrize(
    ("own", "said", "requests"),
    [
        ("nothing = Limits()", {}, 2),
        ("nothing = Limits()", {"keep_seconds": 60.0}, 1),
        ("limits = Limits(keep_seconds=60)", {}, 1),
    ],
)
def test_what_a_plug_in_finds_is_kept_only_where_it_or_the_settings_say_so(
    install: Install, tmp_path: Path, own: str, said: dict[str, float], requests: int
) -> None:
    install(FAILING.format(limits=own, act="pass"))

    async def main() -> None:
        source = guarded_plugin(tmp_path, **said)
        assert [len((await ask(source, SearchRequest("x", limit=3), seconds=60)).passages) for _ in range(2)] == [1, 1]
        assert times_searched() == requests
        await close_sources([source])

    asyncio.run(main())


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example package as pip installs it, in a folder of its own."""
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-index"]
    done = subprocess.run(
        [*pip, "--no-build-isolation", "--target", str(target), str(EXAMPLE)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target


def in_process(example: Path, folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process that has the example installed."""
    lines = f"import sys\nsys.path.insert(0, {str(example)!r})\n{code}"
    return subprocess.run(
        [sys.executable, "-c", lines], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_example_package_is_found_and_answers(example: Path, tmp_path: Path) -> None:
    terms = "# ours\nRRF: reciprocal rank fusion.\n\nrank fusion: merging lists.\nfusion: not that one\n"
    (tmp_path / "terms.txt").write_text(terms, encoding="utf-8")
    done = in_process(
        example,
        tmp_path,
        "import asyncio, json\n"
        "from agent.sources.plugins import installed, load_plugin\n"
        "source = load_plugin('glossary', {'file': 'terms.txt'})\n"
        "from agent.sources.base import SearchRequest\n"
        "found = asyncio.run(source.search(SearchRequest('What is rank Fusion (RRF)?', limit=2)))\n"
        "print(json.dumps([sorted(installed()), [[p.id, p.rank, p.text] for p in found.passages]]))\n",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        ["glossary"],
        [["rank fusion", 1, "merging lists."], ["fusion", 2, "not that one"]],
    ]


def test_a_rollout_asks_the_example_package_as_the_settings_say(example: Path, tmp_path: Path) -> None:
    (tmp_path / "terms.txt").write_text("RRF: reciprocal rank fusion.\n", encoding="utf-8")
    (tmp_path / "cairn.toml").write_text(
        'sources = ["glossary"]\n[plugins.glossary]\nfile = "terms.txt"\n', encoding="utf-8"
    )
    done = in_process(
        example,
        tmp_path,
        "import asyncio\n"
        "from pathlib import Path\n"
        "from agent.build.agent import build_agent\n"
        "from agent.policies.scripted import ScriptedPolicy\n"
        "from agent.settings import load_settings\n"
        "from agent.trace import Searched\n"
        "turns = ('<search>\\nA: what is RRF (glossary)\\n</search>', '<answer>reciprocal rank fusion</answer>')\n"
        "agent = build_agent(load_settings(Path('cairn.toml')), policy=ScriptedPolicy(turns))\n"
        "trace = asyncio.run(agent.run(agent.new_trace('What is RRF?')))\n"
        "[searched] = [step for step in trace.steps if isinstance(step, Searched)]\n"
        "print(searched.source, searched.passages[0].text, trace.answer, sep='|')\n",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "glossary|reciprocal rank fusion.|reciprocal rank fusion\n"


def test_the_command_finds_the_example_package(example: Path, tmp_path: Path) -> None:
    (tmp_path / "terms.txt").write_text("RRF: reciprocal rank fusion.\n", encoding="utf-8")
    config = 'cache = ""\nport = 0\n[plugins.glossary]\nfile = "terms.txt"\n'
    (tmp_path / "cairn.toml").write_text(config, encoding="utf-8")
    done = in_process(
        example, tmp_path, "from agent.cli import run\nsys.exit(run(['trust']) or run(['doctor', '--json']))\n"
    )
    states = {check["name"]: check["state"] for check in json.loads(done.stdout.splitlines()[-1])["checks"]}
    assert states["glossary"] == "ok"


@pytest.mark.parametrize(("line", "says"), [("no colon here", "line 2 of"), ("", "cannot be read")])
def test_the_example_says_what_is_wrong_with_its_file(example: Path, tmp_path: Path, line: str, says: str) -> None:
    if line:
        (tmp_path / "terms.txt").write_text(f"a: b\n{line}\n", encoding="utf-8")
    done = in_process(
        example,
        tmp_path,
        "from agent.sources.plugins import load_plugin\nload_plugin('glossary', {'file': 'terms.txt'})",
    )
    assert "SetupError: the plug-in 'glossary' of cairn-source-example 0.1.0:" in done.stderr
    assert says in done.stderr
