"""A protocol is data: the text format that a policy was trained on. Only this object knows how anything is spelled."""

from typing import Literal

from pydantic import Field

from agent.evidence import Frozen, Passage

Role = Literal["thought", "search", "information", "merge", "reflect", "evidence", "answer", "fill", "parents"]


class TextProtocol(Frozen):
    """One text protocol, as read from its TOML file."""

    name: str
    version: int = 1
    description: str = ""
    prompt: str
    """What a policy that was trained on this protocol reads. `{question}` is replaced."""
    instructions: str
    """What a model that was not trained on it must be told (the system message of a chat)."""
    tags: dict[Role, str]
    """Role → tag name. Untagged text is thought."""
    plan: Literal["lines", "queries"]
    """`lines`: one query a line, with ids, sources, filters and edges. `queries`: queries with a separator between."""
    separator: str = ","
    """Between queries, where `plan` is `queries`. A query in double quotes may hold it."""
    sources: bool = True
    """Whether a query may name its source. Without it every query asks `all`."""
    unknown_source: Literal["drop", "reject"] = "reject"
    max_queries: int = 8
    max_rounds: int = 4
    plans: int = 0
    """How many plans a rollout may hold; 0: as many as rounds."""
    passages: int = 3
    """Passages a query."""
    budget_chars: int = 6000
    """Characters of title and text that one round may show."""
    numbering: Literal["rollout", "round"] = "rollout"
    passage: str = "[{number}] {source}{date} · {head}{text}"
    """Template of one passage; `{date}` is " · DATE" or nothing, `{head}` is "TITLE — " or nothing."""
    wrapper: str = "\n<information>\n{passages}\n</information>\n"
    """Exact white space around what the environment says."""
    nothing: str = "Nothing was found."
    repeated: str = "Nothing new was found."
    """When everything that was found had been shown before."""
    rejected: str = "The plan cannot run: {why}"
    failed: str = "{node}: the source {source} failed."
    force: str = "No more searching is possible. Answer now with what you have: {opening}the answer alone{closing}"
    """What a chat engine, which cannot go on inside its own turn, is told when a budget has ended."""
    well_formed: str = ""
    """A regular expression over the sequence of roles, each written as its name and one space."""
    stops: tuple[Role, ...] = Field(default=("search", "answer"))

    def opening(self, role: Role) -> str:
        return f"<{self.tags[role]}>"

    def closing(self, role: Role) -> str:
        return f"</{self.tags[role]}>"

    @property
    def opened(self) -> Role | None:
        """The role of the block that the prompt itself opens, if it ends with an opening tag."""
        return next((role for role in self.policy_roles.values() if self.prompt.endswith(self.opening(role))), None)

    @property
    def force_text(self) -> str:
        return self.force.format(opening=self.opening("answer"), closing=self.closing("answer"))

    @property
    def stop_texts(self) -> tuple[str, ...]:
        """The engine stops after one of these."""
        return tuple(self.closing(role) for role in self.stops)

    @property
    def policy_roles(self) -> dict[str, Role]:
        """Tag → role of every block that the policy may write."""
        return {tag: role for role, tag in self.tags.items() if role not in ("information", "parents")}

    def show(self, passage: Passage) -> str:
        """One passage as the policy reads it."""
        date = f" · {passage.date}" if passage.date else ""
        head = f"{passage.title} — " if passage.title else ""
        return self.passage.format(
            number=passage.number,
            node=passage.node,
            source=passage.source,
            date=date,
            head=head,
            text=passage.text,
        )

    def wrap(self, lines: list[str]) -> str:
        """What the environment says after a search."""
        return self.wrapper.format(passages="\n".join(lines) or self.nothing)
