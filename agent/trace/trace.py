"""What happened in one rollout. The server, the UI, the rewards, the trainer and the evaluation read only this.

A `Segment` is a piece of the context with its author. A `Step` is a closed, typed fact that points at its segments.
A `Delta` is text on its way: it is streamed, never stored.
"""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.errors import Failure
from agent.evidence import Frozen, Passage
from agent.plan import Filter, Plan

TRACE_VERSION: Final = 1

Author = Literal["prompt", "policy", "environment", "loop"]
StopReason = Literal["answered", "forced", "bad_format", "cancelled", "engine", "interrupted"]
Cached = Literal["", "fresh", "stale", "reused"]
Check = Literal["unchecked", "verbatim", "close", "not_found", "contradicted"]
"""What the cited passages say of a claim; `unchecked` only in traces that were written before claims were checked."""
DOUBTED: Final = frozenset[Check]({"not_found", "contradicted"})
"""Of these claims no passage that they cite says that they are so."""
BudgetName = Literal["rounds", "searches", "passages", "policy_tokens", "context", "seconds", "credits", "user"]


def _nothing(value: object) -> bool:
    return not value


class Segment(Frozen):
    """A piece of the context. The loss mask is `by == "policy"`; nothing else marks it."""

    branch: str = "main"
    """The context that it is in: the rollout's own, or a key of `Trace.branches`."""
    by: Author
    text: str
    ids: tuple[int, ...] | None = None
    """Token ids, from engines that give them."""
    logprobs: tuple[float, ...] | None = None
    """Natural logarithms, one for each id; only of what the policy sampled."""


class _Step(Frozen):
    segments: tuple[int, ...] = ()
    """Places in `Trace.segments` that this step was read from or written to."""
    seconds: float = 0.0
    """Since the rollout began."""


class Thought(_Step):
    kind: Literal["thought"] = "thought"
    text: str


class Restated(_Step):
    """The question as the policy put it, so that it can be understood without the turns before it."""

    kind: Literal["restated"] = "restated"
    text: str


class Planned(_Step):
    kind: Literal["planned"] = "planned"
    round: int
    plan: Plan


class PlanRejected(_Step):
    kind: Literal["plan_rejected"] = "plan_rejected"
    round: int
    text: str
    why: str


class Filled(_Step):
    """The policy rewrote a node's query with what its parents found; `segments` are those of its branch.

    The event that reports it as it happens has none yet: a branch is written onto the trace when its round has ended.
    Its name, `ROUND.NODE`, is known from the start.
    """

    kind: Literal["filled"] = "filled"
    round: int
    node: str
    query: str


class Searched(_Step):
    """A node found something, or honestly nothing (`passages` is empty)."""

    kind: Literal["searched"] = "searched"
    round: int
    node: str
    source: str
    query: str
    passages: tuple[Passage, ...]
    took: float = 0.0
    """Seconds that the source needed."""
    note: str = ""
    """For example a filter that the source cannot honour."""
    backend: str = ""
    """Which of the source's backends answered; empty where it has only itself."""
    cached: Cached = ""
    """`fresh` or `stale` where the answer was found before; stale means that another search failed. `reused`: the run
    that this one follows up searched the same."""
    credits: float = 0.0
    usd: float = 0.0
    failures: tuple[Failure, ...] = ()
    """What failed before another backend, another try or the cache gave this answer."""
    lost: tuple[str, ...] = Field(default=(), exclude_if=_nothing)
    """Names of sources that failed, where `source` is several that are fused and others answered."""


class SearchFailed(_Step):
    kind: Literal["search_failed"] = "search_failed"
    round: int
    node: str
    source: str
    query: str
    why: str
    error: str = "upstream"
    """The `SourceError.kind`."""
    took: float = 0.0
    failures: tuple[Failure, ...] = ()
    """Each backend and each try that failed, in their order."""
    credits: float = Field(default=0.0, exclude_if=_nothing)
    """What others cost that were searched as well, and found nothing."""
    usd: float = Field(default=0.0, exclude_if=_nothing)


class Skipped(_Step):
    """A node was not searched; `segments` are those of the fill that skipped it (see `Filled`), or of the plan."""

    kind: Literal["skipped"] = "skipped"
    round: int
    node: str
    why: str


class Gathered(_Step):
    """The numbered passages that the policy was shown in this round."""

    kind: Literal["gathered"] = "gathered"
    round: int
    passages: tuple[Passage, ...]
    dropped: int = 0
    """Passages that were found but not shown: repeats, what is irrelevant, and what the budget cut."""
    imitated: tuple[int, ...] = Field(default=(), exclude_if=_nothing)
    """Numbers that the text of another passage imitates, by `[2]` or by what heads passage 2. What cites one of them is
    linked only where the passage of that number says it."""


class Quote(Frozen):
    """Words of a cited passage that support a claim: `text` is `passage.text[start:end]`."""

    number: int
    """The passage's number, as the policy was shown it."""
    start: int
    end: int
    text: str

    def is_of(self, passage: Passage) -> bool:
        return passage.number == self.number and passage.text[self.start : self.end] == self.text


class Claim(Frozen):
    """One sentence of the evidence block with the numbers of the passages that it cites."""

    text: str
    cites: tuple[int, ...]
    check: Check = "unchecked"
    derived: bool = False
    """Taken from a merge or a reflection, where the protocol has no evidence block."""
    quotes: tuple[Quote, ...] = ()
    """Where the claim's support stands; none where it was not found."""
    ambiguous: tuple[int, ...] = Field(default=(), exclude_if=_nothing)
    """Numbers that it cites and that `cites` leaves out: another passage's text imitates them (see `Gathered`), and the
    passage that has them does not say it."""


class Merged(_Step):
    kind: Literal["merged"] = "merged"
    text: str
    claims: tuple[Claim, ...] = ()
    """Its sentences that cite, `derived`: they carry the answer where no evidence block does."""


class Reflected(_Step):
    kind: Literal["reflected"] = "reflected"
    text: str
    claims: tuple[Claim, ...] = ()
    """As those of a merge."""


class Evidenced(_Step):
    kind: Literal["evidenced"] = "evidenced"
    text: str
    claims: tuple[Claim, ...]


class Answered(_Step):
    kind: Literal["answered"] = "answered"
    text: str
    by: Literal["policy", "loop"] = "policy"
    """`loop` where the product speaks for itself, for example about a question outside the policy's world."""


class Stopped(_Step):
    kind: Literal["stopped"] = "stopped"
    reason: StopReason
    budget: BudgetName | None = None
    """The budget that ended, when the reason is `forced`."""
    detail: str = ""


Step = Annotated[
    Thought
    | Restated
    | Planned
    | PlanRejected
    | Filled
    | Searched
    | SearchFailed
    | Skipped
    | Gathered
    | Merged
    | Reflected
    | Evidenced
    | Answered
    | Stopped,
    Field(discriminator="kind"),
]


class Delta(Frozen):
    """Text on its way. `role` is the role of its block: thought (also untagged text), search, merge, and so on."""

    kind: Literal["delta"] = "delta"
    role: str
    text: str


Event = Step | Delta


class Branch(Frozen):
    """A fork of the context. What it holds: its parent's context up to the fork, then its own segments."""

    parent: str
    """The branch that it left; usually `main`."""
    segment: int
    """Place in `Trace.segments` of the last segment that it shares with its parent."""
    node: str
    """The node whose query was filled in."""


class RungUsed(Frozen):
    """How a general model was spoken to from here on, and why so."""

    rung: Literal["tools", "json", "words", "plain"]
    """As functions that it calls, as constrained JSON, by the protocol in words, or as plain words about passages that
    were searched for it."""
    why: str = ""


class FollowedUp(Frozen):
    """What a question changes of the one before it, and what is used again."""

    text: str
    """What the user wrote; the trace's question is what was researched."""
    history: tuple[tuple[str, str], ...] = Field(default=(), exclude_if=_nothing)
    """The turns before it, as they were sent."""
    run: str = ""
    """Id of the run whose searches are used again where this one has the same; empty: none."""
    claim: str = ""
    """The claim of that run that is checked again, instead of a question that is researched."""
    context: Literal["summary", "evidence", "all"] = "summary"
    """What the policy is given of that run: its answer, its claims too, or what it was shown, too."""


class Usage(Frozen):
    """What the rollout used. Tokens are the engine's own count, or an estimate by characters where it gives none."""

    prompt_tokens: int = 0
    policy_tokens: int = 0
    """Sampled by the policy."""
    answer_tokens: int = 0
    environment_tokens: int = 0
    rounds: int = 0
    searches: int = 0
    passages: int = 0
    credits: float = 0.0
    usd: float = 0.0
    """What the paid searches cost, by the prices in the settings."""


class Timings(Frozen):
    """Seconds of wall time."""

    total: float = 0.0
    policy: float = 0.0
    search: float = 0.0
    first_token: float | None = None
    answer: float | None = None


class Trace(BaseModel):
    """One rollout for one user turn. Only `agent.loop.agent` writes to it."""

    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)

    version: Literal[1] = TRACE_VERSION
    id: str
    conversation: str = ""
    history: tuple[tuple[str, str], ...] = ()
    """Earlier turns as (question, answer)."""
    question: str
    filters: tuple[Filter, ...] = Field(default=(), exclude_if=_nothing)
    """What the request wants of every search, beside what a plan says."""
    only: tuple[str, ...] = Field(default=(), exclude_if=_nothing)
    """The sources that the request chose; empty: each."""
    libraries: tuple[str, ...] = Field(default=(), exclude_if=_nothing)
    """Ids of the libraries that the request chose, and of those that the run which it follows up chose."""
    files: tuple[str, ...] = Field(default=(), exclude_if=_nothing)
    """Ids of the files that the request chose of them; empty: each."""
    library_state: str = Field(default="", exclude_if=_nothing)
    """A hash of what was searched of libraries: the same one only where the same files could be found."""
    follow_up: FollowedUp | None = Field(default=None, exclude_if=_nothing)
    """Where the question changes the one of an earlier turn."""
    protocol: str
    policy: str
    seed: int = 0
    segments: list[Segment] = Field(default_factory=list[Segment], repr=False)
    """Only ever appended to. A round's branches stand behind its search, in the plan's order."""
    steps: list[Step] = Field(default_factory=list[Step])
    branches: dict[str, Branch] = Field(default_factory=dict[str, Branch])
    passages: list[Passage] = Field(default_factory=list[Passage], repr=False)
    """Every passage that was shown, in order of its number."""
    infrastructure: bool = False
    """An error that no fallback healed: such a rollout gives no reward and no gradient."""
    usage: Usage = Usage()
    timings: Timings = Timings()
    rungs: tuple[RungUsed, ...] = Field(default=(), exclude_if=_nothing)
    """For a general model: the way in which it was spoken to, and the ones that it stepped down to."""
    versions: dict[str, str] = Field(default_factory=dict[str, str])

    @property
    def answer(self) -> str | None:
        return next((s.text for s in reversed(self.steps) if isinstance(s, Answered)), None)

    @property
    def lost(self) -> tuple[str, ...]:
        """Sources that failed in searches that others answered, each once: a policy that saw less than there is."""
        return tuple(dict.fromkeys(name for step in self.steps if isinstance(step, Searched) for name in step.lost))

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What carries the answer: those of the last evidence block, or else of the last merge or reflection."""
        evidence = (step.claims for step in reversed(self.steps) if isinstance(step, Evidenced))
        derived = (step.claims for step in reversed(self.steps) if isinstance(step, Merged | Reflected))
        found = next(evidence, None)
        return next((claims for claims in derived if claims), ()) if found is None else found

    @property
    def stopped(self) -> Stopped | None:
        return next((s for s in reversed(self.steps) if isinstance(s, Stopped)), None)
