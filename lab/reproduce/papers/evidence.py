"""R-Search with its evidence (RSTool) in miniature: the evidence, GRPO and PPO, evidence for another model."""

from typing import Any, Final

from lab.cli.reader import CHECKPOINT
from lab.reproduce.design import (
    AREA,
    CURVES,
    INFERRED,
    Arm,
    Check,
    Direction,
    Expected,
    Paper,
    Side,
    Training,
    baselines,
    differs,
    more,
    room,
    sides,
    uncertain,
)
from lab.reproduce.power import Spread

_PROTOCOL: Final = "evidence"
FULL: Final = "evidence-grpo"
WITHOUT: Final = "evidence-without"
_OF_ITS_OWN: Final = "evidence_without"
"""The protocol without the block."""
_READER: Final[dict[str, Any]] = {
    "local_reader": str(CHECKPOINT),
    "reward": [{"name": "evidence", "settings": {"variant": "printed"}}],
}
_NO_EVIDENCE: Final[dict[str, Any]] = {
    "reward": [
        {
            "name": "evidence",
            "settings": {"variant": "printed", "reader": "cover", "gamma_evidence": 0.0},
            "weights": {"evidence": 0.0},
        }
    ],
}
_PPO: Final[dict[str, Any]] = {
    "kind": "ppo",
    "learning": {"name": "ppo", "lam": 0.95, "critic_lr": 1e-3, "critic_epochs_first": 8},
    "optimizer": {"bf16": False, "warmup_steps": 2},
}
_EVIDENCE: Final = uncertain(_PROTOCOL, "evidence_gold", "the start's evidence holds a gold answer at times")
_HANDED: Final = "handed-over"
_DEPARTURES: Final = (
    "a span reader of two million parameters, trained in little worlds, for Llama-3.2-3B",
    "KL weight 0, eight steps from a start that was taught the format",
)


def _handed(metric: str) -> Side:
    return Side(arm=_HANDED, metric=metric)


def _against_reader(plain: str) -> Expected:
    return Expected(first=_handed("em_evidence"), second=_handed(plain), margin=0.025, spread=INFERRED)


def _gained(arm: str, start: str) -> Side:
    """The EM over the course of a training, above that of its own start."""
    return Side(arm=arm, metric=AREA, minus=start)


def _training(name: str, says: str, changes: dict[str, Any], protocol: str = _PROTOCOL) -> Training:
    return Training(name=name, says=says, protocol=protocol, changes=changes)


EVIDENCE: Final = Paper(
    name="evidence",
    title="R-Search with RSTool",
    trainings=(
        _training(FULL, "GRPO by answer, evidence and format; a reader of another architecture answers from the "
                  "evidence", _READER),
        _training(WITHOUT, "GRPO by answer and format, in rollouts without evidence", _NO_EVIDENCE, _OF_ITS_OWN),
        _training("evidence-ppo", "PPO by the reward of the first, as many rollouts a step", {**_READER, **_PPO}),
    ),
    arms=(
        *baselines(_PROTOCOL, "plain"),
        *baselines(_OF_ITS_OWN, "plain", WITHOUT),
        Arm(name=_HANDED, says="the trained policy's evidence in the reader's hands", policy=FULL,
            protocol=_PROTOCOL, reader=True),
    ),
    directions=(
        Direction(
            name="evidence.reward",
            paper="evidence",
            claim="The evidence and its reward are better than none.",
            figures="mean EM over seven sets, 3B .429 / .400, 7B .485 / .477; F1 .524 / .492 and .586 / .572",
            place="tables 3 and 6",
            manipulated="the block, and its parts of the reward",
            margin_from="half of .019, the mean of both sizes",
            expected=(Expected(first=_gained(FULL, "evidence-start"), second=_gained(WITHOUT, f"{WITHOUT}-start"),
                               margin=0.0095, spread=CURVES),),
            checks=(
                _EVIDENCE,
                room(_PROTOCOL),
                room(WITHOUT),
                more(FULL, "evidence-start", "evidence_gold", "the reward makes evidence that holds the answer"),
            ),
            departures=("the start knows both forms, each by a prompt of its own; what each training adds to it is "
                        "compared", *_DEPARTURES),
            larger_because="the start's evidence holds the answer in less than half of its rollouts, so there is much "
            "to gain; an effect of the paper's size would be undecided",
        ),
        Direction(
            name="evidence.grpo",
            paper="evidence",
            claim="GRPO is better than PPO.",
            figures="mean F1 over seven sets, 3B .524 / .496, 7B .586 / .545; 3B on Bamboogle 49.8 < 50.0",
            place="table 4, figure 3",
            manipulated="the optimiser",
            margin_from="half of .034, the mean of both sizes",
            expected=sides(FULL, "evidence-ppo", metric=AREA, margin=0.017, spread=CURVES),
            checks=(
                _EVIDENCE,
                room(_PROTOCOL),
                more("evidence-ppo", "evidence-start", "em", "PPO has learned something: it beats its own start"),
            ),
            departures=(
                "one setting of each; PPO learns from 36 questions a step, GRPO from six rollouts of six",
                "PPO's updates are float32 and its loss is of tokens, GRPO's bf16 and of rollouts",
                "PPO's first update has half of its rate, GRPO's the whole",
                "the margin is half of an effect in F1, and EM is compared",
                *_DEPARTURES,
            ),
        ),
        Direction(
            name="evidence.handed-over",
            paper="evidence",
            claim="Evidence handed to another model is better than what that model retrieves plainly.",
            figures="above vanilla retrieval for each model",
            place="figure 2",
            manipulated="what the reader is given: the evidence, or passages of one search",
            margin_from="the paper's figure is a plot; about .05",
            expected=(_against_reader("em_top_5"), _against_reader("em_as_many_as_fit")),
            checks=(
                Check(kind="differs", first=_handed("given_evidence"), second=_handed("given_top_5"),
                      says="the reader is given other shares of the gold passages"),
                Check(kind="room", first=Side(arm="evidence-oracle"), second=_handed("em_top_5"),
                      says="plain retrieval leaves the reader at least .15 below the oracle"),
            ),
            departures=(
                "as many characters in each condition; the evidence is its claims with the words that they quote",
                *_DEPARTURES[:1],
            ),
            larger_because="a question of several hops names what its last passage does not",
        ),
        Direction(
            name="evidence.more-searches",
            paper="evidence",
            claim="Searches a question grow during training.",
            figures="the curve rises",
            place="figure 3",
            manipulated="steps of GRPO",
            margin_from="the paper's figure is a plot; a tenth of a search",
            expected=sides(FULL, "evidence-start", metric="searches", margin=0.1,
                           spread=Spread(seeds=0.1, questions=0.7)),
            checks=(
                uncertain(_PROTOCOL, "all_gold", "the start searches to the end at times", but=("chain1", "choice")),
                room(_PROTOCOL),
                differs(FULL, "evidence-start", "em", "the training changes answers"),
            ),
            departures=("the start was taught to stop too early at times; a base model has other reasons",
                        *_DEPARTURES),
        ),
    ),
    untested=(),
)  # fmt: skip
