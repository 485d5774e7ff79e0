"""MCP over standard input and output, for clients that start `cairn mcp` themselves. It ends when its client leaves."""

from mcp.server.stdio import stdio_server

from server.chat.service import Service
from server.evidence.service import EvidenceService
from server.http.stream import Runs
from server.mcp.calls import Calls
from server.mcp.jobs import Jobs
from server.runs.manager import memory_run_manager


async def serve_stdio(service: Service) -> None:
    """Answer until standard input ends; then end what still runs, and let go of the service.

    While it serves, whatever else writes to standard output writes to standard error.
    """
    searches = service.run_manager or memory_run_manager()
    evidence = EvidenceService.of(service, enter=service.enter)
    server = Calls(evidence, Jobs(searches), Runs()).server()
    try:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        if service.libraries:
            await service.libraries.aclose()
        await searches.aclose()
        await service.aclose()
