"""Functions and commands in processes of their own, forked from one that has imported what takes long."""

import os
import sys
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

from agent import cli
from agent.parallel.processes import preloaded


def begun(function: Callable[..., object], *arguments: object) -> BaseProcess:
    """A process that calls the function of a module."""
    trainers: Any = preloaded("train.rl.run", "train.ppo.run")
    process: BaseProcess = trainers.Process(target=function, args=arguments)
    process.start()
    return process


def command(*arguments: str) -> BaseProcess:
    """A process that runs a command of `cairn`, without its progress."""
    return begun(_quietly, arguments)


def _quietly(arguments: tuple[str, ...]) -> None:
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), sys.stderr.fileno())
    sys.exit(cli.run(arguments))
