"""A headless Chromium for tests, spoken to over a pipe: no driver, no port, no network."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--remote-debugging-pipe",
)
SECONDS = 30.0
"""Any one answer of the browser may take so long."""

Fields = dict[str, Any]


class Page:
    """One tab, opened at a file or an address."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._rest = b""
        self._last = 0
        self._session = ""
        self.requests: list[str] = []
        """Addresses that it requested."""
        self.complaints: list[str] = []
        """What it wrote to its console, errors that nothing caught, and what its policy forbade."""

    def open(
        self,
        place: Path | str,
        *,
        width: int = 1200,
        height: int = 900,
        scheme: str = "light",
        at: str = "",
        ready: str = "!!document.querySelector('#questions .tools')",
    ) -> None:
        """Open a file or an address, and wait until it is whole and `ready`."""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self._call(f"{domain}.enable")
        self.resize(width, height)
        self.prefer(scheme)
        self.requests.clear()
        address = place if isinstance(place, str) else place.resolve().as_uri()
        self._call("Page.navigate", url=address + at)
        self.wait_for(f"document.readyState === 'complete' && ({ready})")

    def resize(self, width: int, height: int) -> None:
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def prefer(self, scheme: str) -> None:
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def js(self, expression: str) -> Any:
        """The value of an expression."""
        found = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise AssertionError(found["exceptionDetails"])
        return found["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Until it is true."""
        until = time.monotonic() + SECONDS
        while not self.js(expression):
            assert time.monotonic() < until, f"this never became true: {expression}"

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            code = {"Enter": 13, "Escape": 27, "Tab": 9}[key]
            self._call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def _call(self, method: str, **parameters: object) -> Fields:
        self._last += 1
        message: Fields = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + SECONDS
        while True:
            answer = self._next(until)
            if answer.get("id") == self._last:
                assert "error" not in answer, f"{method}: {answer.get('error')}"
                return answer["result"]
            self._heard(answer)

    def _next(self, until: float) -> Fields:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            piece = os.read(self._read, 1 << 16)
            assert piece, "the browser ended"
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)

    def _heard(self, event: Fields) -> None:
        method, said = event.get("method", ""), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])
        elif method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
            self.complaints.append(json.dumps(said))
        elif method == "Log.entryAdded":
            self.complaints.append(said["entry"]["text"])


@contextmanager
def browser(folder: Path) -> Generator[Page]:
    """A browser with a profile of its own in `folder`, which ends with the block."""
    theirs_read, ours_write = os.pipe()
    ours_read, theirs_write = os.pipe()
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20) for fd in (theirs_read, theirs_write)]

    def wire() -> None:
        os.dup2(high[0], 3)
        os.dup2(high[1], 4)

    process = subprocess.Popen(
        [CHROMIUM, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        close_fds=False,
        preexec_fn=wire,
        start_new_session=True,
    )
    for fd in (theirs_read, theirs_write, *high):
        os.close(fd)
    try:
        yield Page(ours_write, ours_read)
    finally:
        os.close(ours_write)
        os.close(ours_read)
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
