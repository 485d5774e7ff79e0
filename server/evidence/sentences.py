"""A step as one short sentence for a person who waits. What strangers or the policy wrote is sanitized and cut.

`agent.cli.draw` shows the same steps in a terminal, as blocks that move: nothing but the kinds of steps is common.
"""

from typing import Final, assert_never

from agent.rstool.prompt import one_line
from agent.trace import (
    Answered,
    Evidenced,
    Filled,
    Gathered,
    Merged,
    Planned,
    PlanRejected,
    Reflected,
    Restated,
    Searched,
    SearchFailed,
    Skipped,
    Step,
    Stopped,
    Thought,
)

_MOST: Final = 160


def step_sentence(step: Step) -> str:
    """The sentence, without a full stop."""
    return one_line(_sentence(step))[:_MOST]


def _sentence(step: Step) -> str:  # noqa: C901 - one case a kind of step
    match step:
        case Restated():
            return f"Understood the question as: {step.text}"
        case Planned():
            return f"Planned {_count(len(step.plan.nodes), 'search', 'searches')}"
        case PlanRejected():
            return f"A plan cannot run: {step.why}"
        case Filled():
            return f"Search {step.node} will ask: {step.query}"
        case Searched():
            return f"{step.source}, {step.query!r}: {_count(len(step.passages), 'passage')} found"
        case SearchFailed():
            return f"{step.source}, {step.query!r}: failed, {step.why}"
        case Skipped():
            return f"Search {step.node} was left out: {step.why}"
        case Gathered():
            return f"Reads {_count(len(step.passages), 'passage')}"
        case Evidenced():
            return f"Has {_count(len(step.claims), 'claim')}"
        case Thought():
            return "Thought about it"
        case Merged():
            return "Weighed what was found"
        case Reflected():
            return "Looked back at what was found"
        case Answered():
            return "Has an answer"
        case Stopped():
            return f"Ended: {step.reason}"
        case _:
            assert_never(step)


def _count(number: int, noun: str, nouns: str = "") -> str:
    return f"{number} {noun if number == 1 else nouns or f'{noun}s'}"
