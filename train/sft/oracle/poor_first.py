"""The player who chooses badly, for the worlds of generator 1: it copies as well as the oracle, and asks worse."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.evidence import Passage
from agent.protocols import TextProtocol
from agent.trace.attempts import UNKNOWN
from agent.world.records import Lookup, Question
from train.sft.oracle import words
from train.sft.oracle.first import Oracle
from train.sft.oracle.poor import Poverty, Told, elsewhere


@dataclass(frozen=True)
class PoorOracle(Oracle):
    """Poor turns for one question; where a search shows nothing of use, it says so and gives up."""

    how: Poverty

    def searches(self, number: int, shown: Sequence[Passage]) -> bool:
        return super().searches(number, shown) and not self._lost(number, shown)

    def turn(self, number: int, shown: Sequence[Passage]) -> str:
        if lost := self._lost(number, shown):
            merge = self._block("merge", words.not_found(lost))
            return f"{merge}\n{self._block('answer', UNKNOWN)}"
        return super().turn(number, shown)

    def queries(self, number: int) -> list[tuple[str, str]]:
        lookups = self.question.plan[number]
        match self.how:
            case "one_source":
                return [(lookup.query, lookup.sources[0]) for lookup in lookups]
            case "wrong_source":
                return [(lookup.query, elsewhere(lookup)) for lookup in lookups]
            case "one_query":
                return [(lookup.rephrased, "all") for lookup in lookups]
            case _:
                return super().queries(number)

    def _lost(self, number: int, shown: Sequence[Passage]) -> Lookup | None:
        """What the last round looked for in vain."""
        ids = {passage.id for passage in shown}
        asked = self.question.plan[number - 1] if number else ()
        return next((lookup for lookup in asked if lookup.gold not in ids), None)


def poor_oracle(told: Told, question: Question, protocol: TextProtocol, how: Poverty) -> PoorOracle:
    """The player for a question.

    Raises:
        Unreachable: it cannot be answered so.
    """
    return PoorOracle(told.poorer(question, how), protocol, how)
