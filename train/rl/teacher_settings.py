"""What a recipe says of a teacher, whose log-probabilities guide reinforcement learning. Nothing runs here."""

from pydantic import BaseModel, ConfigDict, Field


class TeacherSettings(BaseModel):
    """A model that scores the tokens that the policy sampled: on-policy distillation (docs/distill.md)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    """With `base_url` the name of the model there; else a folder in the hub's form or of an adapter, or a name."""
    base_url: str = ""
    """Of a server that gives the log-probabilities of a prompt's tokens, as vLLM's does (`prompt_logprobs`), usually
    ending in /v1. Its key is `CAIRN_API_KEY`. Empty: the model is loaded into this process."""
    weight: float = Field(default=1.0, gt=0)
    """Of the teacher's log-probability minus the policy's, in a token's advantage."""
    most: float = Field(default=10.0, gt=0)
    """How large that difference may be, in nats; a larger one is cut to it."""
    only_wrong: bool = False
    """Imitate only in rollouts whose answer is wrong (DGPO, arXiv 2508.20324). The others learn from their reward."""
    reward: float = Field(default=0.0, ge=0)
    """Weight of the reward's advantage in rollouts that imitate; 0: the teacher's words alone count there."""

    def check(self, *, sampling: tuple[float, float], all: bool) -> None:
        """Refuse rollouts that say less of the policy than a teacher needs.

        Args:
            sampling: their temperature and top_p.
            all: whether all groups are learned from, also those whose rewards are equal.

        Raises:
            ValueError: the sentence says what to change.
        """
        if sampling != (1, 1):
            raise ValueError("[teacher] needs rollouts at temperature 1 and top_p 1: others are not the policy's words")
        if not all:
            raise ValueError("[teacher] also teaches where all rewards of a group are equal: write resample = 0")
