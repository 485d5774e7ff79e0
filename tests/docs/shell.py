"""Blocks of shell as lines that can be run one by one, what each of them calls, and why some are only checked."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.docs.blocks import Block

_HERE: Final = re.compile(r"<<\s*'?(\w+)'?")
_ASSIGNS: Final = re.compile(r"[A-Za-z_]\w*=")
_OPERATOR: Final = re.compile(r"[|&;<>()]+")

UNREACHABLE: Final = {
    "docker": "needs a container engine",
    "kubectl": "needs a cluster",
    "sudo": "needs root",
    "claude": "needs Claude Code",
    "hf": "needs an account of a hub",
    "pip": "installs packages",
    "make": "installs packages, or runs for minutes",
    "python": "needs a package of its own",
    "python3": "makes an environment",
}
"""Programs that no test may or can start."""

RULES: Final = (
    (r"^cairn train (?!plan)", "trains for minutes"),
    (r"^cairn train plan", "rehearses for minutes; tests/lab/plan runs it"),
    (r"^cairn bench", "measures for minutes"),
    (r"^cairn checkpoint|runs/(tiny|weak|grpo|rows|dev/traces)", "needs a trained checkpoint"),
    (r"--policy (vllm|transformers)|--tokenizer", "needs a model of several GB"),
    (r"--host (?!127\.)", "listens to other machines"),
    (r"--each 10000", "runs for minutes"),
    (r"^cairn key revoke", "the key is its reader's"),
    (r"CAIRN_OTEL", "needs a collector of traces"),
    (r"runs/before", "compares with a previous run"),
)
"""Commands of our own that are only checked."""

SHORTER: Final = (
    (re.compile(r"^((?:\w+=\S+ )?cairn eval .*?)(\s+#.*)?$"), r"\1 --limit 2\2"),
    (re.compile(r"^(cairn world build .*?)(\s+#.*)?$"), r"\1 --size 1000 --questions 24\2"),
    (re.compile(r"^(cairn trace replay .*?) --speed \d+$"), r"\1 --speed 1000"),
    (re.compile(r" --dense \S+"), ""),
)
"""What would take minutes runs with smaller options; of two equal options the last one holds."""

NEEDS_THE_WEB: Final = re.compile(r"CAIRN_(TAVILY|SERPER|BRAVE|GNEWS|SEARXNG)|--live")
"""Of a whole block: what is exported counts for the lines after it."""


@dataclass(frozen=True)
class Line:
    """One line of a block, with what continues it."""

    block: Block
    number: int
    """In its page."""
    text: str

    @property
    def name(self) -> str:
        return f"{self.block.page}:{self.number} {self.text.splitlines()[0][:60]}"

    @property
    def words(self) -> list[str]:
        """Of its first line alone where a text of its own follows; operators are words, comments are none."""
        first = self.text.split("\n", 1)[0] if _HERE.search(self.text) else self.text
        lexer = shlex.shlex(first.replace("\\\n", " "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.commenters = "#"
        return list(lexer)

    @property
    def calls(self) -> list[list[str]]:
        """The programs that it starts, each with its arguments; assignments before them are left out."""
        calls: list[list[str]] = [[]]
        for word in self.words:
            if _OPERATOR.fullmatch(word):
                calls.append([])
            elif calls[-1] or not _ASSIGNS.match(word):
                calls[-1].append(word)
        return [call for call in calls if call]

    @property
    def plain(self) -> bool:
        """Whether it is one command without anything of the shell's around it."""
        words = self.words
        return not any(_OPERATOR.fullmatch(word) or "$" in word for word in words) and not _ASSIGNS.match(words[0])

    @property
    def cairn(self) -> list[list[str]]:
        """The arguments of each `cairn` in it, also of those that another program starts."""
        found: list[list[str]] = []
        for call in self.calls:
            at = next(
                (n for n, word in enumerate(call) if word.rsplit("/", 1)[-1] == "cairn" and _starts(call, n)), None
            )
            if at is not None:
                found.append(call[at + 1 :])
        return found

    @property
    def shorter(self) -> str:
        """The line as it is run: the same, or one that does less."""
        text = self.text
        for rule, less in SHORTER:
            text = rule.sub(less, text)
        return text

    @property
    def why(self) -> str:
        """Why it is only checked; empty where it is run."""
        if self.block.why:
            return self.block.why
        if NEEDS_THE_WEB.search(self.block.text):
            return "asks the live web, with a key"
        for call in self.calls:
            program = call[0].rsplit("/", 1)[-1]
            if program in UNREACHABLE:
                return UNREACHABLE[program]
        plain = self.text.removeprefix(".venv/bin/")
        return next((why for rule, why in RULES if re.search(rule, plain)), "")


def _starts(call: list[str], at: int) -> bool:
    """Whether the word is a command: the first one, or behind `--`, or what a container runs."""
    return at == 0 or call[at - 1] == "--" or (call[0] == "docker" and call[at - 1].startswith("cairn"))


def lines_of(block: Block) -> Iterator[Line]:
    """Its lines, comments and empty ones left out; continued ones and texts that a line brings along are whole."""
    rest = block.text.splitlines()
    number = block.line
    while rest:
        first, taken = number, [rest.pop(0)]
        number += 1
        end = _HERE.search(taken[0])
        while rest and (taken[-1].endswith("\\") or (end and taken[-1] != end[1])):
            taken.append(rest.pop(0))
            number += 1
        if taken[0].strip() and not taken[0].lstrip().startswith("#"):
            yield Line(block, first, "\n".join(taken))
