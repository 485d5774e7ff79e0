"""Reasoning-Search (2506.08352) in miniature: one plan over several sources, and what it is trained on."""

from typing import Any, Final

from lab.reproduce.design import (
    AREA,
    CURVES,
    ENDS,
    INFERRED,
    Arm,
    Direction,
    Paper,
    QuestionList,
    Training,
    Untested,
    baselines,
    differs,
    more,
    room,
    sides,
    uncertain,
)
from lab.reproduce.power import Spread

_PROTOCOL: Final = "dag"
_REWARD: Final = [{"name": "dag", "settings": {"variant": "printed", "answer": "f1"}}]
_CHANGES: Final[dict[str, Any]] = {"reward": _REWARD, "learning": {"name": "grpo", "divide_by_std": False}}
_WEB: Final = "dag-web-alone"
_PLANS: Final = uncertain(
    _PROTOCOL, "all_gold", "the start's plans look for both things at times", types=("comparison", "intersection")
)
_SMALL: Final = "a policy of four million parameters from a start that was taught the format"


def _listed(name: str, says: str, questions: QuestionList) -> Training:
    """Under a protocol with several rounds: one plan cannot follow a chain."""
    reward = [{"name": "outcome"}]
    return Training(name=name, says=says, protocol="multisearch", changes={"reward": reward}, questions=questions)


DAG: Final = Paper(
    name="dag",
    title="Reasoning-Search (2506.08352)",
    trainings=(
        Training(
            name="dag-trained",
            says="GRPO without division by the deviation, by the printed reward",
            protocol=_PROTOCOL,
            changes=_CHANGES,
            world="flat",
        ),
        _listed("pipeline-questions", "GRPO by the outcome, on a build of questions over several sources", "pipeline"),
        _listed("single-source-questions", "GRPO by the outcome, on a build of questions over one source", "single"),
    ),
    arms=(
        *baselines(_PROTOCOL, "flat"),
        *baselines("multisearch", "plain", "multisearch-plain"),
        Arm(name=_WEB, says="the web answers every node, whatever source it names", protocol=_PROTOCOL, world="flat",
            policy="dag-trained", sources=("web",)),
    ),
    directions=(
        Direction(
            name="dag.several-sources",
            paper="dag",
            claim="Several sources are better than one.",
            figures="FinSearchBench-24 78.13 / 54.63, SearchExpertBench-25 73.0 / 63.0",
            place="table 3",
            manipulated="sources that answer, at inference, with the trained policy",
            margin_from="half of .168, the mean of both",
            expected=sides("dag-trained", _WEB, margin=0.084, spread=INFERRED),
            checks=(room(_PROTOCOL, _WEB), more("dag-trained", _WEB, "gold_found", "more gold passages are found")),
            departures=(
                "questions are of the kind that needs several sources, as the paper's are; how much says nothing of "
                "others",
                "web, news, arXiv and a graph in one little world for live sources",
            ),
        ),
        Direction(
            name="dag.trained",
            paper="dag",
            claim="Training is better than no training.",
            figures="FinSearchBench-24 78.13 / 49.28, SearchExpertBench-25 73.0 / 64.0",
            place="table 3",
            manipulated="steps of GRPO",
            margin_from="half of .189, the mean of both",
            expected=sides("dag-trained", "dag-start", margin=0.095, spread=ENDS),
            checks=(
                _PLANS,
                room(_PROTOCOL),
                differs("dag-trained", "dag-start", "searches", "the trained plans have other numbers of queries"),
            ),
            departures=("F1 for the judge", "KL weight 0", _SMALL),
        ),
        Direction(
            name="dag.more-tokens",
            paper="dag",
            claim="The trained system writes somewhat more tokens than the untrained one.",
            figures="1,536 tokens against 1,263; 1,811 against 1,491",
            place="table 3",
            manipulated="steps of GRPO",
            margin_from="half of a fifth of the start's 146.5 tokens",
            expected=sides("dag-trained", "dag-start", metric="policy_tokens", margin=14.7,
                           spread=Spread(seeds=8.0, questions=25.0)),
            checks=(
                _PLANS,
                room(_PROTOCOL),
                differs("dag-trained", "dag-start", "searches", "the trained plans have other numbers of queries"),
            ),
            departures=("tokens of a plan and an answer; the paper's hold reasoning", _SMALL),
        ),
        Direction(
            name="dag.pipeline",
            paper="dag",
            claim="Questions over several sources are better to train on than questions over one.",
            figures="both filters are part of the method; no figure",
            place="section 3.5",
            manipulated="bundles of the build: of several sources, or of one",
            margin_from="the paper has no figure: half of what the seeds can see",
            expected=sides("pipeline-questions", "single-source-questions", metric=AREA, margin=0.016, spread=CURVES),
            checks=(
                room("multisearch-plain"),
                differs("pipeline-questions", "single-source-questions", "area_searches",
                        "the course of searches differs"),
            ),
            departures=(
                "the world's grammar writes the questions, and both filters are exact; in the paper a model does both",
                "hashed words for Sentence-BERT, in the clusters",
                "under the protocol of MultiSearch, since one plan cannot follow a chain: it names no source, so the "
                "lists differ in what their questions ask",
            ),
        ),
    ),
    untested=(
        Untested(
            name="dag.fewer-tokens-than-many-turns",
            claim="One plan writes far fewer tokens than multi-agent systems.",
            figures="1,536 tokens against several thousands (table 1)",
            why="There is no multi-agent system of this size; one policy with many rounds would be another claim.",
        ),
        Untested(
            name="dag.more-tokens-than-one-source",
            claim="The full system writes somewhat more tokens than with one source.",
            figures="1,536 tokens against 1,317 (table 3)",
            why="A plan is written before it is known which sources are missing; with one source from the start of "
            "training on, the protocol would be another one.",
        ),
    ),
)  # fmt: skip
