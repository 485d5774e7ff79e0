"""Where nothing was found, or not the answer: what was tried and looked at, in a sentence. It judges nothing itself."""

from collections.abc import Iterable, Sequence
from typing import Final

from agent.trace import Answered, Gathered, Searched, SearchFailed, Step

UNSEARCHED: Final = "This was answered without a search."
UNKNOWN: Final = "I do not know"
"""How policies of ours answer where they found no answer."""
_MOST: Final = 6
"""Searches, or titles, that are named; of more, the number is given."""


def nothing_found(steps: Sequence[Step]) -> str:
    """What to say of a rollout that was shown no passage; empty where it was shown one, or never searched."""
    searches = [step for step in steps if isinstance(step, Searched | SearchFailed)]
    if not searches or any(isinstance(step, Gathered) and step.passages for step in steps):
        return ""
    tried = list(dict.fromkeys(map(_described, searches)))
    more = f" and {len(tried) - _MOST} more" if len(tried) > _MOST else ""
    failed = all(isinstance(step, SearchFailed) for step in searches)
    first = "Every search failed" if failed else "Nothing was found"
    return f"{first}, so no passage supports this. Tried: {', '.join(tried[:_MOST])}{more}."


def not_in_passages(answer: str, steps: Sequence[Step]) -> str:
    """What to say where the policy says that it does not know, although passages were shown; empty otherwise."""
    if not answer.strip().casefold().replace("don't", "do not").startswith(UNKNOWN.casefold()):
        return ""
    shown = [passage for step in steps if isinstance(step, Gathered) for passage in step.passages]
    titles = list(dict.fromkeys(" ".join(passage.title.split()) or passage.id for passage in shown))
    if not titles:
        return ""
    more = f" and {len(titles) - _MOST} more" if len(titles) > _MOST else ""
    return f"The passages that were found do not say it. Looked at: {', '.join(titles[:_MOST])}{more}."


def unsearched(steps: Iterable[Step]) -> bool:
    """Whether the policy answered, and nothing was searched for."""
    steps = list(steps)
    answered = any(isinstance(step, Answered) and step.by == "policy" for step in steps)
    return answered and not any(isinstance(step, Searched | SearchFailed) for step in steps)


def _described(step: Searched | SearchFailed) -> str:
    query = " ".join(step.query.split())
    return f"“{query}” ({_where(step)})"


def _where(step: Searched | SearchFailed) -> str:
    if isinstance(step, Searched):
        return f"{step.source}, of which {', '.join(step.lost)} failed" if step.lost else step.source
    last = {failure.backend: failure.kind for failure in step.failures if failure.backend != step.source}
    kinds = ", ".join(f"{kind} in {backend}" for backend, kind in last.items())
    return f"{step.source} failed: {kinds or step.error}"
