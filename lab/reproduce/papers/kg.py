"""DynaSearcher in miniature: several rewards, the graph beside the documents, short contexts."""

from typing import Any, Final

from lab.reproduce.design import Arm, Direction, Paper, Training, sides

_PROTOCOL: Final = "kg"
DOCUMENTS: Final = ("web", "news", "arxiv")
_REWARD: Final = [{"name": "kg", "settings": {"variant": "printed"}}]
_OUTCOME: Final = [{"name": "outcome", "settings": {"variant": "printed", "answer": "f1", "format_bonus": 0.1}}]
_SHORT: Final = {"context_tokens": 768}
_LONG: Final = {"context_tokens": 3072}


def _training(name: str, says: str, reward: list[dict[str, Any]], sources: tuple[str, ...] = ()) -> Training:
    return Training(name=name, says=says, protocol=_PROTOCOL, changes={"reward": reward}, sources=sources)


def _arm(name: str, says: str, **more: Any) -> Arm:
    return Arm(name=name, says=says, protocol=_PROTOCOL, **more)


KG: Final = Paper(
    name="kg",
    title="DynaSearcher",
    trainings=(
        _training("kg-all-rewards", "GRPO by accuracy and gain", _REWARD),
        _training("kg-outcome", "GRPO by outcome and format alone", _OUTCOME),
        _training("kg-documents", "GRPO by accuracy and gain, in worlds without their graph", _REWARD, DOCUMENTS),
    ),
    arms=(
        _arm("graph-and-documents", "documents and graph, five passages each", budgets=_LONG),
        _arm("documents-alone", "the same without the graph", budgets=_LONG, sources=DOCUMENTS),
        _arm("short-context", "a quarter of the context, one passage each",
               budgets=_SHORT, protocol_changes={"passages": 1}),
        _arm("kg-graph-taken-away", "trained with the graph, evaluated without it",
               policy="kg-all-rewards", sources=DOCUMENTS),
    ),
    directions=(
        Direction(
            name="kg.rewards",
            paper="kg",
            claim="Several rewards are better than the outcome alone.",
            figures="F1 53.9 → 58.9, EM 38.0 → 46.8",
            place="table 3",
            expected=(*sides("kg-all-rewards", "kg-outcome"), *sides("kg-all-rewards", "kg-outcome", metric="f1")),
            cannot="Relevant passages are known exactly here, where the paper compares titles and vectors.",
        ),
        Direction(
            name="kg.graph",
            paper="kg",
            claim="Graph and documents are better than documents alone at inference.",
            figures="F1 57.1 → 58.4, CEM 57.6 → 58.5, EM 45.2 → 46.3",
            place="table 3",
            expected=sides("graph-and-documents", "documents-alone"),
            cannot="Some facts of the little world are in the graph alone. The filter of triples by a language model "
            "is left out.",
        ),
        Direction(
            name="kg.trained-with-graph",
            paper="kg",
            claim="Trained with the graph and used without it is still better than trained without.",
            figures="57.1 / 54.2",
            place="table 3",
            expected=sides("kg-graph-taken-away", "kg-documents"),
            cannot="The shared start has learned with the graph in both arms.",
        ),
        Direction(
            name="kg.short-context",
            paper="kg",
            claim="A quarter of the context with one passage is about as good as all of it with five.",
            figures="4k with top 1 about as good as others at 16k with top 5",
            place="figure 2",
            expected=sides("short-context", "graph-and-documents", kind="same"),
            cannot="Contexts are 768 and 3,072 tokens; the paper compares its 4k with other systems at 16k, not with "
            "its own.",
        ),
    ),
)  # fmt: skip
