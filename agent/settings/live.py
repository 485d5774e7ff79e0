"""The settings of live sources: keys, addresses, order, prices and limits. `agent.settings` reads them with its own."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode

WEB_BACKENDS: Final = ("tavily", "serper", "searxng", "brave", "exa", "ddgs")
NEWS_BACKENDS: Final = ("gnews", "serper", "tavily", "searxng", "brave", "exa", "ddgs")

WebBackend = Literal["tavily", "serper", "searxng", "brave", "exa", "ddgs"]
NewsBackend = Literal["gnews", "serper", "tavily", "searxng", "brave", "exa", "ddgs"]

KEYED: Final = ("tavily", "serper", "brave", "exa", "gnews")
"""The backends of web and news with a key: for each one there are the settings `NAME_key` and `NAME_url`."""
STANDALONE: Final = ("openalex", "pubmed", "semanticscholar", "github")
"""Sources of papers and code, searched where `sources` names them. They have the same settings; a key is optional."""

SCHOLARLY: Final = frozenset({"arxiv", "openalex", "pubmed", "semanticscholar"})
"""The sources of papers."""

BACKENDS: Final = (*KEYED, "searxng", "ddgs", "arxiv", "mediawiki", "wikidata", *STANDALONE)
"""Every backend that prices and limits may be set for; limits may be set for plug-ins, too."""


def needed(backend: str) -> str:
    """The setting without which a backend of web or news is left out, as the environment has it."""
    return "CAIRN_SEARXNG_URL" if backend == "searxng" else f"CAIRN_{backend.upper()}_KEY"


def split(value: object) -> object:
    """`web,news` as a flag or in the environment is the list ["web", "news"] of a file."""
    return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value


class LimitSettings(BaseModel):
    """How many requests one backend or plug-in may get. What is left out keeps the backend's own careful default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    concurrency: int | None = Field(default=None, ge=1)
    requests: float | None = Field(default=None, gt=0)
    per_seconds: float | None = Field(default=None, gt=0)
    timeout_seconds: float | None = Field(default=None, gt=0)
    tries: int | None = Field(default=None, ge=1, le=10)
    wait_seconds: float | None = Field(default=None, ge=0)
    longest_wait_seconds: float | None = Field(default=None, ge=0)
    breaker_failures: int | None = Field(default=None, ge=1)
    breaker_seconds: float | None = Field(default=None, gt=0)
    keep_seconds: float | None = Field(default=None, ge=0)
    stale_seconds: float | None = Field(default=None, ge=0)


class McpSettings(BaseModel):
    """One tool of an MCP server that is searched as a source."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = ""
    """Of a server that speaks streamable HTTP, such as https://example.org/mcp."""
    key_variable: str = ""
    """Environment variable whose value is sent to that URL as a bearer token; empty: none."""
    command: tuple[str, ...] = ()
    """Instead of a URL: the program, with its arguments, of a server that speaks on its standard streams."""
    environment: tuple[str, ...] = ()
    """Environment variables that its process gets beside PATH, HOME and their like."""
    tool: str = ""
    """Which tool; left out, the only one, or the only one whose name says that it searches."""
    query: str = ""
    """The argument that gets the query; left out, found in the tool's schema."""
    limit: str = ""
    """The argument that gets the number of results; left out, none."""
    arguments: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    """The other arguments, the same in each call."""
    seconds: float = Field(default=20.0, gt=0, le=600)
    """For one call."""
    most_chars: int = Field(default=50_000, ge=1, le=1_000_000)
    """Of one answer; the rest is left out."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.url) == bool(self.command):
            raise ValueError("it needs either a url or a command")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ValueError("its url must begin with https:// or http://")
        if "@" in self.url.partition("://")[2].partition("/")[0]:
            raise ValueError("its url must hold no password, since URLs reach logs; name a variable: key_variable")
        if (self.key_variable and not self.url) or (self.environment and not self.command):
            raise ValueError("key_variable belongs to a url, and environment to a command")
        return self


class LiveSettings(BaseSettings):
    """What the live sources need. A key is a secret: it is never printed, logged or put into a URL."""

    sources: Annotated[tuple[str, ...], NoDecode, BeforeValidator(split)] = ()
    """Names of the sources that a plan may ask; empty: all that there are but openalex, pubmed, semanticscholar and
    github, which are searched only where they are named here."""
    live: bool | None = None
    """Search the live web, news, arXiv, Wikipedia and Wikidata. Left out: where a key of the web or of news or
    `searxng_url` is set, or `sources` names one of papers or code."""
    web: Annotated[tuple[WebBackend, ...], NoDecode, BeforeValidator(split)] = WEB_BACKENDS
    """Order in which the web's backends are searched; those without a key or URL are left out."""
    news: Annotated[tuple[NewsBackend, ...], NoDecode, BeforeValidator(split)] = NEWS_BACKENDS
    """The same for news."""
    news_enough: int = Field(default=3, ge=1)
    """With fewer passages than this from one backend of news, the next one is searched too."""
    tavily_key: SecretStr = SecretStr("")
    """Of Tavily: web and news."""
    serper_key: SecretStr = SecretStr("")
    """Of Serper: web and news."""
    brave_key: SecretStr = SecretStr("")
    """Of Brave Search: web and news."""
    exa_key: SecretStr = SecretStr("")
    """Of Exa: web and news."""
    gnews_key: SecretStr = SecretStr("")
    """Of GNews: news."""
    openalex_key: SecretStr = SecretStr("")
    """Of OpenAlex, for more than about 100 searches a day."""
    pubmed_key: SecretStr = SecretStr("")
    """Of NCBI, for more than three requests a second."""
    semanticscholar_key: SecretStr = SecretStr("")
    """Of Semantic Scholar, for requests of your own beside the pool that all others share."""
    github_key: SecretStr = SecretStr("")
    """A token of GitHub, for more than ten requests a minute."""
    searxng_url: str = ""
    """Of your own SearXNG instance, with `json` among its `search.formats`."""
    tavily_url: str = "https://api.tavily.com"
    serper_url: str = "https://google.serper.dev"
    brave_url: str = "https://api.search.brave.com"
    exa_url: str = "https://api.exa.ai"
    gnews_url: str = "https://gnews.io"
    arxiv_url: str = "https://export.arxiv.org"
    wiki_url: str = "https://{lang}.wikipedia.org"
    wikidata_url: str = "https://www.wikidata.org"
    sparql_url: str = "https://query.wikidata.org"
    openalex_url: str = "https://api.openalex.org"
    pubmed_url: str = "https://eutils.ncbi.nlm.nih.gov"
    semanticscholar_url: str = "https://api.semanticscholar.org"
    github_url: str = "https://api.github.com"
    plugins: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict[str, Mapping[str, Any]])
    """Options of sources that other packages bring, by the source's name."""
    mcp: Mapping[str, McpSettings] = Field(default_factory=dict[str, McpSettings])
    """MCP servers that are searched, by the source's name: `[mcp.NAME]` with `url` or `command`, `tool`, `query`."""
    prices: Mapping[str, float] = Field(default_factory=dict[str, float])
    """US dollars for one credit of a backend, by its name, where your plan differs from the usual price."""
    limits: Mapping[str, LimitSettings] = Field(default_factory=dict[str, LimitSettings])
    """Limits of a backend, or of a plug-in or MCP server with a table of its own, by its name."""

    cache: str = "~/.cache/cairn/searches"
    """Folder of the query cache, or a redis:// URL; empty: no cache."""
    pages: int = Field(default=0, ge=0, le=10)
    """Fetch the pages behind the first N hits of web and news, and show the part that fits the query."""

    kg: Path | None = None
    """A graph file of `cairn kg build`; left out, live searches ask Wikidata."""
    filtered: Annotated[tuple[str, ...], NoDecode, BeforeValidator(split)] = ()
    """Sources whose passages a model looks through, keeping at most 5 a search, for example kg, or all."""
    filter_url: str = ""
    """OpenAI-compatible endpoint of that model; left out, the policy's own."""
    filter_model: str = ""
    """Its name there; left out, the policy's."""
    filter_key: SecretStr = SecretStr("")
    """Of that endpoint."""
    retrieval: Literal["auto", "bm25", "dense", "hybrid"] = "auto"
    """How a corpus is searched: auto is hybrid where its index has a dense part, BM25 where not."""
    watch: bool = False
    """Watch the documents of `corpus`, and update their index when they change; for a server."""
    rerank: str = ""
    """Name or folder of a cross-encoder that orders the corpus's best passages again."""

    @field_validator("prices", "limits")
    @classmethod
    def _of_backends(cls, given: Mapping[str, Any], info: ValidationInfo) -> Mapping[str, Any]:
        own = (*info.data.get("plugins", ()), *info.data.get("mcp", ())) if info.field_name == "limits" else ()
        known = (*BACKENDS, *own)
        for name in given:
            if name not in known:
                raise ValueError(f"there is no backend {name!r}; choose from: {', '.join(known)}")
        return given

    @property
    def is_live(self) -> bool:
        """Whether the sources are the live ones."""
        return bool(self._set_up or self.standalone) if self.live is None else self.live

    @property
    def standalone(self) -> tuple[str, ...]:
        """The sources of papers and code that `sources` names."""
        return tuple(name for name in self.sources if name in STANDALONE)

    @property
    def usable(self) -> tuple[str, ...]:
        """The backends of web and news that have their key, their URL or their package."""
        return (*self._set_up, "ddgs") if find_spec("ddgs") else self._set_up

    @property
    def _set_up(self) -> tuple[str, ...]:
        """Those with their key or URL: a package alone sends nothing anywhere."""
        needs: dict[str, str] = {name: getattr(self, f"{name}_key").get_secret_value() for name in KEYED}
        needs["searxng"] = self.searxng_url
        return tuple(name for name, has in needs.items() if has)
