"""Starting: the socket, who may ask, the command in a process of its own."""

import ctypes
import gc
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from pydantic import SecretStr, ValidationError

from agent.errors import SetupError
from agent.settings import CairnSettings
from server.auth.middleware import LOOPBACK
from server.launch import address_of, bind, rules_of, run
from tests import model_servers
from tests.agent.sources.live.apiserver import Reply

ENGINE = Path(__file__).parent.parent / "fixtures" / "engine"


def test_a_port_in_use_is_a_sentence_with_a_hint() -> None:
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SetupError, match=f"port {port} on 127.0.0.1 cannot be used .* --port"):
            bind("127.0.0.1", port)


def test_a_host_that_is_none_of_ours_is_a_sentence() -> None:
    with pytest.raises(SetupError, match="--host"):
        bind("no such host", 0)


def test_the_address_is_one_that_a_browser_can_open() -> None:
    with bind("0.0.0.0", 0) as listener:
        assert address_of(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_the_new_protocol_is_served_too() -> None:
    try:
        listener = bind("::1", 0)
    except SetupError:
        pytest.skip("this machine has no IPv6 loopback")
    with listener:
        assert address_of(listener).startswith("http://[::1]:")


def test_other_machines_are_served_with_a_key_or_when_allowed() -> None:
    with pytest.raises(SetupError, match=r"CAIRN_SERVER_KEY.*--insecure"):
        rules_of(CairnSettings(host="0.0.0.0"))
    assert rules_of(CairnSettings(host="0.0.0.0", insecure=True)).hosts is None
    keyed = rules_of(CairnSettings(host="0.0.0.0", server_key=SecretStr("k")))
    assert keyed.key == SecretStr("k")
    assert rules_of(CairnSettings()).hosts == LOOPBACK


def test_a_key_of_the_server_is_one_that_clients_can_send() -> None:
    assert CairnSettings(server_key=SecretStr("s3cret\n")).server_key == SecretStr("s3cret")
    assert CairnSettings(server_key=SecretStr("")).server_key == SecretStr("")
    for wrong in (" ", "\n", "schlüssel", "two\nlines"):
        with pytest.raises(ValidationError, match="clients must be able to send it") as error:
            CairnSettings(server_key=SecretStr(wrong))
        assert wrong.strip() == "" or wrong not in str(error.value)


def start_with(ports: dict[int, str], *options: str) -> tuple[list[str], str]:
    """What `cairn serve` prints until its curl line, on a machine with these ports, and what after Ctrl-C."""
    code = (
        "import sys\n"
        "from agent.cli import run\n"
        "import agent.policies.local_servers\n"
        f"agent.policies.local_servers.PORTS = {ports}\n"
        f"sys.exit(run(['serve', '--port', '0', *{options}]))\n"
    )
    with subprocess.Popen([sys.executable, "-P", "-c", code], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        lines: list[str] = []
        for line in server.stderr:
            lines.append(line)
            if "curl" in line:
                break
        server.send_signal(signal.SIGINT)
        rest = server.stderr.read()
        assert server.wait(timeout=20) == 130, rest
    return lines, rest


def test_the_command_serves_until_ctrl_c_and_names_the_model_servers_that_answer() -> None:
    with (
        model_servers.in_thread(model_servers.ollama("qwen3:8b", "two words")) as port,
        model_servers.in_thread({"*": Reply(how="hang")}) as silent,
    ):
        lines, rest = start_with({port: "Ollama", silent: "LM Studio"})
    assert "answers at http://127.0.0.1:" in lines[0]
    assert "curl -N http://127.0.0.1:" in lines[-1]
    found = [line.strip() for line in lines if "runs on this machine" in line]
    command = f"cairn serve --base-url http://127.0.0.1:{port}/v1 --model qwen3:8b"
    assert found == [f"Ollama runs on this machine: {command}"]
    assert "Traceback" not in rest


def test_a_start_looks_for_no_model_where_one_is_named() -> None:
    with model_servers.in_thread(model_servers.ollama("qwen3:8b")) as port:
        lines, _ = start_with({port: "Ollama"}, "--checkpoint", str(ENGINE))
    assert lines
    assert not [line for line in lines if "runs on this machine" in line]


def test_alone_retrieval_starts_light_looks_for_no_model_and_ends_with_ctrl_c() -> None:
    with model_servers.in_thread(model_servers.ollama("qwen3:8b")) as port:
        code = (
            "import sys\n"
            "from agent.cli import run\n"
            "import agent.policies.local_servers\n"
            f"agent.policies.local_servers.PORTS = {{{port}: 'Ollama'}}\n"
            "status = run(['serve', '--retrieval-only', '--port', '0'])\n"
            "heavy = {'torch', 'openai', 'ctranslate2', 'transformers', 'sentence_transformers', 'faiss'} & set(sys.modules)\n"
            "sys.exit(f'it imported {heavy}' if heavy else status)\n"
        )
        with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            first = server.stderr.readline()
            assert "retrieves at http://127.0.0.1:" in first
            address = first.split()[3]
            banner = [server.stderr.readline() for _ in range(4)]
            assert any(f"curl {address}" in line for line in banner)
            found = httpx2.post(address, json={"queries": ["who"]}, trust_env=False).json()
            server.send_signal(signal.SIGINT)
            rest = server.stderr.read()
            assert server.wait(timeout=20) == 130, rest
    assert len(found["result"]) == 1
    assert "runs on this machine" not in "".join((*banner, rest))


def test_what_was_loaded_at_the_start_is_no_longer_looked_through_for_cycles() -> None:
    class Looking:
        frozen = 0

        async def serve(self, sockets: list[socket.socket] | None = None) -> None:
            self.frozen = gc.get_freeze_count()

    before, looking = gc.get_threshold(), Looking()
    gc.unfreeze()  # the heap of the tests; it is frozen again by the server's start
    gc.set_threshold(700, 10, 10)  # Python's own
    try:
        with bind("127.0.0.1", 0) as listener:
            run(looking, listener)
        assert looking.frozen > 100_000
        assert gc.get_threshold()[0] > 700
    finally:
        gc.set_threshold(*before)


ARENAS = """
import ctypes, socket, sys, threading
from server import launch

class Threads:
    async def serve(self, sockets):
        libc = ctypes.CDLL(None)
        libc.malloc.restype = ctypes.c_void_p
        together = threading.Barrier(4)
        def allocate():
            libc.malloc(100_000)
            together.wait(30)
        threads = [threading.Thread(target=allocate) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        libc.fopen.restype = ctypes.c_void_p
        libc.malloc_info(0, out := ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w")))
        libc.fclose(out)

launch.run(Threads(), None)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="only glibc has arenas")
def test_all_threads_take_their_memory_from_one_arena(tmp_path: Path) -> None:
    report = tmp_path / "arenas.xml"
    subprocess.run([sys.executable, "-c", ARENAS, str(report)], check=True, timeout=60)
    assert report.read_text(encoding="utf-8").count("<heap ") == 1
