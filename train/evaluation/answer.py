"""What an agent without a trace said to one question: its answer, what it cites, and what it reports of its cost."""

from pydantic import BaseModel, ConfigDict


class Citation(BaseModel):
    """Something that an answer points at. What the agent did not give is empty."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = ""
    """Of the passage, where the agent gave it or its address is known."""
    url: str = ""
    title: str = ""
    text: str = ""
    """What the agent says is there; nothing here checks it."""

    @property
    def name(self) -> str:
        """What distinguishes it from others: the id of a known passage, else the address."""
        return self.id or self.url or self.title


class AgentAnswer(BaseModel):
    """One answer of such an agent. None: it did not say."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    """The short answer, without reasoning, tags and marks of citations."""
    said: str = ""
    """Everything outside of the reasoning, as it came."""
    citations: tuple[Citation, ...] = ()
    """In the order in which the answer numbers them; each once."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    searches: int | None = None
    usd: float | None = None
    seconds: float = 0.0
    """From the request that was answered to its end."""
    first_token: float | None = None
    """Seconds to the first piece of text, also of reasoning; only where the answer was streamed."""
    tries: int = 1
    """Requests that it took: 1 plus those that failed before."""
