"""R-Search with its evidence (RSTool) in miniature: the evidence's reward, GRPO and PPO, evidence for another model."""

from typing import Any, Final

from lab.cli.reader import CHECKPOINT
from lab.reproduce.design import START, Arm, Direction, Expected, Paper, Side, Training, sides

_PROTOCOL: Final = "evidence"
FULL: Final = "evidence-grpo"
_SETTINGS: Final = {"variant": "printed"}
_REWARD: Final = [{"name": "evidence", "settings": _SETTINGS}]
_PPO: Final[dict[str, Any]] = {
    "kind": "ppo",
    "learning": {"name": "ppo", "lam": 0.95, "critic_lr": 3e-4, "critic_epochs_first": 4},
    "optimizer": {"bf16": False},
}


def _training(name: str, says: str, changes: dict[str, Any]) -> Training:
    return Training(name=name, says=says, protocol=_PROTOCOL, changes={"local_reader": str(CHECKPOINT), **changes})


def _against_reader(plain: str) -> Expected:
    evidence = Side(arm="handed-over", metric="em_evidence")
    return Expected(first=evidence, second=Side(arm="handed-over", metric=plain))


_TRAININGS: Final = (
    _training(FULL, "GRPO by answer, evidence and format; a reader of another architecture answers from the evidence",
              {"reward": _REWARD}),
    _training("evidence-unrewarded", "GRPO without the reader's share",
              {"reward": [{"name": "evidence", "settings": _SETTINGS, "weights": {"evidence": 0.0}}]}),
    _training("evidence-ppo", "PPO by the same reward, as many rollouts a step", {"reward": _REWARD, **_PPO}),
)  # fmt: skip

EVIDENCE: Final = Paper(
    name="evidence",
    title="R-Search with RSTool",
    trainings=_TRAININGS,
    arms=(
        Arm(name="handed-over", says="our evidence in a reader's hands", protocol=_PROTOCOL, reader=True),
        Arm(name="evidence-start", says="the shared start, untrained", policy=START, protocol=_PROTOCOL),
    ),
    directions=(
        Direction(
            name="evidence.reward",
            paper="evidence",
            claim="The evidence and its reward are better than none.",
            figures="better on nearly all sets, but 7B on Bamboogle EM 42.4 < 44.0",
            place="table 3",
            expected=sides(FULL, "evidence-unrewarded"),
            cannot="Only the reward is taken away; a policy without evidence blocks would need another start.",
        ),
        Direction(
            name="evidence.grpo",
            paper="evidence",
            claim="GRPO is better than PPO.",
            figures="faster and higher, but 3B on Bamboogle F1 49.8 < 50.0",
            place="table 4, figure 3",
            expected=sides(FULL, "evidence-ppo"),
            cannot="One setting of each; a critic has few steps to learn anything in.",
        ),
        Direction(
            name="evidence.handed-over",
            paper="evidence",
            claim="Evidence handed to another model is better than what that model retrieves plainly.",
            figures="above vanilla retrieval for each model",
            place="figure 2",
            expected=(_against_reader("em_top_5"), _against_reader("em_as_many_as_fit")),
            cannot="The other model is a small span reader that was trained on the same kind of world.",
        ),
        Direction(
            name="evidence.more-searches",
            paper="evidence",
            claim="Searches a question grow during training.",
            figures="the curve rises",
            place="figure 3",
            expected=sides(FULL, "evidence-start", metric="searches", margin=0.1),
            cannot="The start was taught to stop too early, so there is room to grow; a base model has other reasons.",
        ),
    ),
)
