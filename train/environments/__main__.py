"""The process of an environment: requests on standard input, replies on standard output, one JSON object a line.

    first     {"settings": {…}}                      {"tasks": [{"question": …, "answers": […]}, …], "stops": […]}
    then      {"id": 1, "run": {"task": 0, "base_url": …, "model": …, "api_key": …}}      {"id": 1, "result": {…}}
              {"cancel": 1}                                                          nothing comes for 1 any more

What cannot be used is answered with `error`, one sentence. Rollouts run side by side. The end of the input ends them
all and the process, so none is left behind where the trainer is gone.
"""

import asyncio
import json
import os
import sys
from typing import Any, BinaryIO, Final, TextIO

from agent.errors import AgentError
from train.environments.rollouts import Environment, ModelEndpoint
from train.environments.settings import read_settings

_LINE_BYTES: Final = 16 * 1024 * 1024
"""Of a request."""


class Replies:
    """Rollouts in work, and where their replies go."""

    def __init__(self, environment: Environment, out: TextIO) -> None:
        self._environment = environment
        self._out = out
        self._running: dict[int, asyncio.Task[None]] = {}

    def take(self, request: dict[str, Any]) -> None:
        """Begin a rollout, or cancel one."""
        if "cancel" in request:
            if running := self._running.get(request["cancel"]):
                running.cancel()
            return
        number: int = request["id"]
        self._running[number] = asyncio.create_task(self._run(number, request["run"]))
        self._running[number].add_done_callback(lambda _: self._running.pop(number))

    async def end(self) -> None:
        """Cancel what still runs, and wait for it."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, number: int, run: dict[str, Any]) -> None:
        try:
            result = await self._environment.run(run.pop("task"), ModelEndpoint(**run))
        except AgentError as error:
            write(self._out, {"id": number, "error": str(error)})
        except Exception as error:  # noqa: BLE001 - it fails this rollout, and no other one
            write(self._out, {"id": number, "error": f"{type(error).__name__}: {error}"})
        else:
            write(self._out, {"id": number, "result": result})


def write(out: TextIO, reply: dict[str, Any]) -> None:
    """Send one reply."""
    out.write(json.dumps(reply) + "\n")
    out.flush()


async def serve(source: BinaryIO, out: TextIO) -> None:
    """Answer requests until the source ends.

    Args:
        source: a pipe.
        out: for the replies alone.
    """
    reader = asyncio.StreamReader(limit=_LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    first = await reader.readline()
    if not first:
        return
    try:
        environment = Environment(read_settings(json.loads(first)["settings"]))
        tasks = [{"question": task.question, "answers": list(task.answers)} for task in environment.tasks]
    except AgentError as error:
        write(out, {"error": str(error)})
        return
    write(out, {"tasks": tasks, "stops": list(environment.protocol.stop_texts)})
    replies = Replies(environment, out)
    while line := await reader.readline():
        replies.take(json.loads(line))
    await replies.end()
    await environment.aclose()


def main() -> None:
    """Keep standard output for the replies: what libraries print goes to standard error."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        asyncio.run(serve(sys.stdin.buffer, out))


if __name__ == "__main__":
    main()
