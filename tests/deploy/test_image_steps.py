"""Every step of the CPU image as a command in a scratch folder: there is no container engine here.

The wheel is built from what the Dockerfile copies, installed into an environment of its own, started with the image's
settings, probed for readiness as the image does, and sent a question.
"""

import json
import os
import shutil
import signal
import site
import socket
import subprocess
import sys
import venv
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.deploy.files import PORT, ROOT, STORE_FOLDER, extras, stage

KEY = "a key of this test"


def copied(folder: Path) -> Path:
    """What the build stage copies, and nothing else."""
    for line in stage("build").all("COPY"):
        *names, target = line.split()
        for name in names:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                folder.mkdir(exist_ok=True)
                shutil.copy(ROOT / name, folder / name)
    return folder


def environment(folder: Path) -> Path:
    """A new environment; gives its Python."""
    venv.EnvBuilder(with_pip=True).create(folder)
    return folder / "bin" / "python"


def run(*command: str | Path, cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextmanager
def serving(python: Path, folder: Path, port: int) -> Generator[dict[str, str]]:
    """The image's command with the image's settings, in a home of its own; gives its environment once it is ready."""
    store = folder / "store"
    store.mkdir()
    said = {name: value.replace(STORE_FOLDER, str(store)) for name, value in stage("cpu").environment.items()}
    said |= {"CAIRN_PORT": str(port), "CAIRN_SERVER_KEY": KEY, "HOME": str(store), "CAIRN_FETCH": "false"}
    said["PATH"] = f"{python.parent}{os.pathsep}{os.defpath}"
    server = subprocess.Popen(stage("cpu").command, cwd=store, env=said, executable=python.parent / "cairn")
    try:
        yield said
    finally:
        server.terminate()
        assert server.wait(30) == -signal.SIGTERM  # it ended on the signal: uvicorn hands the signal on at the end


def becomes_ready(said: dict[str, str], port: int) -> bool:
    """Whether the image's own health check succeeds, repeated as often as an engine would."""
    code = stage("cpu").health_command[-1].replace(f":{PORT}/", f":{port}/")
    retrying = f"import time\nfor n in range(200):\n try:\n  {code}\n  break\n except OSError:\n  time.sleep(0.1)\nelse:\n raise SystemExit(1)"
    return subprocess.run([stage("cpu").health_command[0], "-c", retrying], env=said, check=False).returncode == 0


def answer(port: int) -> dict[str, object]:
    body = {"model": "cairn", "messages": [{"role": "user", "content": "Where was Kredel Portwick born?"}]}
    with httpx2.Client(trust_env=False, timeout=60) as client:
        address = f"http://127.0.0.1:{port}/v1/chat/completions"
        assert client.post(address, json=body).status_code == 401
        return client.post(address, json=body, headers={"authorization": f"Bearer {KEY}"}).json()


def written(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if "__pycache__" not in path.parts}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("index", [False, pytest.param(True, marks=pytest.mark.net)], ids=["beside us", "alone"])
def test_the_steps_of_the_image_end_in_a_server_that_answers(tmp_path: Path, index: bool):
    """`alone` installs what the wheel needs from a package index, `beside us` takes it from this environment."""
    source = copied(tmp_path / "src")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "dist", cwd=source)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    python = environment(tmp_path / "venv")
    if index:
        run(python, "-m", "pip", "install", "--quiet", f"{wheel}[{','.join(extras('build'))}]", cwd=tmp_path)
    else:
        run(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel, cwd=tmp_path)
        (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
        (packages / "beside.pth").write_text("\n".join(site.getsitepackages()), encoding="utf-8")
    before, port = written(tmp_path / "venv"), free_port()
    with serving(python, tmp_path, port) as said:
        assert becomes_ready(said, port)
        made = json.loads(json.dumps(answer(port)))
    assert made["choices"][0]["message"]["content"]
    assert made["usage"]["num_search_queries"] >= 1
    assert written(tmp_path / "venv") == before
    assert (tmp_path / "store" / "cairn.db").exists()
