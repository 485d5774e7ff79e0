"""The databases that the store is tested on: SQLite in a file, and a PostgreSQL that is started here, where there is one."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.processes import running


@contextmanager
def postgres() -> Generator[str]:
    """The URL of an empty PostgreSQL of our own, on a socket in a folder of its own."""
    if not (initdb := _binary("initdb")) or not (server := _binary("postgres")):
        pytest.skip("there is no postgres here")
    folder = Path(tempfile.mkdtemp(prefix="cairn-pg-"))
    user = "postgres" if os.getuid() == 0 else None  # it refuses to run as root
    if user:
        shutil.chown(folder, user)
    try:
        data = folder / "data"
        made = [initdb, "-D", str(data), "-U", "cairn", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"]
        subprocess.run(made, user=user, cwd=folder, check=True, capture_output=True, timeout=100)
        quick = ["-c", "fsync=off", "-c", "listen_addresses=", "-c", f"unix_socket_directories={folder}"]
        command = [server, "-D", str(data), *quick]
        with running(command, end=signal.SIGINT, user=user, cwd=folder) as program:  # which does not wait for clients
            program.wait_for(lambda: "ready to accept connections" in program.said)
            yield f"postgresql://cairn@/postgres?host={folder}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binary(name: str) -> str | None:
    """On the path, or where Debian's package puts it."""
    there = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(there[-1]) if there else None)
