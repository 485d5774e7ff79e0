"""How a process whose output is read through a pipe ends."""

import asyncio
from contextlib import suppress
from typing import Final

_SECONDS: Final = 2.0
"""For what was killed, and for its pipes, to be gone."""
_PART: Final = 1 << 16


async def end(process: asyncio.subprocess.Process) -> None:
    """Kill a process with pipes, and wait until it is gone, also where the caller is cancelled meanwhile.

    A child that holds a pipe open is waited for a moment only.
    """
    with suppress(ProcessLookupError):
        process.kill()
    if process.stdin is not None:
        process.stdin.close()
    waiting = asyncio.ensure_future(_gone(process))
    try:
        await asyncio.shield(waiting)
    except asyncio.CancelledError:
        await waiting
        raise


async def _gone(process: asyncio.subprocess.Process) -> None:
    """Read and drop what is left of its output, and wait: with output that nothing reads, asyncio waits for ever."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS):
            with suppress(RuntimeError):  # something still reads from it
                while process.stdout is not None and await process.stdout.read(_PART):
                    pass
            await process.wait()
