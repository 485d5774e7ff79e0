"""Runs a search and reports it while it goes on: each step, and a word at least every few seconds of silence."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import perf_counter

from agent.rstool import EvidenceBundle
from agent.trace import Delta, Event
from server.evidence.sentences import step_sentence
from server.evidence.service import Search

logger = logging.getLogger(__name__)

Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Takes how far it is, of how much (unknown), and a sentence."""


async def run_reporting(search: Search, report: Report, *, seconds: float) -> EvidenceBundle:
    """Run a search; cancelling this cancels it.

    Args:
        search: that has not run yet.
        report: is called with numbers that grow by one.
        seconds: the longest silence between two reports.
    """
    said: asyncio.Queue[str] = asyncio.Queue()

    def emit(event: Event) -> None:
        if not isinstance(event, Delta):
            said.put_nowait(step_sentence(event))

    reporter = asyncio.create_task(_report_all(said, report, seconds=seconds))
    try:
        bundle = await search.run(emit)
        with suppress(TimeoutError):  # a client that reads no progress must not hold up the evidence for ever
            async with asyncio.timeout(seconds):
                await said.join()
        return bundle
    finally:
        reporter.cancel()
        await asyncio.gather(reporter, return_exceptions=True)


async def _report_all(said: "asyncio.Queue[str]", report: Report, *, seconds: float) -> None:
    began, number, latest = perf_counter(), 0, "Begins"
    while True:
        new = True
        try:
            async with asyncio.timeout(seconds):
                latest = await said.get()
        except TimeoutError:
            new = False
        number += 1
        try:
            await report(number, None, latest if new else f"{latest} ({perf_counter() - began:.0f} s)")
        except Exception:  # a client that takes no reports is no reason to end the search
            logger.debug("progress could not be reported", exc_info=True)
        if new:
            said.task_done()
