"""How the code is laid out, in figures: `python -m tests.house` prints them; tests/test_house.py holds their bounds.

A module is a file of Python of the packages in the wheel. What passes a question is counted with a profiler: each file
of ours that a function of is entered in, from the command or the request to the first line of the loop.
"""

import ast
import re
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
PACKAGES: Final = ("agent", "server", "train")
DATA_LEFT_OUT: Final = ("agent/checkpoints/small-v1",)
"""A shipped language model's adapter: it is what the package is for, and has a bound of its own."""
LOOP: Final = ROOT / "agent" / "loop" / "loop.py"
OLD_WORDS: Final = frozenset(
    "told tells asked asking wish wishes wished mend mends mended mending anew whoever somebody nobody lesson lessons "
    "school sitting sittings crew canary canaries knob knobs tape tapes allowance allowances forcing desk shelf shelves "
    "keeper heed heeds heeded defuse defuses defused twin twins aside player played".split()
)
"""Of a vocabulary that was ours alone; docs/adr has what replaced them."""


@cache
def modules() -> dict[str, Path]:
    """Dotted name → file, of the wheel."""
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {_name(path): path for path in files}


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def lines() -> int:
    """Of Python in the wheel."""
    return sum(_count(path) for path in modules().values())


def _count(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n")


def test_lines() -> int:
    return sum(_count(path) for path in (ROOT / "tests").rglob("*.py"))


def lab_lines() -> int:
    return sum(_count(path) for path in (ROOT / "lab").rglob("*.py"))


def data_bytes() -> int:
    """Of files in the wheel that are no Python and no page of the manual."""
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_file())
    return sum(
        path.stat().st_size
        for path in files
        if path.suffix not in {".py", ".pyc"} and not path.relative_to(ROOT).as_posix().startswith(DATA_LEFT_OUT)
    )


def loose() -> list[str]:
    """Modules at the top of a package."""
    return sorted(name for name, path in modules().items() if len(path.relative_to(ROOT).parts) == 2)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> set[str]:
    """Modules of the wheel that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found & modules().keys()


def with_one_importer() -> list[str]:
    """Modules that a single other one imports."""
    importers: defaultdict[str, set[str]] = defaultdict(set)
    for name, path in modules().items():
        for other in imports(path):
            importers[other].add(name)
    whole = {name for name, path in modules().items() if path.name != "__init__.py"}
    return sorted(name for name in whole if len(importers[name] - {name.rpartition(".")[0]}) == 1)


def classes_used_twice() -> dict[str, list[str]]:
    """Public class names that several modules define."""
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for name, path in modules().items():
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name)
    return {name: found for name, found in sorted(homes.items()) if len(found) > 1}


class Passed:
    """The files of ours that are entered while it is open, up to the loop."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        self._done = False

    def __enter__(self) -> "Passed":
        # The application of a test client runs in a thread that starts later.
        threading.setprofile(self._see)
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]

    def _see(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or self._done or frame.f_code.co_name == "<module>":
            return
        path = frame.f_code.co_filename
        if not path.startswith(_PLACES) or _imports(frame):
            return
        self._done = path == str(LOOP)
        self.files[path.removeprefix(f"{ROOT}/")] += not self._done


def _imports(frame: FrameType | None) -> bool:
    """A module that is imported calls decorators and the like."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(_PLACES):
            return True
        frame = frame.f_back
    return False


_PLACES: Final = tuple(f"{ROOT}/{package}/" for package in PACKAGES)


def passed_by_ask() -> Counter[str]:
    """Files that `cairn ask` in the little world passes."""
    from agent.cli import run

    with redirect_stdout(StringIO()), Passed() as passed:
        assert run(["ask", "What is the country of Spulaven?", "--world", "test-v2", "--json"]) == 0
    return +passed.files


def passed_by_chat() -> Counter[str]:
    """Files of the server that a chat completion passes."""
    from starlette.testclient import TestClient

    from server.app import create_app
    from tests.server.live import QUESTION, make_service

    client = TestClient(create_app(make_service()), base_url="http://127.0.0.1")
    with Passed() as passed:
        assert client.post("/v1/chat/completions", json={"messages": QUESTION}).status_code == 200
    return Counter({name: count for name, count in passed.files.items() if name.startswith("server/")})


def old_words() -> Counter[str]:
    """Words that the glossary replaced, by file: whole words of names and of prose."""
    found: Counter[str] = Counter()
    for path in _read_files():
        words = _WORD.findall(path.read_text(encoding="utf-8"))
        found[path.relative_to(ROOT).as_posix()] = sum(word.lower() in OLD_WORDS for word in words)
    return +found


def _read_files() -> Iterator[Path]:
    for folder in ("agent", "server", "train", "lab", "tests", "docs", "examples", "web/src", "web/tests"):
        yield from (
            path
            for path in (ROOT / folder).rglob("*")
            if path.suffix in {".py", ".md", ".toml", ".ts", ".tsx", ".css", ".sh"}
            and "node_modules" not in path.parts
            and not path.relative_to(ROOT).as_posix().startswith(_LEFT_OUT)
        )
    yield from (
        path for path in ROOT.iterdir() if path.name in {"README.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile"}
    )


_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_HISTORY: Final = ("docs/log.md", "docs/adr/", "docs/bench/", "docs/reproduction.md", "tests/golden/", "tests/house.py")
"""What was written down at its time, or by a run."""
_ENGLISH: Final = (
    "agent/checks/",
    "agent/sanitize/sanitize.py",
    "agent/sources/extract/document.py",
    "agent/sources/kg/words.py",
    "agent/sources/live/mentions.py",
    "agent/world/wordings/",
    "lab/benchmarks/checks/",
    "lab/benchmarks/graphs.py",
    "tests/agent/sources/extract/pages.py",
    "tests/agent/world/test_scope.py",
    "train/evaluation/abstention.py",
    "train/expert/combine.py",
    "train/expert/extract.py",
    "train/world/",
)
"""Lists of English words, where a school is a school, and of HTML's elements."""
_PROMPTS: Final = (
    "agent/policies/once.py",
    "agent/protocols/base.py",
    "tests/agent/test_fills.py",
    "train/evaluation/extract.py",
)
"""Texts that models were measured with."""
_PREVIOUS_NAMES: Final = (
    "agent/world/store.py",
    "server/store/",
    "tests/agent/world/test_store.py",
    "tests/server/runs/test_bad_rows.py",
    "tests/train/common/",
    "tests/train/data/test_parts.py",
    "tests/train/distill/test_distill.py",
    "tests/train/safety/",
    "train/common/recipe_files.py",
    "train/common/worlds.py",
    "train/data/folder.py",
    "train/distill/rollouts.py",
    "train/expert/rows.py",  # in the seed of a draw
    "train/safety/",
)
"""Readers of files and databases of earlier versions, and their tests."""
_LEFT_OUT: Final = (*_HISTORY, *_ENGLISH, *_PROMPTS, *_PREVIOUS_NAMES)


def figures(passed: bool = True) -> Iterator[tuple[str, str]]:
    """Each figure of the table in docs/adr, as it is now.

    Args:
        passed: also those that answer a question.
    """
    count, alone = len(modules()), len(with_one_importer())
    yield "Python in the wheel, lines", f"{lines() / 1000:.1f}k"
    yield "data in the wheel, without small-v1", f"{data_bytes() / 1e6:.1f} MB"
    yield "modules loose at package tops", str(len(loose()))
    yield "modules with one importer", f"{alone} of {count}"
    yield "public class names used twice", str(len(classes_used_twice()))
    yield "old words of the glossary", str(sum(old_words().values()))
    yield "tests, lines per line of product and lab", f"{test_lines() / (lines() + lab_lines()):.2f}"
    if passed:
        yield "files that `cairn ask` passes", str(len(passed_by_ask()))
        yield "files of the server that a chat completion passes", str(len(passed_by_chat()))


def main() -> None:
    """Print the figures; with -v, what they count, too."""
    for what, figure in figures():
        sys.stdout.write(f"{what:50} {figure}\n")
    if "-v" in sys.argv:
        classes = (f"{name}: {', '.join(homes)}" for name, homes in classes_used_twice().items())
        words = (f"{name}: {count} old words" for name, count in old_words().most_common())
        sys.stdout.writelines(
            f"{line}\n"
            for line in (*loose(), *with_one_importer(), *classes, *words, *passed_by_ask(), *passed_by_chat())
        )


if __name__ == "__main__":
    main()
