"""What a client requests: messages, reduced to a question and earlier turns, and the request of chat completions."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby, pairwise
from typing import Annotated, Any, Final, Literal, cast, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from agent.errors import QuestionError
from agent.plan import EVERY_SOURCE, Filter
from agent.sanitize.strict import Chars, Strict
from agent.sanitize.text import whole
from agent.settings.live import SCHOLARLY
from agent.sources.base import Source
from agent.sources.select import choose
from server.chat.profiles import ProfileName
from server.http.errors import bad_request, sentence

AnswerStyle = Literal["short", "sentence", "with_evidence"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
SearchMode = Literal["web", "academic", "sec"]
Recency = Literal["hour", "day", "week", "month", "year"]

_KINDS: Final[Mapping[SearchMode, str]] = {"academic": "science", "sec": "finance"}
_HOST: Final = re.compile(r"[\w-]+(\.[\w-]+)*")
_DOMAIN: Final = r"^-?\s*(https?://)?\.?[A-Za-z0-9]"
_DAY: Final = r"^(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}/\d{1,2}/\d{4})$"


def _host(given: str) -> str:
    """A domain without what people write around it; one to leave out keeps its `-`."""
    out = given.strip().startswith("-")
    host = re.sub(r"^\w+://", "", given.strip().lstrip("-").strip().lower()).split("/")[0].lstrip(".")
    if not _HOST.fullmatch(host):
        raise ValueError("write a domain like 'nasa.gov', or '-pinterest.com' to leave one out")
    return f"-{host}" if out else host


def _day(given: str) -> str:
    """An ISO date; Perplexity's clients write 3/1/2026."""
    try:
        if "/" in given:
            return datetime.strptime(given, "%m/%d/%Y").date().isoformat()
        return date(*map(int, given.split("-"))).isoformat()
    except ValueError:
        raise ValueError("write the day as 2026-03-01 or 3/1/2026") from None


Domain = Annotated[str, Field(pattern=_DOMAIN, max_length=253), AfterValidator(_host)]
Day = Annotated[str, Field(pattern=_DAY, max_length=10), AfterValidator(_day)]
Name = Annotated[str, Chars(200)]
Text = Annotated[str, Chars(1_000_000)]
"""What a person or a model wrote. How much of it may be a question is a setting."""


def few_pairs(given: Any) -> Any:
    """Metadata of few pairs: each wrong one of many would be an error of its own."""
    if isinstance(given, Mapping) and len(pairs := cast(Mapping[Any, Any], given)) > _PAIRS:
        raise ValueError(f"it has {len(pairs):,} pairs; at most {_PAIRS} are kept")
    return cast(Any, given)


_PAIRS: Final = 16
Metadata = Annotated[
    dict[Annotated[str, Chars(64)], Annotated[str, Chars(512)]],
    Field(max_length=_PAIRS),
    BeforeValidator(few_pairs),
]
"""As OpenAI bounds them."""


class Incoming(BaseModel):
    """Part of a request. Parameters that are not declared are accepted and mean nothing."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class BudgetOptions(Strict):
    """What one answer may use. A request can lower what the server allows, and never raise it."""

    rounds: int | None = Field(default=None, ge=0, description="Rounds of searches.")
    searches: int | None = Field(default=None, ge=0)
    passages: int | None = Field(default=None, ge=0, description="Passages that the policy is shown.")
    tokens: int | None = Field(default=None, ge=1, description="Tokens that the policy writes, its answer included.")
    seconds: float | None = Field(
        default=None, gt=0, description="Until the answer is forced, which may then take as long again."
    )
    credits: float | None = Field(default=None, ge=0, description="What paid searches may cost.")


class RunOptions(Incoming):
    """Parameters of ours and of Perplexity's."""

    model: Name = Field(default="cairn", description="One of those that `/v1/models` lists.")
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    answer_style: AnswerStyle | None = Field(
        default=None, description="The answer alone, with the claim behind it, or with all claims."
    )
    profile: ProfileName | None = Field(
        default=None, description="For which client the answer is made; left out, what the server's settings say."
    )
    sources: Annotated[list[Name], Field(fail_fast=True, max_length=32)] | None = Field(
        default=None, description="Names of the sources that may be searched; left out: each."
    )
    libraries: Annotated[list[Name], Field(fail_fast=True, max_length=32)] | None = Field(
        default=None, description="Ids of libraries to search, or `all` for each of yours; `sources` only if named too."
    )
    files: Annotated[list[Name], Field(fail_fast=True, max_length=1_000)] | None = Field(
        default=None, description="Ids of files: only these are searched, of the libraries or else of all of yours."
    )
    budgets: BudgetOptions | None = None
    search_domain_filter: Annotated[list[Domain], Field(fail_fast=True, max_length=20)] | None = Field(
        default=None, description="Domains to search, or with a leading `-` to leave out."
    )
    search_recency_filter: Recency | None = Field(default=None, description="`hour` is taken as `day`.")
    search_after_date_filter: Day | None = None
    search_before_date_filter: Day | None = None
    search_mode: SearchMode | None = Field(
        default=None, description="`academic` searches the sources of papers that there are, or else wants science."
    )
    disable_search: bool | None = Field(default=None, description="Answer without searching; the answer says so.")

    @model_validator(mode="before")
    @classmethod
    def _leave_out_null(cls, given: Any) -> Any:
        """Clients write null for what they don't say, also where a default is no null."""
        if not isinstance(given, Mapping):
            return given
        return {name: value for name, value in cast(Mapping[str, Any], given).items() if value is not None}

    @property
    def effort(self) -> Effort | None:
        """How much may be done for the answer."""
        return None

    @property
    def most_tokens(self) -> int | None:
        """What the policy may write."""
        return None

    @property
    def file_filters(self) -> Mapping[str, Any]:
        """Which files of a library may be found, by its id."""
        return {}

    def filters(self, sources: Mapping[str, Source]) -> tuple[Filter, ...]:
        """Of every search for this answer."""
        said: list[tuple[str, str | None]] = [
            ("not", domain[1:]) if domain.startswith("-") else ("site", domain)
            for domain in self.search_domain_filter or ()
        ]
        recent = "day" if self.search_recency_filter == "hour" else self.search_recency_filter
        said += [
            ("recent", recent),
            ("after", self.search_after_date_filter),
            ("before", self.search_before_date_filter),
        ]
        kind = _KINDS.get(self.search_mode or "web")
        only = self.only(sources)
        said.append(("kind", None if only and SCHOLARLY.issuperset(only) else kind))
        return tuple(Filter(name=name, value=value) for name, value in said if value)

    def only(self, sources: Mapping[str, Source]) -> tuple[str, ...]:
        """The sources that may be searched; empty: each.

        Raises:
            ApiError: one of them is not there.
        """
        if not self.sources:
            return tuple(name for name in sources if name in SCHOLARLY) if self.search_mode == "academic" else ()
        wanted = tuple(dict.fromkeys(name.strip().lower() for name in self.sources))
        try:
            choose(sources, wanted)
        except QuestionError as error:
            raise bad_request(sentence(error), param="sources") from error
        return () if EVERY_SOURCE in wanted else wanted


_REASONING: Final = re.compile(
    r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)"
    r"|<details type=\"(?:reasoning|tool_calls|code_interpreter)\".*?(?:</details>|\Z)"
    r"|\A(?:(?!<think>).)*?</think>",
    re.DOTALL | re.IGNORECASE,
)
_LISTED: Final = re.compile(r"- \[\d+\] .* \(\w+\)")
_DEFINITION: Final = re.compile(r"\[\d+\]: <[^>]*>(?: \".*\")?")
_LAST_MARK: Final = re.compile(r" \[\d{1,9}\]\Z")
_MARK_CHARS: Final = 12
_RAW: Final = 16
"""Times as many characters as earlier turns may have are looked at: reasoning and sources go away from them."""


TextType = Literal["text", "input_text", "output_text"]
TEXT_TYPES: Final = get_args(TextType)


class TextPart(Incoming):
    type: TextType
    text: Text


class OtherPart(Incoming):
    """A picture, a sound, a file, a refusal: nothing that a question can be read from."""

    type: Name


class Message(Incoming):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Text | Annotated[list[TextPart | OtherPart], Field(fail_fast=True, max_length=1_000)] | None = None

    @property
    def text(self) -> str:
        """All text."""
        if isinstance(self.content, str):
            return whole(self.content)
        return whole("\n".join(part.text for part in self.content or () if isinstance(part, TextPart)))

    @property
    def other_kind(self) -> str | None:
        """The first kind of content that is not text."""
        parts = self.content if isinstance(self.content, list) else []
        return next((part.type for part in parts if isinstance(part, OtherPart)), None)


class StreamOptions(Incoming):
    include_usage: bool | None = False


class ChatRequest(RunOptions):
    """The parameters that this server reads; all others of OpenAI's are taken and ignored."""

    messages: Annotated[list[Message], Field(fail_fast=True, max_length=5_000)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = Field(default=None, description="One, if it is said: a question gets one answer.")
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    reasoning_effort: Effort | None = None

    @property
    def effort(self) -> Effort | None:
        return self.reasoning_effort

    @property
    def most_tokens(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    @property
    def include_usage(self) -> bool:
        return self.stream_options is not None and bool(self.stream_options.include_usage)

    @property
    def kept(self) -> bool:
        """Whether the run is stored when it has ended."""
        return True


class CompletionRequest(ChatRequest):
    """A request of `/v1/chat/completions`; runs under `/api/runs` are always stored."""

    store: bool | None = Field(default=None, description="False: nothing of the run is kept.")

    @property
    def kept(self) -> bool:
        return self.store is not False


@dataclass(frozen=True)
class ChatQuestion:
    """One question with the turns before it."""

    question: str
    history: tuple[tuple[str, str], ...] = ()
    system: str = ""
    """What the client says that the model is; only `cairn-chat` reads it."""


def read_request(request: ChatRequest, *, most_chars: int) -> ChatQuestion:
    """The question of a chat completion.

    Raises:
        ApiError: there is no question, or one that cannot be taken.
    """
    if request.n not in (None, 1):
        raise bad_request(f"'n' is {request.n}, but a question gets one answer; leave 'n' out.", param="n")
    return read_question(request.messages, most_chars=most_chars, param="messages")


def read_question(messages: Sequence[Message], *, most_chars: int, param: str) -> ChatQuestion:
    """Find the question and the earlier turns in messages.

    Args:
        messages: oldest first.
        most_chars: of the question, and of the turns before it.
        param: the place of the messages in the request, for errors.

    Raises:
        ApiError: there is no question, or one that cannot be taken.
    """
    turns = list(_turns(_recent(messages, most_chars=_RAW * most_chars)))
    if not turns or turns[-1][0] != "user":
        raise bad_request("The last message must have the role 'user' and contain the question.", param=param)
    if kind := next((m.other_kind for m in messages if m.role == "user" and m.other_kind), None):
        why = "it has no 'text'" if kind in TEXT_TYPES else "only text is supported"
        raise bad_request(f"The content has a part of type {kind!r}, but {why}.", param=param)
    question = turns.pop()[1]
    if not question:
        raise bad_request("The question is empty; put it into the last message.", param=param)
    if len(question) > most_chars:
        raise bad_request(
            f"The question has {len(question):,} characters; at most {most_chars:,} are allowed. "
            "Put long texts into an index (cairn index build), from which the agent finds what it needs.",
            param=param,
            code="question_too_long",
        )
    system = "\n\n".join(message.text for message in messages if message.role in ("system", "developer"))
    return ChatQuestion(question=question, history=tuple(_pairs(turns, most_chars=most_chars)), system=system)


def without_reasoning(text: str) -> str:
    """An earlier answer as the policy wrote it: without its reasoning, and without what a profile put behind it."""
    return _without_tail(_REASONING.sub("", text).strip()).strip()


def _without_tail(text: str) -> str:
    """The text without the marks, sources and link definitions that a profile wrote behind an answer.

    It goes from the end, line by line: one pattern for all of it takes hours for a text that was made for that.
    """
    lines = text.split("\n")
    end = _without_blank(lines, _without_last(lines, len(lines), _DEFINITION))
    listed = _without_last(lines, end, _LISTED)
    if listed < end and listed and not lines[listed - 1].strip():
        end = _without_blank(lines, listed)
    text = "\n".join(lines[:end])
    end = len(text)
    while _LAST_MARK.search(text, max(0, end - _MARK_CHARS), end):
        end = text.rindex(" [", 0, end)
    return text[:end]


def _without_last(lines: Sequence[str], end: int, kind: re.Pattern[str]) -> int:
    """Where the lines of this kind begin that stand last before `end`."""
    while end and kind.fullmatch(lines[end - 1]):
        end -= 1
    return end


def _without_blank(lines: Sequence[str], end: int) -> int:
    while end and not lines[end - 1].strip():
        end -= 1
    return end


def _recent(messages: Sequence[Message], *, most_chars: int) -> list[Message]:
    """What users and assistants said: the question, and before it whole turns as far as they may be looked at."""
    recent: list[Message] = []
    said = [message for message in messages if message.role in ("user", "assistant")]
    for role, group in groupby(reversed(said), key=lambda message: message.role):
        turn = list(group)
        most_chars -= 0 if not recent and role == "user" else sum(len(message.text) for message in turn)
        if most_chars < 0:
            break
        recent += turn
    return recent[::-1]


def _turns(said: Iterable[Message]) -> Iterable[tuple[str, str]]:
    """What was said in turn: neighbours of one role joined, reasoning stripped."""
    for role, group in groupby(said, key=lambda message: message.role):
        texts = [without_reasoning(m.text) if role == "assistant" else m.text.strip() for m in group]
        yield role, "\n\n".join(text for text in texts if text)


def _pairs(turns: list[tuple[str, str]], *, most_chars: int) -> list[tuple[str, str]]:
    """The latest (question, answer) pairs that fit into `most_chars`, oldest first."""
    pairs = [
        (question, answer)
        for (asker, question), (answerer, answer) in pairwise(turns)
        if (asker, answerer) == ("user", "assistant") and question and answer
    ]
    kept: list[tuple[str, str]] = []
    for pair in reversed(pairs):
        most_chars -= len(pair[0]) + len(pair[1])
        if most_chars < 0:
            break
        kept.append(pair)
    return kept[::-1]
