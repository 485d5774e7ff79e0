"""An MCP server on standard streams that is written by hand, to break the protocol: `python raw_server.py MODE`."""

import json
import subprocess
import sys
import time
from typing import Any

MODE = sys.argv[1]
TOOL = {"name": "search", "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}}}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def called() -> dict[str, Any]:
    if MODE == "flood":
        while True:
            sys.stdout.write("x" * 65_536)
    if MODE == "flood-messages":
        while True:
            say({"method": "notifications/message", "params": {"level": "info", "data": "x" * 1_000}})
    if MODE == "close":
        sys.exit(0)
    if MODE == "shape":
        return {"content": [{"type": "song", "notes": 3}]}
    if MODE == "nested":
        return {"content": [{"type": "text", "text": "[" * 100_000}]}
    return {"content": [{"type": "text", "text": f"answered by {MODE}"}]}


def answer(method: str) -> dict[str, Any] | None:
    match method:
        case "initialize":
            version: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            return {**version, "serverInfo": {"name": "raw", "version": "1"}}
        case "tools/list":
            pages = {"nextCursor": "again"} if MODE == "pages" else {}
            return {"tools": [] if MODE == "no-tools" else [TOOL], **pages}
        case "tools/call":
            return called()
        case _:
            return None


def serve() -> None:
    if MODE == "end":
        sys.stderr.write("Traceback …\nModuleNotFoundError: No module named 'papers'\n")
        sys.exit(3)
    if MODE == "silent":
        time.sleep(3600)
    if MODE == "banner-only":
        sys.stdout.write("Welcome to the server!\n")
        sys.stdout.flush()
        time.sleep(3600)
    if MODE == "stubborn":  # it and its child outlive their input and a request to end
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        sys.stderr.write(f"child {child.pid}\n")
        sys.stderr.flush()
    if MODE == "banner":
        sys.stdout.write("Welcome to the server!\n\xff\n{}\n[]\n")
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            result = answer(request["method"])
            missing = {"error": {"code": -32601, "message": "no such method"}}
            say({"id": request["id"], **({"result": result} if result is not None else missing)})
    if MODE == "stubborn":
        time.sleep(3600)


serve()
