"""A hub on 127.0.0.1, as huggingface_hub calls one to make a repository and to upload files.

Tokens, owners and privacy, the check of a card's metadata, which files are large, the LFS batch with its uploads and
their check, commits of lines of JSON: each refuses what the public hub refuses, with its status and its error code.
"""

import base64
import hashlib
import json
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

TOKENS: Final = {"hf_ada": ("ada", True), "hf_reads": ("ada", False), "hf_bob": ("bob", True)}
"""Token → whose it is, and whether it may write."""
LARGE: Final = (".safetensors", ".bin")


class Refusal(Exception):
    """An answer that is none: its status, the error code in its header, and what it says."""

    def __init__(self, status: int, says: str, code: str = "") -> None:
        super().__init__(says)
        self.status = status
        self.code = code


@dataclass
class Repository:
    private: bool
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    commits: list[str] = field(default_factory=list[str])
    """Their messages."""

    @property
    def head(self) -> str:
        return hashlib.sha1(str(len(self.commits)).encode()).hexdigest()


@dataclass
class Hub:
    """Its repositories, and the requests that it got."""

    repositories: dict[str, Repository] = field(default_factory=dict[str, Repository])
    large: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """SHA-256 → content."""
    requests: list[str] = field(default_factory=list[str])
    full: bool = False
    """No room is left for large files."""
    url: str = ""

    def post(self, path: str, body: bytes, token: str) -> Any:
        who, writes = TOKENS.get(token, ("", False))
        if token and not who:
            raise Refusal(401, "Invalid credentials in Authorization header")
        match path.strip("/").split("/"):
            case ["api", "repos", "create"]:
                return self._create(json.loads(body), who, writes)
            case ["api", "validate-yaml"]:
                return _check_card(json.loads(body)["content"])
            case ["api", "models", owner, name, "preupload", _]:
                return self._modes(self._of(f"{owner}/{name}", who, writes), json.loads(body)["files"])
            case ["api", "models", owner, name, "commit", "main"]:
                return self._commit(f"{owner}/{name}", self._of(f"{owner}/{name}", who, writes), body)
            case [owner, name, "info", "lfs", "objects", "batch"] if name.endswith(".git"):
                self._of(f"{owner}/{name.removesuffix('.git')}", who, writes)
                return self._batch(json.loads(body))
            case ["lfs", "verify"]:
                return self._verify(json.loads(body))
            case _:
                raise Refusal(404, f"there is no {path}")

    def put(self, path: str, body: bytes) -> Any:
        """A large file, at the address that the batch gave."""
        oid = path.removeprefix("/lfs/")
        if hashlib.sha256(body).hexdigest() != oid:
            raise Refusal(400, "the content is not what was announced")
        self.large[oid] = body
        return {}

    def get(self, path: str, token: str) -> Any:
        """What a repository is."""
        match path.strip("/").split("/"):
            case ["api", "models", owner, name, *_]:
                repository = self._of(f"{owner}/{name}", TOKENS.get(token, ("", False))[0], True)
                return {"id": f"{owner}/{name}", "sha": repository.head, "siblings": [], "tags": [], "private": False}
            case _:
                raise Refusal(404, f"there is no {path}")

    def _create(self, request: Mapping[str, Any], who: str, writes: bool) -> Any:
        owner = request["organization"] or who
        name = f"{owner}/{request['name']}"
        if owner != who or not writes:
            raise Refusal(403, f"You don't have the rights to create a model under the namespace {owner!r}")
        if name in self.repositories:
            raise Refusal(409, "You already created this model repo")
        self.repositories[name] = Repository(private=request.get("visibility") == "private")
        return {"url": f"{self.url}/{name}", "name": name}

    def _of(self, name: str, who: str, writes: bool) -> Repository:
        repository = self.repositories.get(name)
        mine = name.startswith(f"{who}/")
        if repository is None or (repository.private and not mine):
            raise Refusal(404, "Repository not found", "RepoNotFound")
        if not (mine and writes):
            raise Refusal(403, "Forbidden: pass a token with write access")
        return repository

    def _modes(self, repository: Repository, files: list[Mapping[str, Any]]) -> Any:
        answers: list[dict[str, Any]] = []
        for file in files:
            base64.b64decode(file["sample"], validate=True)
            large = str(file["path"]).endswith(LARGE)
            there = repository.files.get(file["path"])
            oid = None if there is None else hashlib.sha256(there).hexdigest() if large else _git_hash(there)
            mode = "lfs" if large else "regular"
            answers.append({"path": file["path"], "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        return {"files": answers}

    def _batch(self, request: Mapping[str, Any]) -> Any:
        assert request["operation"] == "upload"
        assert request["hash_algo"] == "sha256"
        answers: list[dict[str, Any]] = []
        for wanted in request["objects"]:
            one = {"oid": wanted["oid"], "size": wanted["size"]}
            if self.full:
                one["error"] = {"code": 507, "message": "no room is left"}
            elif wanted["oid"] not in self.large:
                upload = {"href": f"{self.url}/lfs/{wanted['oid']}"}
                one["actions"] = {"upload": upload, "verify": {"href": f"{self.url}/lfs/verify"}}
            answers.append(one)
        return {"transfer": "basic", "objects": answers}

    def _verify(self, request: Mapping[str, Any]) -> Any:
        if len(self.large.get(request["oid"], b"")) != request["size"]:
            raise Refusal(400, "the file did not arrive")
        return {}

    def _commit(self, name: str, repository: Repository, body: bytes) -> Any:
        header, *lines = [json.loads(line) for line in body.splitlines()]
        assert header["key"] == "header"
        files: dict[str, bytes] = {}
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"], validate=True)
            elif value["oid"] in self.large:
                files[value["path"]] = self.large[value["oid"]]
            else:
                raise Refusal(400, f"{value['path']} was never uploaded")
        repository.files |= files
        repository.commits.append(header["value"]["summary"])
        url = f"{self.url}/{name}/commit/{repository.head}"
        return {"success": True, "commitUrl": url, "commitOid": repository.head, "pullRequestUrl": None}


def _check_card(content: str) -> Any:
    """What the hub wants in front of a card: lines of metadata between two lines of hyphens."""
    opened, _, rest = content.partition("---\n")
    metadata, closed, _ = rest.partition("---\n")
    if opened or not closed:
        return {"errors": [], "warnings": [{"message": "empty or missing yaml metadata in repo card"}]}
    lines = [line for line in metadata.splitlines() if line and not line.startswith(("- ", "  "))]
    if any(":" not in line for line in lines):
        raise Refusal(400, "the metadata is no YAML")
    return {"errors": [], "warnings": []}


def _git_hash(content: bytes) -> str:
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        self._answer(lambda body, token: self.server.hub.post(self.path.partition("?")[0], body, token))

    def do_PUT(self) -> None:
        self._answer(lambda body, _: self.server.hub.put(self.path, body))

    def do_GET(self) -> None:
        self._answer(lambda _, token: self.server.hub.get(self.path.partition("?")[0], token))

    def _answer(self, give: Callable[[bytes, str], Any]) -> None:
        body = self._body()
        self.server.hub.requests.append(f"{self.command} {self.path}")
        token = self.headers.get("authorization", "").removeprefix("Bearer ")
        try:
            status, said, headers = 200, give(body, token), {}
        except Refusal as refusal:
            status, said = refusal.status, {"error": str(refusal), "errors": [{"message": str(refusal)}]}
            headers = {"X-Error-Message": str(refusal)} | ({"X-Error-Code": refusal.code} if refusal.code else {})
        content = json.dumps(said).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        parts: list[bytes] = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hub: Hub) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hub = hub
        hub.url = f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def running() -> Generator[Hub]:
    """A hub, while it runs."""
    with _Server(Hub()) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server.hub
        finally:
            server.shutdown()
            thread.join()
