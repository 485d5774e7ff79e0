"""An agent that is none: it reads the first passage of one search perfectly. What it reaches, a world gives away."""

from dataclasses import dataclass

from agent.trace import Answered, Gathered, Stopped, Trace, Usage
from agent.world import World
from agent.world.reader import first_passage_answer
from train.evaluation.questions import Question


@dataclass
class FirstPassage:
    """Searches the world once, with the question as the query."""

    world: World

    def __post_init__(self) -> None:
        self._planned = {question.id: question for question in self.world.questions}

    async def ask(self, question: Question) -> Trace:
        found = [p.model_copy(update={"number": 1}) for p in self.world.find("all", question.question, limit=1)]
        answer = first_passage_answer(self.world, self._planned[question.id])
        return Trace(
            id=f"first-passage-{question.id}",
            question=question.question,
            protocol="",
            policy="first-passage",
            steps=[Gathered(round=1, passages=tuple(found)), Answered(text=answer), Stopped(reason="answered")],
            passages=found,
            usage=Usage(searches=1, rounds=1, passages=len(found)),
        )

    async def aclose(self) -> None:
        """Nothing is held."""
