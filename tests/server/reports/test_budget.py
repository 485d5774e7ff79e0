"""What a report may use, by its request."""

from dataclasses import replace

from tests.server.reports.test_routes import REQUEST, client_of, run, service_of


def test_a_request_lowers_the_budget_and_never_raises_it():
    async def test() -> None:
        service = service_of()
        service = replace(service, agent=replace(service.agent, budgets=replace(service.agent.budgets, credits=5.0)))
        async with client_of(service) as client:
            low = {"searches": 2, "seconds": 5.0, "credits": 1.0}
            high = {"searches": 10**9, "seconds": 10**9, "credits": 10**9, "tokens": 10**9}
            for wanted, most in ((low, low), (high, {"seconds": 1800.0, "credits": 5.0, "searches": 384})):
                reply = (await client.post("/v1/reports", json=REQUEST | {"budget": wanted})).json()
                assert {name: reply["report"]["budget"][name] for name in most} == most

    run(test())


def test_effort_scales_what_a_report_and_its_runs_may_use():
    async def test() -> None:
        async with client_of(service_of()) as client:
            for effort, searches, seconds in (("low", 24, 150.0), ("medium", 48, 300.0), ("high", 96, 600.0)):
                reply = (await client.post("/v1/reports", json=REQUEST | {"reasoning_effort": effort})).json()
                budget = reply["report"]["budget"]
                assert (budget["searches"], budget["seconds"]) == (searches, seconds)
            said = {"reasoning_effort": "low", "budget": {"searches": 40}}
            budget = (await client.post("/v1/reports", json=REQUEST | said)).json()["report"]["budget"]
            assert (budget["searches"], budget["seconds"]) == (40, 150.0)

    run(test())
