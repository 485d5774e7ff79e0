import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr

from agent.errors import SetupError
from agent.outbound.retries import BATCH
from tests.train.evaluation.far import AgentRequest, FarAgent, Given, Says, chat, deltas, far_agent
from train.evaluation.answer import AgentAnswer
from train.evaluation.cited import Passages
from train.evaluation.endpoint import Endpoint, EndpointOptions
from train.evaluation.extract import INSTRUCTION
from train.evaluation.questions import GoldQuestion
from train.evaluation.respondents import AskFailed
from train.evaluation.result import Failure

DUNE = GoldQuestion(id="q", question="Who wrote Dune?", answers=("Frank Herbert",))
SECRET = "sk-very-secret-0123456789"


def ask(agent: FarAgent, question: GoldQuestion = DUNE, waits: list[float] | None = None, **how: Any) -> AgentAnswer:
    """Ask once, bounded in time; waits between tries are noted and not waited."""
    noted = [] if waits is None else waits

    async def sleep(seconds: float) -> None:
        noted.append(seconds)

    async def run() -> AgentAnswer:
        where = EndpointOptions(url=agent.url, model="m", key=SecretStr(SECRET), **how)
        async with asyncio.timeout(20), Endpoint(where, passages=Passages({}), sleep=sleep) as endpoint:
            return await endpoint.ask(question)

    return asyncio.run(run())


def in_turn(*given: Given) -> Says:
    """The first try gets the first, and so on; further ones get the last."""
    return lambda request: given[min(request.times, len(given)) - 1]


def failed(status: int, **headers: str) -> Given:
    return Given({"error": {"message": "busy", "code": "x"}}, status=status, headers=headers)


def test_a_whole_answer_is_read_with_what_it_cites_and_costs():
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "num_search_queries": 2, "cost": {"total_cost": 0.25}}
    given = chat("Herbert wrote it [1].\n<answer>Frank Herbert</answer>", usage=usage, citations=["https://a.b/c"])
    with far_agent(in_turn(given)) as agent:
        answer = ask(agent, stream=False)
        assert "stream" not in agent.requests[0].body
    assert (answer.text, answer.tries, answer.first_token) == ("Frank Herbert", 1, None)
    assert (answer.prompt_tokens, answer.completion_tokens, answer.searches, answer.usd) == (7, 5, 2, 0.25)
    assert [citation.url for citation in answer.citations] == ["https://a.b/c"]
    assert answer.seconds > 0


def test_a_stream_is_the_same_as_the_whole_and_reports_when_its_first_token_came():
    pieces = (
        {"role": "assistant", "content": ""},
        {"reasoning_content": "Hm."},
        {"content": "Frank "},
        {"content": "H"},
    )
    events = deltas(*pieces, usage={"completion_tokens": 3})
    with far_agent(in_turn(Given(events=events))) as agent:
        answer = ask(agent)
        assert agent.requests[0].body["stream_options"] == {"include_usage": True}
    assert (answer.text, answer.completion_tokens) == ("Frank H", 3)
    assert answer.first_token is not None
    assert 0 < answer.first_token <= answer.seconds


@pytest.mark.parametrize("name", ["citations", "search_results"])
def test_what_is_cited_may_stand_in_the_message_too(name: str):
    message = {"content": "Herbert [1]", name: [{"url": "https://a.b/c"}]}
    whole = Given({"choices": [{"message": message, "finish_reason": "stop"}]})
    for given in (whole, Given(events=deltas(message))):
        with far_agent(in_turn(given)) as agent:
            assert [citation.url for citation in ask(agent).citations] == ["https://a.b/c"]


def test_a_server_that_does_not_stream_may_answer_whole():
    with far_agent(in_turn(chat("Herbert"))) as agent:
        assert ask(agent, stream=True).text == "Herbert"


def test_the_question_goes_with_its_earlier_turns_and_the_instruction():
    follow_up = GoldQuestion(id="q", question="And when?", answers=("1965",), history=(("Who wrote Dune?", "Herbert"),))
    with far_agent(in_turn(chat("1965"))) as agent:
        ask(agent, follow_up, temperature=0.5)
        ask(agent, follow_up, plain=True)
        instructed, plain = (request.body for request in agent.requests)
    turns = [
        {"role": "user", "content": "Who wrote Dune?"},
        {"role": "assistant", "content": "Herbert"},
        {"role": "user", "content": "And when?"},
    ]
    assert instructed["messages"] == [{"role": "system", "content": INSTRUCTION}, *turns]
    assert plain["messages"] == turns
    assert (instructed["model"], instructed["temperature"]) == ("m", 0.5)
    assert "temperature" not in plain


def test_the_key_goes_into_the_header_and_into_no_description():
    where = EndpointOptions(url="http://127.0.0.1:1/v1", model="m", key=SecretStr(SECRET))
    assert SECRET not in repr(where)
    assert SECRET not in str(where.described())
    with far_agent(in_turn(chat("x"))) as agent:
        ask(agent)
        assert agent.requests[0].headers["authorization"] == f"Bearer {SECRET}"
        assert SECRET not in str(agent.requests[0].body)


@pytest.mark.parametrize("stream", [True, False])
def test_the_responses_interface_is_read_too(stream: bool):
    part = {
        "type": "output_text",
        "text": "Herbert ([a](https://a.b/c)). Answer: Frank Herbert",
        "annotations": [
            {"type": "url_citation", "url": "https://a.b/c", "title": "A", "start_index": 0, "end_index": 1}
        ],
    }
    output = [{"type": "reasoning"}, {"type": "web_search_call"}, {"type": "message", "content": [part]}]
    whole = {
        "object": "response",
        "status": "completed",
        "output": output,
        "usage": {"input_tokens": 7, "output_tokens": 5},
    }
    delta = {"type": "response.output_text.delta", "delta": "Herb"}
    events: list[Any] = [{"type": "response.created", "response": {"status": "in_progress", "output": []}}, delta]
    given = Given(events=[*events, {"type": "response.completed", "response": whole}]) if stream else Given(whole)
    with far_agent(in_turn(given)) as agent:
        answer = ask(agent, api="responses", stream=stream)
        request = agent.requests[0]
    assert request.path == "/v1/responses"
    assert (request.body["instructions"], request.body["input"]) == (
        INSTRUCTION,
        [{"role": "user", "content": DUNE.question}],
    )
    assert answer.said == part["text"]
    assert (answer.prompt_tokens, answer.completion_tokens, answer.searches) == (7, 5, 1)
    assert [(citation.url, citation.title) for citation in answer.citations] == [("https://a.b/c", "A")]
    assert (answer.first_token is not None) == stream


@pytest.mark.parametrize("given", [failed(500), failed(503), failed(429), failed(408), Given(events=[], breaks=True)])
def test_what_may_heal_is_tried_again_and_then_no_failure(given: Given):
    waits: list[float] = []
    says = (
        in_turn(given, chat("Herbert"))
        if given.events is None
        else in_turn(Given(events=deltas({"content": "He"})[:1], breaks=True), chat("Herbert"))
    )
    with far_agent(says) as agent:
        answer = ask(agent, waits=waits)
    assert (answer.text, answer.tries) == ("Herbert", 2)
    assert len(waits) == 1
    assert 0.4 < waits[0] < 2


@pytest.mark.parametrize(
    ("status", "kind", "tries"),
    [(500, "server", 3), (429, "rate", 3), (408, "timeout", 3), (400, "refused", 1), (403, "refused", 1)],
)
def test_a_status_that_stays_is_a_failure_of_its_kind(status: int, kind: Failure, tries: int):
    with far_agent(in_turn(failed(status))) as agent, pytest.raises(AskFailed, match=str(status)) as caught:
        ask(agent)
    assert caught.value.kind == kind
    assert ("busy" in str(caught.value)) == (status != 403), "what is said of a refused key may quote it"
    assert len(agent.requests) == tries


@pytest.mark.parametrize(("said", "waited"), [("7", 7.0), ("100000", BATCH.longest_wait), ("0", 0.0)])
def test_a_server_is_left_alone_for_as_long_as_it_asks_but_not_for_ever(said: str, waited: float):
    waits: list[float] = []
    with far_agent(in_turn(failed(429, **{"retry-after": said}), chat("x"))) as agent:
        ask(agent, waits=waits)
    assert waits == [waited]


def test_the_usual_waits_grow():
    waits: list[float] = []
    with far_agent(in_turn(failed(500))) as agent, pytest.raises(AskFailed, match="tried 5 times"):
        ask(agent, waits=waits, tries=5)
    assert len(waits) == 4
    assert all(2**n * 0.5 <= wait <= 2**n * 1.5 for n, wait in enumerate(waits))


@pytest.mark.parametrize(("status", "why"), [(401, "--api-key-env"), (402, "balance"), (404, "name another --model")])
def test_what_would_fail_every_question_ends_the_run_and_quotes_no_key(status: int, why: str):
    given = Given({"error": {"message": f"no such key: {SECRET}"}}, status=status)
    with far_agent(in_turn(given)) as agent, pytest.raises(SetupError, match=why) as caught:
        ask(agent)
    assert SECRET not in str(caught.value)
    assert len(agent.requests) == 1


def test_a_parameter_that_the_server_does_not_take_is_left_out():
    def says(request: AgentRequest) -> Given:
        for name in ("temperature", "stream_options"):
            if name in request.body:
                return Given({"error": {"message": f"Unsupported parameter: '{name}'"}}, status=400)
        return chat("Herbert")

    with far_agent(says) as agent:
        answer = ask(agent, temperature=0.5)
        assert len(agent.requests) == 3
    assert (answer.text, answer.tries) == ("Herbert", 1)


MALFORMED: list[Given] = [
    Given("<html>hello</html>", headers={"content-type": "text/html"}),
    Given({"object": "list"}),
    Given([1]),
    Given(events=[{"object": "x"}]),
]


@pytest.mark.parametrize("given", MALFORMED)
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_what_is_no_answer_of_the_interface_is_malformed_and_not_wrong(given: Given, api: str):
    with far_agent(in_turn(given)) as agent, pytest.raises(AskFailed) as caught:
        ask(agent, api=api)
    assert caught.value.kind == "malformed"
    assert len(agent.requests) == 1


def test_an_empty_answer_is_an_answer():
    with far_agent(in_turn(chat(""))) as agent:
        assert ask(agent).text == ""


ERRORS: list[tuple[Any, Failure]] = [
    ({"type": "server_error", "message": "oh"}, "server"),
    ({"type": "rate_limit_exceeded", "message": "oh"}, "rate"),
    ("oh", "server"),
]


@pytest.mark.parametrize(("error", "kind"), ERRORS)
def test_an_error_in_the_middle_of_a_stream_is_a_failure(error: Any, kind: Failure):
    given = Given(events=[*deltas({"content": "Fra"})[:1], {"error": error}])
    with far_agent(in_turn(given)) as agent, pytest.raises(AskFailed, match="oh") as caught:
        ask(agent, tries=1)
    assert caught.value.kind == kind


def test_a_stream_that_breaks_off_is_no_short_answer():
    given = Given(events=deltas({"content": "Frank"})[:1], breaks=True)
    with far_agent(in_turn(given)) as agent, pytest.raises(AskFailed, match="broke off") as caught:
        ask(agent, tries=1)
    assert caught.value.kind == "connection"


def test_an_answer_without_end_is_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("train.evaluation.endpoint.MOST_CHARS", 100)
    given = Given(events=deltas(*({"content": "la "} for _ in range(50))))
    with far_agent(in_turn(given)) as agent, pytest.raises(AskFailed, match="longer than 100 characters") as caught:
        ask(agent)
    assert caught.value.kind == "malformed"


def test_a_content_filter_is_a_refusal():
    choice = {"message": {"content": "I"}, "finish_reason": "content_filter"}
    with far_agent(in_turn(Given({"choices": [choice]}))) as agent, pytest.raises(AskFailed) as caught:
        ask(agent)
    assert caught.value.kind == "refused"


def test_no_server_is_no_connection():
    with far_agent(in_turn(chat("x"))) as agent:
        pass
    with pytest.raises(AskFailed, match="no server at http://127") as caught:
        ask(agent, tries=2)
    assert caught.value.kind == "connection"


def test_silence_is_a_timeout(hanging: Callable[[AgentRequest], Given]):
    with far_agent(hanging) as agent, pytest.raises(AskFailed, match=r"0\.05 seconds") as caught:
        ask(agent, seconds=0.05, tries=2)
    assert caught.value.kind == "timeout"


@pytest.fixture
def hanging() -> Any:
    import threading

    let_go = threading.Event()

    def says(request: AgentRequest) -> Given:
        let_go.wait(10)
        return chat("late")

    yield says
    let_go.set()


@pytest.mark.parametrize(
    ("url", "model", "why"), [("localhost:8000", "m", "not the address"), ("http://x/v1", "", "--model")]
)
def test_what_cannot_be_reached_is_said_before(url: str, model: str, why: str):
    with pytest.raises(SetupError, match=why):
        EndpointOptions(url=url, model=model)
