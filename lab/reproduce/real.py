"""Claims about inference on real questions, answered by the shipped policy that reads English. Data, as in `papers`.

A seed is a set of questions here: there is one policy, greedy, and what varies is the questions.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from agent.evidence import Frozen
from lab.reproduce.design import Check, Direction, Expected, PaperName, Side, Untested, more
from lab.reproduce.power import Spread

Group = Literal["hops", "facts"]
RECIPE: Final = Path(__file__).parent.parent / "recipes" / "reproduce_real.toml"
_SPREAD: Final = Spread(seeds=0.0, questions=0.35)
"""Of EM between two set-ups of one policy, over questions: they disagree on one of eight."""
_ONE_POLICY: Final = "one policy of 135 million parameters, greedy, that was trained with BM25 and three passages"


class RealSet(Frozen):
    """Questions, and what is searched for them; paths are below the data folder."""

    name: str
    group: Group
    questions: str
    corpus: str
    triples: str = ""
    """The field of a question that holds a triple for the graph; empty: there is no graph."""
    share: float = Field(default=1.0, gt=0, le=1)
    """Of these triples, drawn by a hash, that are in the graph: no graph has every fact."""


class RealRecipe(Frozen):
    """A file of `kind = "reproduce_real"`."""

    kind: Literal["reproduce_real"]
    name: str
    questions: int = Field(ge=1)
    dense: str
    """The model of the dense parts."""
    sets: Annotated[tuple[RealSet, ...], Field(alias="set", min_length=1)]


class RealArm(Frozen):
    """One way to answer."""

    name: str
    says: str
    group: Group = "hops"
    protocol: Literal["cairn", "evidence"] = "cairn"
    passages: int = 3
    """A query."""
    retrieval: Literal["bm25", "dense", "hybrid"] = "bm25"
    queries: int = 0
    """Most of one search; 0: as many as the policy writes."""
    context: int = 0
    """Tokens; 0: the model's."""
    documents: bool = True
    graph: bool = False


_BASE: Final = "real"
_LEAKING: Final = "the graph is half of the questions' own facts, drawn by a hash, and no others: an upper bound"
ARMS: Final = (
    RealArm(name=_BASE, says="three passages a query, BM25, as many queries as the policy writes"),
    RealArm(name="real-one-query", says="a search ends behind its first query", queries=1),
    RealArm(name="real-top-1", says="one passage a query", passages=1),
    RealArm(name="real-top-2", says="two passages a query", passages=2),
    RealArm(name="real-top-5", says="five passages a query", passages=5),
    RealArm(name="real-dense", says="searched by MiniLM's vectors", retrieval="dense"),
    RealArm(name="real-hybrid", says="both fused by reciprocal rank", retrieval="hybrid"),
    RealArm(name="real-short", says="a quarter of the context, one passage", context=1024, passages=1),
    RealArm(name="real-evidence", says="one query a search under `evidence`, five passages, 4,096 tokens",
            protocol="evidence", passages=5, context=4096),
    RealArm(name="real-documents", says="documents alone", group="facts"),
    RealArm(name="real-graph", says="the graph alone", group="facts", documents=False, graph=True),
    RealArm(name="real-both", says="documents and graph", group="facts", graph=True),
)  # fmt: skip


def _more(first: str, second: str, margin: float, metric: str = "em", spread: Spread = _SPREAD) -> Expected:
    one, two = (Side(arm=name, metric=metric) for name in (first, second))
    return Expected(first=one, second=two, margin=margin, spread=spread)


def _claim(
    paper: PaperName,
    name: str,
    claim: str,
    *,
    figures: str,
    place: str,
    manipulated: str,
    margin_from: str,
    expected: tuple[Expected, ...],
    checks: tuple[Check, ...],
    departures: tuple[str, ...] = (),
) -> Direction:
    return Direction(
        name=f"{paper}.{name}",
        paper=paper,
        claim=claim,
        figures=figures,
        place=place,
        manipulated=manipulated,
        margin_from=margin_from,
        expected=expected,
        checks=checks,
        departures=(*departures, _ONE_POLICY),
    )


REAL: Final = (
    _claim(
        "multisearch",
        "several-queries",
        "Several queries a search are better than one.",
        figures="full above single-query retrieval (prose)",
        place="table 2",
        manipulated="queries a search: as written, or the first",
        margin_from="as for `multisearch.gdpo`",
        expected=(_more(_BASE, "real-one-query", 0.0145),),
        checks=(more(_BASE, "real-one-query", "queries", "it has more queries a round"),),
        departures=("one policy, cut short",),
    ),
    _claim(
        "multisearch",
        "fewer-rounds",
        "Several queries a search need fewer rounds than one.",
        figures="fewer rounds (prose)",
        place="figure 3",
        manipulated="queries a search: as written, or the first",
        margin_from="a twentieth of a round",
        expected=(_more("real-one-query", _BASE, 0.05, "rounds", Spread(seeds=0.0, questions=0.6)),),
        checks=(more(_BASE, "real-one-query", "queries", "it has more queries a round"),),
        departures=("one policy, cut short", "the figure compares with Search-R1, which has no merges either"),
    ),
    _claim(
        "multisearch",
        "depth-up-to-three",
        "More passages a query help up to three.",
        figures="the curve rises until k = 3",
        place="figure 6",
        manipulated="passages a query",
        margin_from="the paper's figure is a plot; about .02 a step",
        expected=(_more("real-top-2", "real-top-1", 0.01), _more(_BASE, "real-top-2", 0.01)),
        checks=(
            more("real-top-2", "real-top-1", "passages", "more is shown"),
            more(_BASE, "real-top-2", "passages", "more is shown"),
        ),
    ),
    _claim(
        "multisearch",
        "depth-from-four",
        "From four passages a query on, it gets worse.",
        figures="the curve falls from k = 4",
        place="figure 6",
        manipulated="passages a query: three or five",
        margin_from="the paper's figure is a plot; about .02 a step",
        expected=(_more(_BASE, "real-top-5", 0.01),),
        checks=(more("real-top-5", _BASE, "passages", "more is shown"),),
    ),
    _claim(
        "multisearch",
        "dense",
        "Dense retrieval is better than BM25.",
        figures="E5 above BM25 (prose)",
        place="table 9",
        manipulated="the retriever",
        margin_from="as for `multisearch.gdpo`",
        expected=(_more("real-dense", _BASE, 0.0145),),
        checks=(Check(kind="differs", first=Side(arm="real-dense", metric="answer_shown"),
                      second=Side(arm=_BASE, metric="answer_shown"), says="other shares of answers are shown"),),
        departures=("MiniLM of 22 million parameters for E5-base; `real-hybrid` has both",),
    ),
    _claim(
        "dag",
        "several-sources",
        "Several sources are better than one.",
        figures="FinSearchBench-24 78.13 / 54.63, SearchExpertBench-25 73.0 / 63.0",
        place="table 3",
        manipulated="sources that answer: documents and graph, or either",
        margin_from="half of .168",
        expected=(_more("real-both", "real-documents", 0.084), _more("real-both", "real-graph", 0.084)),
        checks=tuple(
            more("real-both", alone, "answer_shown", "both show answers that one does not")
            for alone in ("real-documents", "real-graph")
        ),
        departures=(
            "two sources of one kind of knowledge",
            _LEAKING,
            "the check was changed when the graph had been halved: shares of two sources can be alike, and are",
        ),
    ),
    _claim(
        "kg",
        "graph",
        "Graph and documents are better than documents alone at inference.",
        figures="F1 57.1 → 58.4, CEM 57.6 → 58.5, EM 45.2 → 46.3",
        place="table 3",
        manipulated="whether the graph answers beside the documents",
        margin_from="half of .011",
        expected=(_more("real-both", "real-documents", 0.0055),),
        checks=(more("real-both", "real-documents", "answer_shown", "answers are shown more often"),),
        departures=("a graph of one triple a question for Wikidata5M, without a filter", _LEAKING),
    ),
    _claim(
        "kg",
        "short-context",
        "A quarter of the context with one passage is about as good as other methods with all of it.",
        figures="4k with top 1 about as good as others at 16k with top 5",
        place="figure 2",
        manipulated="context and passages, against another protocol at full context",
        margin_from="the figure is a plot; about as good is within .05",
        expected=(Expected(kind="no_more", first=Side(arm="real-evidence"), second=Side(arm="real-short"),
                           margin=0.05, spread=_SPREAD),),
        checks=(more("real-evidence", "real-short", "environment_tokens", "it is shown more"),),
        departures=("documents alone, under `cairn`",),
    ),
)  # fmt: skip


REAL_UNTESTED: Final = (
    Untested(
        name="evidence.handed-over",
        claim="Evidence handed to another model is better than what that model retrieves plainly.",
        figures="figure 2",
        why="It needs another model that reads English: Cairn brings one alone, and the span reader of "
        "`evidence.handed-over` knows little worlds only.",
    ),
    Untested(
        name="multisearch.three-queries",
        claim="Three queries a search are better than one and than two.",
        figures="figure 5",
        why="The policy hardly ever writes more than two queries a search.",
    ),
)


def real_arms(directions: Iterable[Direction] = REAL) -> list[RealArm]:
    """The arms of these claims, and the hybrid one, which no claim is about."""
    names = {side.arm for one in directions for side in one.sides} | {"real-hybrid"}
    return [arm for arm in ARMS if arm.name in names]
