"""Which questions of a list an evaluation takes."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from agent.errors import SetupError
from train.evaluation.questions import GoldQuestion


@dataclass(frozen=True, kw_only=True)
class QuestionChoice:
    """All questions, or some of them. With the same seed, a larger limit contains a smaller one."""

    limit: int | None = None
    """At most this many."""
    sample: int | None = None
    """Draw them with this seed; None takes the first ones."""
    types: tuple[str, ...] = ()
    """Only of these types; empty: of all."""

    def pick(self, questions: Sequence[GoldQuestion]) -> list[GoldQuestion]:
        """The chosen ones, in their order.

        Raises:
            SetupError: a type that no question has.
        """
        there = sorted({question.type for question in questions if question.type})
        if unknown := sorted(set(self.types) - set(there)):
            has = f"it has {', '.join(there)}" if there else "its questions have no types"
            raise SetupError(f"no question of this list has the type {', '.join(unknown)}; {has}")
        picked = [question for question in questions if not self.types or question.type in self.types]
        if self.sample is not None:
            random.Random(f"cairn sample {self.sample}").shuffle(picked)
        return picked if self.limit is None else picked[: self.limit]

    def described(self) -> dict[str, str]:
        """For the report; a run's folder may hold several choices of the same list."""
        said = {"limit": self.limit, "sample": self.sample, "types": ",".join(self.types) or None}
        return {name: str(value) for name, value in said.items() if value is not None}
