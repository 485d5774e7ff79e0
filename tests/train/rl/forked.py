"""Commands of `cairn`, one after another, each in process groups of its own: what a launcher runs in tests.

    accelerate launch --num_processes 2 -m tests.train.rl.forked COMMANDS.json

Imports take most of the time of such a command. Here each process imports once, and forks for each command.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent import cli


def main(path: Path) -> int:
    """Run the commands of a file until one fails. Each has `arguments`, a free `port`, and what is moved before it."""
    import train.rl.run  # noqa: F401  # pyright: ignore[reportUnusedImport] - what takes long

    for command in json.loads(path.read_text(encoding="utf-8")):
        _moved(command["moves"])
        if not (child := os.fork()):
            os._exit(_ran(command))
        if code := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            return code
    return 0


def _moved(moves: Mapping[str, str]) -> None:
    """The first process moves the files; the others wait until they are gone."""
    for old, new in moves.items():
        if os.environ["RANK"] == "0":  # noqa: TID251 - the launcher's
            Path(old).rename(new)
        while Path(old).exists():
            time.sleep(0.01)


def _ran(command: Mapping[str, Any]) -> int:
    own = {"MASTER_PORT": str(command["port"]), "TORCHELASTIC_USE_AGENT_STORE": "False"}
    os.environ.update(own)  # noqa: TID251 - as the launcher sets them
    try:
        return cli.run(command["arguments"])
    except BaseException:  # noqa: BLE001 - this process ends here, whatever it is
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
