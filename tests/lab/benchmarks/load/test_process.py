"""The server's process of a bench: it ends with the process that started it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

MEASURES = """
import time
from functools import partial

from agent.settings import CairnSettings
from lab.benchmarks.load import servers
from lab.benchmarks.load.process import running

settings = CairnSettings(port=0, store={store!r}).model_dump()
with running(partial(servers.paced, settings, (8, 4))) as server:
    print(server.pid, flush=True)
    time.sleep(600)
"""


def test_a_server_ends_when_the_process_that_measures_is_killed(tmp_path: Path):
    code = MEASURES.format(store=str(tmp_path / "runs.db"))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as measures:
        assert measures.stdout
        server = int(measures.stdout.readline())
        os.kill(server, 0)  # raises where there is no such process
        measures.send_signal(signal.SIGKILL)
    assert gone(server, within=30)


def gone(process: int, *, within: float) -> bool:
    """Whether a process has ended, or ends within `within` seconds. One without a waiting parent counts as ended."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False
