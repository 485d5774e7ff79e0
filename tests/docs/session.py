"""The shell lines of one page, run one after the other in a folder of their own, as its reader would."""

import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pytest

from agent.cli import run as cairn
from tests.docs.blocks import ROOT
from tests.docs.shell import Line

WORLD_QUESTION: Final = "Who taught Kredel Portwick?"
"""Of the little world: what stands where a page has `…`."""
SECONDS: Final = 60
"""One line may take so long."""
_SERVES: Final = re.compile(r"^(?:[A-Z_]+=\S+ )*cairn serve")
_ADDRESS: Final = re.compile(r"(?:answers|retrieves) at (http://[\d.]+:\d+)")
_OUTSIDE: Final = re.compile(
    r"(?:http://127\.0\.0\.1:11434|https://api\.openai\.com|https://example\.org|http://gpu:8000)"
)
FILES: Final[Mapping[str, str]] = {
    "documents/orr.md": "# Lina Orr\n\nLina Orr is a director. She was born in Trieste.\n",
    "documents/aurora.md": "# Aurora Falls\n\nAurora Falls is a film of 2025. Lina Orr directed it.\n",
    "triples.tsv": "Aurora Falls\tdirector\tLina Orr\nLina Orr\tplace of birth\tTrieste\n",
    "wikidata5m_all_triplet.txt": "Q1\tP19\tQ2\n",
    "wikidata5m_entity.txt": "Q1\tLina Orr\nQ2\tTrieste\n",
    "wikidata5m_relation.txt": "P19\tplace of birth\n",
    "Q.jsonl": '{"id": "q1", "question": "Where was Lina Orr born?", "answers": ["Trieste"]}\n',
    "dev.jsonl": '{"id": "q1", "question": "Where was Lina Orr born?", "answers": ["Trieste"]}\n',
}
"""What the pages speak of as the reader's own."""


@dataclass
class Session:
    """A folder with what a reader has, and the lines that were run in it."""

    folder: Path
    stand_in: str
    """Address of what replaces other people's models."""
    cache: Path
    """The user's cache, in which a model that a server fetches is kept for the next page."""
    environment: dict[str, str] = field(init=False)
    """No setting and no folder of the person who runs the tests."""
    server: subprocess.Popen[str] | None = None
    address: str = ""

    def __post_init__(self) -> None:
        self.environment = {
            "PATH": f"{self.folder}/.venv/bin:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.folder),
            "XDG_CACHE_HOME": str(self.cache),
            "PYTHONPATH": str(ROOT),
            "CAIRN_STORE": str(self.folder / "store.db"),
            "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": "1",
        }

    def __enter__(self) -> Self:
        for name, text in FILES.items():
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        shutil.copy(ROOT / "tests/fixtures/datasets/hotpotqa.json", self.folder / "hotpot_dev_distractor_v1.json")
        for name in ("agent", "train", "examples", "docs"):
            (self.folder / name).symlink_to(ROOT / name)
        command = self.folder / ".venv/bin/cairn"
        command.parent.mkdir(parents=True)
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agent.cli "$@"\n', encoding="utf-8")
        command.chmod(command.stat().st_mode | stat.S_IXUSR)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def run(self, line: Line) -> None:
        """Run it; what does not end with 0 fails with what it said. A server goes on until the next one."""
        text = self._ours(line.shorter)
        ours = replace(line, text=text)
        if text.startswith("cairn trace"):
            self.stop()  # what it still had to write is written then
        if _SERVES.match(text):
            self._serve(text)
        elif text.startswith("export "):
            self._export(text)
        elif ours.plain and ours.cairn:
            assert self._here(ours.cairn[0]) == 0, f"{line.name}\n{text}"
        else:
            ended = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", text],
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
            assert ended.returncode == 0, f"{line.name}\n{text}\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}"

    def _here(self, words: list[str]) -> int:
        """Run a command of ours in this process: most lines are nothing else, and imports take longer than they do."""
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            for name, value in self.environment.items():
                patch.setenv(name, value)
            return cairn(words)

    def _export(self, text: str) -> None:
        name = text.removeprefix("export ").split("=", 1)[0]
        said = subprocess.run(
            ["bash", "-euc", f'{text}\nprintf %s "${name}"'],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            check=True,
            text=True,
        )
        self.environment[name] = said.stdout

    def stop(self) -> None:
        if self.server is not None:
            self.server.terminate()
            self.server.communicate(timeout=SECONDS)
            self.server = None

    def _serve(self, text: str) -> None:
        self.stop()
        plain = re.sub(r"\s+#.*$", "", text)
        self.server = subprocess.Popen(
            ["bash", "-euc", re.sub(r"(cairn serve)", r"exec \1", plain, count=1) + " --port 0"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.server.stderr is not None
        said: list[str] = []
        for line in self.server.stderr:
            said.append(line)
            if found := _ADDRESS.search(line):
                self.address = found[1]
                return
        raise AssertionError(f"{text} did not begin to serve:\n{''.join(said)}")

    def _ours(self, text: str) -> str:
        """The line with the tests' own addresses and questions in the place of the reader's."""
        text = _OUTSIDE.sub(self.stand_in, text)
        text = re.sub(r"http://127\.0\.0\.1:800\d", self.address or "http://127.0.0.1:9", text)
        text = text.replace("--base-url …", f"--base-url {self.stand_in}/v1").replace("--model …", "--model qwen3:8b")
        return re.sub(r"=…", "=none", text).replace("…", WORLD_QUESTION)
