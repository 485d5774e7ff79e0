"""What a rollout is rewarded against: the question with its gold. No reward sees anything else beside the trace."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.sources.questions import GoldQuestion


@dataclass(frozen=True, kw_only=True)
class Task:
    """One question with its gold answers, and with what is known of its gold passages."""

    question: str
    answers: tuple[str, ...]
    """Any of them is right; empty only for what cannot be answered."""
    id: str = ""
    gold: tuple[str, ...] = ()
    """Ids of the passages that are needed."""
    titles: tuple[str, ...] = ()
    """Their titles, for a corpus that has other ids."""
    texts: tuple[str, ...] = ()
    """Their texts, where relevance is measured by embeddings."""
    hops: int | None = None
    """Searches that are needed, one after the other or side by side."""
    options: tuple[str, ...] = ()
    """What a multiple choice offers."""
    unanswerable: bool = False
    """Whether saying that one does not know is right, and anything else is wrong."""

    def __post_init__(self) -> None:
        """Refuse a task that nothing can be measured against.

        Raises:
            ValueError: it has no gold answer, and is not said to be unanswerable.
        """
        if not self.unanswerable and not any(c.isalnum() for answer in self.answers for c in answer):
            raise ValueError(f"the task {self.question!r} has no gold answer; say `unanswerable` where there is none")

    @classmethod
    def of(cls, question: GoldQuestion, *, texts: Sequence[str] = ()) -> "Task":
        """The task of a question from a list, or of one of the little world's (`world_questions` converts those)."""
        return cls(
            id=question.id,
            question=question.question,
            answers=question.answers,
            gold=question.supporting,
            titles=question.titles,
            texts=tuple(texts),
            hops=question.hops,
            options=question.options,
            unanswerable=question.unanswerable,
        )

    def as_question(self) -> GoldQuestion:
        """What a judge gets."""
        return GoldQuestion(id=self.id or "task", question=self.question, answers=self.answers, options=self.options)
