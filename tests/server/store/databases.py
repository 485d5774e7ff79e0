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
        with subprocess.Popen(
            [server, "-D", str(data), *quick], user=user, cwd=folder, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stderr is not None
                while (line := process.stderr.readline()) and "ready to accept connections" not in line:
                    pass
                yield f"postgresql://cairn@/postgres?host={folder}"
            finally:
                process.send_signal(signal.SIGINT)  # it ends its connections, and does not wait for them
                process.communicate(timeout=60)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binary(name: str) -> str | None:
    """On the path, or where Debian's package puts it."""
    there = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(there[-1]) if there else None)
