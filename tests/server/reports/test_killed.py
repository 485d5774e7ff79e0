"""A server that is killed leaves its reports as interrupted, with the sections that were stored."""

import asyncio

import httpx2
import pytest

from agent.report import Report
from tests.server.runs.replicas import client_of, keeping_service
from tests.server.runs.test_killed import slow_server

QUESTION = {"question": "Where was the director of Aurora Falls born?", "most_sections": 2}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_after_a_kill_a_report_is_interrupted_and_not_said_to_be_running(location: str):
    if location == "memory":
        pytest.skip("it ends with the process")

    async def main() -> tuple[str, Report]:
        with slow_server(location) as (process, address):
            async with httpx2.AsyncClient(base_url=address, timeout=60, trust_env=False) as client:
                id = (await client.post("/api/reports", json=QUESTION)).json()["id"]
                async with client.stream("GET", f"/api/reports/{id}/events") as response:
                    async for line in response.aiter_lines():
                        if line == "event: section_started":
                            break
                process.kill()
        async with client_of(keeping_service(location, lease_seconds=1.0)) as client:
            seen = await client.get(f"/api/reports/{id}/events", timeout=30)
            assert "event: end" in seen.text
            detail = (await client.get(f"/api/reports/{id}")).json()
            assert (await client.get("/api/reports")).json()["reports"][0]["state"] == detail["state"]
            return detail["state"], Report.model_validate(detail["report"])

    state, report = asyncio.run(main())
    assert (state, report.state) == ("interrupted", "interrupted")
    assert not {"running", "waiting"} & {section.state for section in report.sections}
