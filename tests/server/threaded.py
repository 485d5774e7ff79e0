"""A real server in a thread of its own, for clients that block or are other programs."""

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager

from server.auth.middleware import Rules
from server.chat.service import Service
from server.launch import address_of, bind, make_server


@contextmanager
def in_thread(service: Service, rules: Rules | None = None) -> Generator[str]:
    """Its address, while it runs."""
    listener = bind("127.0.0.1", 0)
    server = make_server(service, rules)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    try:
        yield address_of(listener)
    finally:
        server.should_exit = True
        thread.join()
