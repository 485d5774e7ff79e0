"""DynaSearcher in miniature: several rewards, the graph beside the documents, short contexts."""

from typing import Any, Final

from lab.reproduce.design import (
    AREA,
    CURVES,
    INFERRED,
    Arm,
    Direction,
    Expected,
    Paper,
    Side,
    Training,
    Untested,
    baselines,
    differs,
    more,
    room,
    sides,
    uncertain,
)

_PROTOCOL: Final = "kg"
DOCUMENTS: Final = ("web", "news", "arxiv")
_FULL: Final = {"context_tokens": 3072}
_OTHERS: Final = ("multisearch", "evidence", "reflect")


def _training(name: str, says: str, weights: dict[str, float]) -> Training:
    reward = [{"name": "kg", "settings": {"variant": "printed"}, "weights": weights}]
    changes = {"reward": reward, "rollout": {"prompts": 3}}  # its rollouts take four times as long as others
    return Training(name=name, says=says, protocol=_PROTOCOL, changes=changes, world="hops")


def _arm(name: str, says: str, protocol: str = _PROTOCOL, **also: Any) -> Arm:
    return Arm(name=name, says=says, protocol=protocol, world="hops", **also)


def _no_better(other: str) -> Expected:
    return Expected(kind="no_more", first=Side(arm=f"full-{other}"), second=Side(arm="short-context"), margin=0.07,
                    spread=INFERRED)  # fmt: skip


KG: Final = Paper(
    name="kg",
    title="DynaSearcher",
    trainings=(
        _training("kg-all-rewards", "GRPO by accuracy and gain", {}),
        _training("kg-outcome", "GRPO by the same reward, the gain's weight at 0", {"gain": 0.0}),
    ),
    arms=(
        *baselines(_PROTOCOL, "hops"),
        _arm("documents-alone", "the shipped policy, without the graph", sources=DOCUMENTS, budgets=_FULL),
        _arm("graph-and-documents", "the shipped policy, documents and graph, five passages each", budgets=_FULL),
        _arm("short-context", "a quarter of the context, one passage each",
             budgets={"context_tokens": 768}, protocol_changes={"passages": 1}),
        *(_arm(f"full-{name}", f"the shipped policy under `{name}`, the whole context, five documents", name,
               budgets=_FULL, sources=DOCUMENTS, protocol_changes={"passages": 5}) for name in _OTHERS),
    ),
    directions=(
        Direction(
            name="kg.rewards",
            paper="kg",
            claim="Several rewards are better than the outcome alone.",
            figures="with the graph's tool, F1 53.9 → 58.9, EM 38.0 → 46.8",
            place="table 3",
            manipulated="the weight of the gain",
            margin_from="half of .088",
            expected=sides("kg-all-rewards", "kg-outcome", metric=AREA, margin=0.044, spread=CURVES),
            checks=(
                uncertain(_PROTOCOL, "all_gold", "the start searches to the end at times"),
                room(_PROTOCOL),
                differs("kg-all-rewards", "kg-outcome", "area_searches", "the course of searches differs"),
            ),
            departures=(
                "relevant passages are known exactly, where the paper compares titles and vectors",
                "KL weight 0 and top-p 1 for .001 and .95",
            ),
        ),
        Direction(
            name="kg.graph",
            paper="kg",
            claim="Graph and documents are better than documents alone at inference.",
            figures="F1 57.1 → 58.4, CEM 57.6 → 58.5, EM 45.2 → 46.3",
            place="table 3",
            manipulated="whether the graph answers, at inference",
            margin_from="half of .011",
            expected=sides("graph-and-documents", "documents-alone", margin=0.0055, spread=INFERRED),
            checks=(
                room(_PROTOCOL, "documents-alone"),
                more("graph-and-documents", "documents-alone", "answer_shown", "answers are shown more often"),
            ),
            departures=(
                "every fact is in a document, too, but triples are far easier to read for a policy of this size",
                "the filter of triples by a language model is left out",
            ),
            larger_because="chains of up to four hops, each of which the graph gives in one line",
        ),
        Direction(
            name="kg.short-context",
            paper="kg",
            claim="A quarter of the context with one passage is about as good as other methods with all of it.",
            figures="4k with top 1 about as good as others at 16k with top 5",
            place="figure 2",
            manipulated="context and passages, against the other protocols at full context",
            margin_from="the figure is a plot; about as good is within .07, which is what these seeds can tell",
            expected=tuple(_no_better(name) for name in _OTHERS),
            checks=(
                *(room(_PROTOCOL, f"full-{name}") for name in _OTHERS),
                *(more(f"full-{name}", "short-context", "passages", "it is shown more passages") for name in _OTHERS),
            ),
            departures=("one policy under four protocols, 768 and 3,072 tokens; only the short one has the graph",),
        ),
    ),
    untested=(
        Untested(
            name="kg.trained-with-graph",
            claim="Trained with the graph and used without it is still better than trained without.",
            figures="F1 57.1 / 54.2 (table 3)",
            why="It needs a start that never saw a graph: the shipped policy has, and one from nothing takes tens of "
            "millions of tokens.",
        ),
    ),
)  # fmt: skip
