"""A protocol is data: the text format that a policy was trained on. Only this object knows how anything is spelled."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from agent.evidence import Frozen, Passage
from agent.protocols.chat import CHAT_TEMPLATES, ChatTemplate
from agent.protocols.shapes import shape_of
from agent.protocols.templates import (
    TEMPLATES,
    QueryObservation,
    TextPiece,
    calls_of,
    check_templates,
    fill_in,
    passage_fields,
    query_fields,
)

Role = Literal[
    "thought", "search", "information", "merge", "reflect", "evidence", "answer", "fill", "parents", "restated"
]
ENVIRONMENT: Final[tuple[Role, ...]] = ("information", "parents")
"""The roles that the environment alone writes."""


class Mark(Frozen):
    r"""What opens and what closes a block, exactly: `<name>` and `</name>`, or `\name{` and `}`."""

    open: str = Field(pattern=r"(?s)^(<.+>|\\\w+\{)$")
    close: str = Field(pattern=r"(?s)^(<.+>|\})$")
    yields: bool = False
    """Whether a search or an answer that begins inside of the block ends it; its closing mark may then come late."""

    @property
    def nests(self) -> bool:
        """Whether braces inside of the block may open and close too."""
        return self.close == "}"


def _mark(given: Any) -> Any:
    """A tag's name, or the pair of its two texts."""
    match given:
        case str():
            return Mark(open=f"<{given}>", close=f"</{given}>")
        case [str() as opens, str() as closes]:
            return Mark(open=opens, close=closes)
        case _:
            return given


def _chat(given: Any) -> Any:
    """A template's name, or a template of one's own."""
    if isinstance(given, str):
        if given not in {"plain", *CHAT_TEMPLATES}:
            raise ValueError(f"there is no chat template {given!r}; choose from: plain, {', '.join(CHAT_TEMPLATES)}")
        return CHAT_TEMPLATES.get(given)
    return given


class Tool(Frozen):
    """What a function that the policy may call means here."""

    source: str
    """The source that it searches; `all` searches every one."""
    argument: str = "query"
    """The argument that holds the query, or a list of them."""


class TextProtocol(Frozen):
    """One text protocol, as read from its TOML file."""

    name: str
    version: int = 1
    description: str = ""

    # The prompt
    prompt: str = ""
    """What a policy that was trained on this protocol reads; inside of a chat, the user's message. `{question}`,
    `{history}` and `{date}` are replaced; where `{question}` is not in it, the question follows it."""
    system: str = ""
    """The system message, where `chat` is a template."""
    begins: str = ""
    """Text that begins each turn of the policy's for it, for example an opening tag."""
    question_mark: bool = False
    """Whether a question that ends without a question mark is given one."""
    chat: Annotated[ChatTemplate | None, BeforeValidator(_chat)] = None
    """`plain` (no template), the name of one, or a table with a template of one's own."""
    history: str = ""
    """How an earlier turn is written where the prompt says `{history}`, with `{question}` and `{answer}`; "turns":
    as turns of the chat. Empty: earlier turns are left out."""
    instructions: str = ""
    """The rules for a model that was not trained on it (the system message of a chat)."""
    foreign: tuple[str, ...] = ()
    """Names of the texts that a user must give in a file: sentences of other authors."""
    upstream: str = ""
    """Where those texts are, for the error about missing ones."""

    # What the policy writes
    tags: dict[Role, Annotated[Mark, BeforeValidator(_mark)]]
    """Role → tag name, or the pair of texts that open and close it. Untagged text is thought."""
    plan: Literal["lines", "queries", "query", "graph", "calls"]
    """`lines`: one query a line, with ids, sources, filters and edges. `queries`: queries with a separator between.
    `query`: one query. `graph`: JSON with a query, entities and relations. `calls`: JSON function calls."""
    separator: str = Field(default=",", min_length=1)
    """Between queries, where `plan` is `queries`. A query in double quotes may hold a comma; other separators know
    neither quotes nor lines."""
    tools: dict[str, Tool] = Field(default_factory=dict[str, Tool])
    """The functions there are, where `plan` is `calls`."""
    several: bool = False
    """Whether one turn may hold several search blocks; it then ends where the policy ends it."""
    sources: bool = True
    """Whether a query may name its source. Without it every query searches `all`."""
    unknown_source: Literal["drop", "reject"] = "reject"
    fills: bool = False
    """Whether a query may hold `#A`, which the policy fills in once A has been answered."""
    max_queries: int = 8
    cut_queries: bool = False
    """Whether a plan of more queries is cut to its first ones; otherwise it is rejected."""
    max_rounds: int = 4
    plans: int = 0
    """How many plans a rollout may hold; 0: as many as rounds."""
    turn_tokens: int = 0
    """Tokens that one turn of the policy may have; 0: no limit of its own."""
    answer_in: Literal["text", "boxed"] = "text"
    """Where the answer is: the block's whole text, or what its last \\boxed{} holds."""
    temperature: float = 0.0
    top_p: float = 1.0
    well_formed: str = ""
    """In which order blocks may come: names of roles, each followed by a space, and `( | ) ? * +`. Empty: any."""
    stops: tuple[Role, ...] = Field(default=("search", "answer"))

    # What the environment writes
    deliver: Literal["continue", "user"] = "continue"
    """Whether the environment speaks inside the policy's own turn, or in a user turn of the chat."""
    passages: int = 3
    """Passages a query."""
    budget_chars: int = 6000
    """Characters of title and text that one round may show."""
    budget_tokens: int = 0
    """Tokens that the whole text of a round may have; 0: no limit of its own. Passages are cut, then wrapped. They are
    counted with the policy's own tokenizer, or estimated where it gives none."""
    graph_chars: int = 0
    """Characters that one round may show of the knowledge graph beside `budget_chars`; 0: it shares that budget."""
    relevant: bool = False
    """Whether passages without any content word of their query or the question are left out, unless all would be."""
    numbering: Literal["rollout", "round", "query"] = "rollout"
    """Whether passage numbers go on, or start again with each round or with each query."""
    passage: str = "[{number}] {source}{date} · {head}{text}"
    """Template of one passage: `{number}`, `{node}`, `{query}`, `{source}`, `{title}`, `{text}`, `{url}`; `{date}` and
    `{head}` are nothing where a passage has no date or title. `{title_json}` and so on are the same as JSON."""
    dated: str = " · {date}"
    """What `{date}` of a passage says."""
    head: str = "{title} — "
    """What `{head}` of a passage says."""
    lines: Literal["indented", "kept"] = "indented"
    """What becomes of line breaks in passages. `indented`: title, source, date, address are on one line each, and each
    further line of a text begins with two blanks, so a line that begins with anything else is not a stranger's. `kept`:
    they stay, for checkpoints that were trained so."""
    joiner: str = "\n"
    """Between passages."""
    each: str = ""
    """Around the passages of each query, where queries are answered one by one: `{passages}`, `{count}`, `{query}`,
    `{query_json}`, and `{written}`, which is the function call as the policy wrote it. Empty: all passages in a row."""
    each_joiner: str = "\n"
    """Between queries, where `each` is given."""
    each_call: str = ""
    """Around what the queries of one function call found, where a turn may hold several calls: `{passages}` and
    `{written}`. Empty: calls have no wrapper of their own."""
    call_joiner: str = "\n"
    """Between calls, where `each_call` is given."""
    wrapper: str = "\n<information>\n{passages}\n</information>\n"
    """Exact white space around what the environment says."""
    nothing: str = "Nothing was found."
    repeated: str = "Nothing new was found."
    """When everything that was found had been shown before."""
    reminders: int = 0
    """Passages, at most, whose documents the queries name and that are then shown once more, with the numbers that they
    have; where there are none, `repeated` is said."""
    shows_again: bool = False
    """Whether a passage that an earlier round showed may be shown again."""
    rejected: str = "The plan cannot run: {why}"
    """When a plan cannot run, instead of the passages: `{why}`, `{why_json}`, and `{written}`, which is its text."""
    failed: str = "{node}: the source {source} failed."
    invalid: str = ""
    """The exact reply to a turn with neither a search nor an answer; empty: such a turn ends the rollout."""
    parents: str = "\n<parents>\n{passages}\n</parents>\n"
    """Around the parents' passages, before a fill."""
    parent: str = "{node} · {source}{date} · {head}{text}"
    """Template of a parent's passage."""
    parent_nothing: str = "{node} · nothing found"
    fill: str = "{opening}{node}: "
    """What begins a fill."""
    ask_fill: str = (
        "Write query {node} once more, with what was found in the place of each #: {opening}the query alone{closing}."
        " If it is not worth asking: {opening}{skip}{closing}"
    )
    """The text for a chat engine, which cannot go on inside its own turn."""
    skip: str = "skip"
    """What the policy writes instead of a query that is not worth a search."""
    force: str = "No more searching is possible. Answer now with what you have: {opening}the answer alone{closing}"
    """The text for a chat engine, which cannot go on inside its own turn, when a budget has ended."""

    @field_validator("well_formed")
    @classmethod
    def _is_a_shape(cls, pattern: str) -> str:
        if pattern:
            shape_of(pattern)
        return pattern

    @model_validator(mode="after")
    def _can_work(self) -> Self:
        missing = [role for role in self.stops if role not in self.tags]
        if missing:
            raise ValueError(f"it stops at {missing[0]!r}, and no tag has that role; give it one")
        unmarked = [role for role in ("fill", "parents") if role not in self.tags] if self.fills else []
        if unmarked:
            raise ValueError(f"its queries may be filled in, and no tag has the role {unmarked[0]!r}; give it one")
        if self.deliver == "user" and self.chat is None:
            raise ValueError("deliver = 'user' needs a chat template; name one with 'chat'")
        if self.plan == "calls" and not self.tools:
            raise ValueError("plan = 'calls' needs the functions that there are; write a table [tools.NAME]")
        for name in ("wrapper", "parents") if self.fills else ("wrapper",):
            if "{passages}" not in getattr(self, name):
                raise ValueError(f"{name} shows nothing that was found; write {{passages}} where that is to stand")
        if self.history not in ("", "turns") and "{question}" not in self.history:
            raise ValueError("history shows no earlier question; write {question} and {answer} in it")
        check_templates({name: getattr(self, name) for name in TEMPLATES})
        if self.each_call and not self.each:
            raise ValueError("each_call stands around what each query found; write each, for example '{passages}'")
        return self

    def opening(self, role: Role) -> str:
        return self.tags[role].open

    def closing(self, role: Role) -> str:
        return self.tags[role].close

    @property
    def missing(self) -> tuple[str, ...]:
        """The foreign texts that are missing."""
        return tuple(name for name in self.foreign if not getattr(self, name))

    @property
    def numbered(self) -> bool:
        """Whether passages are shown with their numbers, so that a claim can cite them."""
        return "{number}" in self.passage

    @property
    def opened(self) -> Role | None:
        """The role of the block that the prompt itself opens, if it ends with an opening tag."""
        end = (self.begins or ("" if self.chat else self.prompt)).rstrip()
        return next((role for role, mark in self.policy_marks.items() if end.endswith(mark.open)), None)

    @property
    def force_text(self) -> str:
        return self.force.format(opening=self.opening("answer"), closing=self.closing("answer"))

    def fill_text(self, node: str) -> str:
        """What begins the fill of a node's query."""
        return self.fill.format(opening=self.opening("fill"), node=node)

    def ask_fill_text(self, node: str) -> str:
        """The request to a chat engine for the query of a node."""
        marks = {"opening": self.opening("fill"), "closing": self.closing("fill")}
        return self.ask_fill.format(node=node, skip=self.skip, **marks)

    @property
    def stop_texts(self) -> tuple[str, ...]:
        """The engine stops after one of these."""
        return tuple(self.closing(role) for role in self.stops)

    @property
    def policy_marks(self) -> dict[Role, Mark]:
        """The marks of every block that the policy may write."""
        return {role: mark for role, mark in self.tags.items() if role not in ENVIRONMENT}

    @property
    def tag_names(self) -> tuple[str, ...]:
        """The names inside of the marks: what strangers' text must not be able to spell."""
        return tuple(mark.open[1:-1].split()[0] for mark in self.tags.values())

    @property
    def all_marks(self) -> tuple[str, ...]:
        """Every control mark of the protocol and of its chat template."""
        marks = tuple(text for mark in self.tags.values() for text in (mark.open, mark.close))
        return marks + (self.chat.controls if self.chat else ())

    @property
    def environment_marks(self) -> tuple[str, ...]:
        """The control marks that the environment writes."""
        marks = (self.tags[role] for role in ENVIRONMENT if role in self.tags)
        return tuple(text for mark in marks for text in (mark.open, mark.close))

    # What is said

    def prompt_pieces(
        self, question: str, *, history: tuple[tuple[str, str], ...] = (), date: str = ""
    ) -> list[TextPiece]:
        """The whole text that a policy of this protocol reads before it says anything.

        Args:
            question: the user's.
            history: earlier turns as (question, answer), oldest first.
            date: today's, as the prompt shall have it.
        """
        marks = self.all_marks
        text = f"{question}?" if self.question_mark and not question.endswith("?") else question
        values = {"question": [TextPiece(text)], "date": [TextPiece(date)], "history": self._earlier(history)}
        prompt = self.prompt if "{question}" in self.prompt else self.prompt + "{question}"
        said = fill_in(prompt, values, marks=marks)
        begins = fill_in(self.begins, {}, marks=marks)
        if self.chat is None:
            return [*said, *begins]
        before, after = self.chat.around_user()
        turns = self._turns(history) if self.history == "turns" else []
        return [
            *fill_in(self.chat.open(self.system), {"date": values["date"]}, marks=marks),
            *turns,
            *fill_in(before, {}, marks=marks),
            *said,
            *fill_in(after + self.chat.assistant, {}, marks=marks),
            *begins,
        ]

    def prompt_text(self, question: str, *, history: tuple[tuple[str, str], ...] = (), date: str = "") -> str:
        """The same as one text."""
        return "".join(piece.text for piece in self.prompt_pieces(question, history=history, date=date))

    def rules(self, date: str = "") -> str:
        """The rules for a model that was not trained on it: the instructions, or else what the prompt says."""
        prompt = self.prompt.replace("{question}", "").replace("{history}", "")
        said = self.instructions or "\n\n".join(text for text in (self.system, prompt) if text.strip())
        return said.replace("{date}", date)

    def _earlier(self, history: tuple[tuple[str, str], ...]) -> list[TextPiece]:
        if self.history in {"", "turns"}:
            return []
        return [
            piece
            for question, answered in history
            for piece in fill_in(
                self.history, {"question": [TextPiece(question)], "answer": [TextPiece(answered)]}, marks=self.all_marks
            )
        ]

    def _turns(self, history: tuple[tuple[str, str], ...]) -> list[TextPiece]:
        assert self.chat is not None
        turn = self.chat.user.replace("{text}", "{question}") + self.chat.assistant + "{answer}"
        turn += self.chat.end + self.chat.after_end
        return [
            piece
            for question, answered in history
            for piece in fill_in(
                turn, {"question": [TextPiece(question)], "answer": [TextPiece(answered)]}, marks=self.all_marks
            )
        ]

    def show(self, passage: Passage, *, query: str = "") -> str:
        """One passage as the policy reads it; `query` is its node's, where the policy filled that in."""
        fields = self._fields(passage) | query_fields(query)
        return self.passage.format(**fields | {"node": f"{passage.node} ({query})" if query else passage.node})

    def show_parent(self, passage: Passage) -> str:
        """One passage of a parent, as the policy reads it before it fills in a query."""
        return self.parent.format(**self._fields(passage))

    def wrap(self, lines: Sequence[str]) -> str:
        """What the environment says after a search."""
        return self.wrapper.replace("{passages}", self.joiner.join(lines) or self.nothing)

    def observation(self, queries: Sequence[QueryObservation]) -> str:
        """The same, from what each query found: in a row, or query by query."""
        if not self.each:
            return self.wrap([line for one in queries for line in one.lines])
        parts = [self._of_call(call) for call in calls_of(queries)] if self.each_call else [self._of_queries(queries)]
        return self.wrapper.replace("{passages}", self.call_joiner.join(parts) or self.nothing)

    def _of_call(self, queries: Sequence[QueryObservation]) -> str:
        return self.each_call.format(passages=self._of_queries(queries), written=queries[0].written)

    def _of_queries(self, queries: Sequence[QueryObservation]) -> str:
        parts = [one.fill(self.each, joiner=self.joiner, nothing=self.nothing) for one in queries]
        return self.each_joiner.join(parts)

    def _fields(self, passage: Passage) -> dict[str, object]:
        return passage_fields(passage, dated=self.dated, head=self.head)
