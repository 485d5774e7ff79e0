"""What the deployment files say, read from them: the Dockerfile's instructions, compose, Kubernetes and systemd."""

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parents[2]
DEPLOY: Final = ROOT / "docs" / "deploy"
COMPOSE: Final = sorted(DEPLOY.glob("compose*.yaml"))
KUBERNETES: Final = sorted(DEPLOY.glob("kubernetes*.yaml"))
PORT: Final = 8000
STORE_FOLDER: Final = "/var/lib/cairn"
USER: Final = 10001


class Stage:
    """One stage of the Dockerfile, with the instructions of those that it is built from."""

    def __init__(self, name: str, parent: "Stage | None") -> None:
        self.name = name
        self._own: defaultdict[str, list[str]] = defaultdict(list)
        self._parent = parent

    def add(self, instruction: str, rest: str) -> None:
        self._own[instruction].append(rest)

    def all(self, instruction: str) -> list[str]:
        return [*(self._parent.all(instruction) if self._parent else []), *self._own[instruction]]

    def last(self, instruction: str) -> str:
        return self.all(instruction)[-1]

    @property
    def environment(self) -> dict[str, str]:
        pairs = (pair.partition("=") for line in self.all("ENV") for pair in line.split())
        return {name: value for name, _, value in pairs}

    @property
    def command(self) -> list[str]:
        return json.loads(self.last("CMD"))

    @property
    def health_command(self) -> list[str]:
        return json.loads(self.last("HEALTHCHECK").partition("CMD ")[2])


def dockerfile() -> list[Stage]:
    """The stages in their order; the last one is what a build without a target makes."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    stages: list[Stage] = []
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        instruction, _, rest = line.strip().partition(" ")
        if instruction == "FROM":
            parent, _, name = rest.partition(" AS ")
            stages.append(Stage(name, next((stage for stage in stages if stage.name == parent), None)))
        elif stages and instruction:
            stages[-1].add(instruction, rest.strip())
    return stages


def stage(name: str) -> Stage:
    return next(one for one in dockerfile() if one.name == name)


def extras(name: str) -> list[str]:
    """What a stage installs beside the package itself."""
    (named,) = re.findall(r"'\.\[([\w,]+)\]'", stage(name).last("RUN"))
    return named.split(",")


def compose(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def kubernetes(path: Path) -> dict[str, Any]:
    """Its objects by kind."""
    return {one["kind"]: one for one in yaml.safe_load_all(path.read_text(encoding="utf-8"))}


def unit() -> Mapping[str, list[str]]:
    """The service's lines of the systemd unit by their key, which may stand there more than once."""
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for line in (DEPLOY / "cairn.service").read_text(encoding="utf-8").splitlines():
        key, there, value = line.partition("=")
        if there and not line.startswith("#"):
            lines[key].append(value)
    return lines
