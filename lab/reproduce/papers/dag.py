"""Reasoning-Search (2506.08352) in miniature: one plan over several sources, and what it is trained on."""

from typing import Any, Final

from lab.reproduce.design import START, Arm, Direction, Paper, QuestionList, Training, sides

_PROTOCOL: Final = "dag"
_REWARD: Final = [{"name": "dag", "settings": {"variant": "printed", "answer": "f1"}}]
_CHANGES: Final[dict[str, Any]] = {"reward": _REWARD, "learning": {"name": "grpo", "divide_by_std": False}}


def _training(name: str, says: str, **more: Any) -> Training:
    return Training(name=name, says=says, protocol=_PROTOCOL, changes=_CHANGES, world="flat", **more)


def _listed(name: str, says: str, questions: QuestionList) -> Training:
    """Under a protocol with several rounds: one plan cannot follow a chain."""
    reward = [{"name": "outcome"}]
    return Training(name=name, says=says, protocol="multisearch", changes={"reward": reward}, questions=questions)


def _arm(name: str, says: str, **more: Any) -> Arm:
    return Arm(name=name, says=says, **{"protocol": _PROTOCOL, "world": "flat", **more})


_TRAININGS: Final = (
    _training("dag-trained", "GRPO without division by the deviation, by the printed reward"),
    _listed("pipeline-questions", "GRPO by the outcome, on questions over several sources", "pipeline"),
    _listed("single-source-questions", "GRPO by the outcome, on questions over one source", "single"),
)

DAG: Final = Paper(
    name="dag",
    title="Reasoning-Search (2506.08352)",
    trainings=_TRAININGS,
    arms=(
        _arm("dag-all-sources", "one plan over web, news, arXiv and graph"),
        _arm("dag-web-alone", "nodes of other sources than the web are dropped", sources=("web",)),
        _arm("dag-start", "the shared start, untrained", policy=START),
        _arm("step-by-step", "one query at a time, as often as it likes", protocol="evidence"),
    ),
    directions=(
        Direction(
            name="dag.several-sources",
            paper="dag",
            claim="Several sources are better than one.",
            figures="FinSearchBench-24 78.13 / 54.63, SearchExpertBench-25 73.0 / 63.0",
            place="table 3",
            expected=sides("dag-all-sources", "dag-web-alone"),
            cannot="The world puts seven facts of ten into one source alone, so several sources must help; how much "
            "says nothing of real ones.",
        ),
        Direction(
            name="dag.trained",
            paper="dag",
            claim="Training is better than no training.",
            figures="FinSearchBench-24 78.13 / 49.28, SearchExpertBench-25 73.0 / 64.0",
            place="table 3",
            expected=sides("dag-trained", "dag-start"),
            cannot="The start was made weak on purpose.",
        ),
        Direction(
            name="dag.more-tokens-than-one-source",
            paper="dag",
            claim="The full system writes somewhat more tokens than with one source.",
            figures="1,536 tokens against 1,317 and 1,263",
            place="table 3",
            expected=sides("dag-all-sources", "dag-web-alone", metric="policy_tokens", margin=5),
            cannot="A plan is written before it is known that its sources are missing.",
        ),
        Direction(
            name="dag.fewer-tokens-than-many-turns",
            paper="dag",
            claim="One plan writes far fewer tokens than systems that search again and again.",
            figures="1,536 tokens against several thousands of multi-agent systems",
            place="table 1",
            expected=sides("step-by-step", "dag-all-sources", metric="policy_tokens", margin=5),
            cannot="Who searches again and again is one small policy with one query a round, not several large agents.",
        ),
        Direction(
            name="dag.pipeline",
            paper="dag",
            claim="Questions over several sources are better to train on than questions over one.",
            figures="both filters are part of the method; no figure",
            place="section 3.5",
            expected=sides("pipeline-questions", "single-source-questions"),
            cannot="The world's grammar writes the questions and knows their gold documents. Those over several "
            "sources are also longer chains, and many questions of the test are not.",
        ),
    ),
)
