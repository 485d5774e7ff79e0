import pytest

from agent.evidence import Passage
from agent.loop.agent import Agent
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import protocol_named
from agent.sources.base import SearchRequest, SearchResult
from agent.trace import Answered, Evidenced, Trace
from tests.conftest import ANSWER_TURN, answer
from tests.invariants import violations

SEARCH = "<search>\nA: how long are searches cached\n</search>"
OTHER = Passage(id="f#1", source="corpus", title="Questions › What is a cache?", text="A store of what was found.")
TEXT = "Searches are kept for a day ([Sources](sources.md)). News are kept for 15 minutes.\n\nMore of it."


class Pages:
    def __init__(self, *passages: Passage) -> None:
        self._passages = passages

    async def search(self, request: SearchRequest) -> SearchResult:
        return SearchResult(self._passages)


def page(text: str = TEXT, title: str = "Questions › How long are searches cached?") -> Passage:
    return Passage(id="f#2", source="corpus", title=title, text=text)


def answered(*passages: Passage, question: str, instructed: bool = False) -> Trace:
    policy = ScriptedPolicy([SEARCH, ANSWER_TURN], instructed=instructed)
    sources = {"web": Pages(*passages), "all": Pages(*passages)}
    agent = Agent(policy=policy, protocol=protocol_named("cairn"), sources=sources)
    return answer([], question=question, agent=agent)


def by(trace: Trace) -> str:
    (step,) = (step for step in trace.steps if isinstance(step, Answered))
    return step.by


@pytest.mark.parametrize("question", ["How long are searches cached?", "how long do you cache a search"])
def test_a_section_whose_heading_is_the_question_is_the_answer(question: str):
    trace = answered(OTHER, page(), question=question)
    assert trace.answer == "Searches are kept for a day. News are kept for 15 minutes."
    assert by(trace) == "loop"
    assert violations(trace, protocol_named("cairn")) == []
    (evidence,) = (step for step in trace.steps if isinstance(step, Evidenced))
    assert [(claim.cites, claim.check) for claim in evidence.claims] == [((2,), "verbatim")] * 2


@pytest.mark.parametrize(
    ("heading", "text", "question"),
    [
        ("How do I search my own documents?", "Drop notes or PDFs on the page.", "Can I search my own PDFs?"),
        ("Which port does the server use, and how do I change it?", "Port 8000.", "How do I change the server's port?"),
        ("Does web search need a key?", "It needs one of Tavily.", "Which keys does web search with Tavily need?"),
        ("How do I use LLMs?", "Name an address.", "How can I use an LLM?"),
    ],
)
def test_a_section_that_answers_a_question_like_its_heading_is_the_answer(heading: str, text: str, question: str):
    trace = answered(OTHER, page(text, title=f"Questions › {heading}"), question=question)
    assert (by(trace), trace.answer) == ("loop", text)
    assert violations(trace, protocol_named("cairn")) == []


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Does it need a key?", "No. Web search alone needs one."),
        ("Can I use it without a key?", "Web search alone needs one."),
    ],
)
def test_a_bare_yes_or_no_is_said_to_its_own_question_alone(question: str, said: str):
    section = page("No. Web search alone needs one.", title="Questions › Does it need a key?")
    assert answered(section, question=question).answer == said


def test_of_two_sections_the_one_whose_question_is_more_alike_is_the_answer():
    wide = page("Anything.", title="Questions › How do I delete the runs of a library?")
    trace = answered(wide, page("Press Delete.", title="Questions › How do I delete a run?"), question="delete my run")
    assert trace.answer == "Press Delete."


@pytest.mark.parametrize(
    "question",
    ["Where are searches cached?", "How many searches are cached?", "How long do cookies of the page live?"],
    ids=["another kind of answer", "a number", "other things"],
)
def test_a_section_that_lacks_what_the_question_is_about_is_none(question: str):
    assert by(answered(page(), question=question)) == "policy"


@pytest.mark.parametrize(
    ("passage", "question", "instructed"),
    [
        (page(), "How long are searches cached?", True),
        (page(), "How long are pages cached?", False),
        (page(title="How long are searches cached?"), "How long are searches cached?", False),
        (page("| a | table |"), "How long are searches cached?", False),
        (page("```sh\ncairn\n```"), "How long are searches cached?", False),
    ],
    ids=["a general model reads", "another question", "a page of the web", "a table", "code"],
)
def test_otherwise_the_policy_answers(passage: Passage, question: str, instructed: bool):
    trace = answered(passage, question=question, instructed=instructed)
    assert by(trace) == "policy"
    assert trace.answer == "Frank Herbert"


def test_a_long_section_is_cut_at_a_sentence():
    trace = answered(
        page("A long sentence about the store of searches. " * 30), question="How long are searches cached?"
    )
    assert trace.answer is not None
    assert 300 < len(trace.answer) <= 400
    assert trace.answer.endswith(".")
