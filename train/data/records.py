"""What the steps of a build hand on: documents, bundles of them, and questions. One JSON line each."""

from pydantic import Field

from agent.evidence import Frozen
from agent.world.records import Question as WorldQuestion


class Doc(Frozen):
    """One document, and where it is from."""

    id: str
    source: str
    title: str = ""
    text: str
    url: str = ""
    date: str = ""
    part: int = 0
    """Of a large little world: documents of different parts have nothing in common."""

    @property
    def whole(self) -> str:
        """Title and text, as it is compared with others."""
        return f"{self.title}\n{self.text}".strip()


class Leaf(Frozen):
    """A cluster that is not split any more."""

    group: int
    """The thematic group that it is of."""
    documents: tuple[str, ...]


class Bundle(Frozen):
    """Documents that belong together."""

    id: str
    documents: tuple[str, ...]
    sources: tuple[str, ...]
    """Each once, sorted."""
    group: int
    joined: bool = False
    """Whether a document of another source was taken in from elsewhere."""


class Candidate(Frozen):
    """A question that was written, and what it is about."""

    id: str
    question: str
    """With the options, where there are some."""
    answers: tuple[str, ...]
    """Any of them is right; of a choice all right options."""
    type: str
    """factual, causal or choice; of the little world its own types."""
    bundle: str
    supporting: tuple[str, ...]
    """Ids of the documents that it needs."""
    sources: tuple[str, ...]
    """Of those documents, each once."""
    options: tuple[str, ...] = ()
    plan: WorldQuestion | None = Field(default=None, exclude_if=lambda plan: plan is None)
    """In the little world: the question with its gold plan."""
