"""From settings to a ready `Agent`: the only module that knows every back end. Each is imported where it is built."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent.errors import CheckpointError, SetupError
from agent.protocols import TextProtocol, load_protocol, protocol_named
from agent.settings import CairnSettings

if TYPE_CHECKING:
    from agent.policies.base import Policy
    from agent.rollout import Agent
    from agent.sources.base import Source
    from agent.world import World

CHECKPOINTS: Final = Path(__file__).parent / "checkpoints"
SOURCE_NAMES: Final = ("web", "news", "arxiv", "wiki", "corpus", "kg")
"""The names that a plan may use besides `all`; a corpus answers under each of them."""


def build_agent(
    settings: CairnSettings, *, policy: "Policy | None" = None, sources: "Mapping[str, Source] | None" = None
) -> "Agent":
    """Make the agent that the settings describe; what the caller already has is taken as it is.

    Raises:
        SetupError: a setting, folder, protocol or checkpoint that cannot be used.
    """
    from agent.policies.base import Sampling
    from agent.rollout import Agent, Budgets

    protocol = build_protocol(settings)
    scope: Callable[[str], str | None] | None = None
    if sources is None and settings.corpus is None:
        world = _world(settings)
        sources = _chosen(settings, world.sources())
        # Of all policies only the embedded one knows so little that it must say so.
        scope = world.outside if policy is None and settings.policy == "embedded" else None
    return Agent(
        policy=policy or build_policy(settings),
        protocol=protocol,
        sources=build_sources(settings) if sources is None else sources,
        budgets=Budgets(**settings.budgets.model_dump(exclude_none=True)),
        sampling=Sampling(temperature=settings.temperature),
        scope=scope,
    )


def build_protocol(settings: CairnSettings) -> TextProtocol:
    """A built-in protocol by its name, or one from a file."""
    if settings.protocol.endswith(".toml"):
        return load_protocol(Path(settings.protocol))
    return protocol_named(settings.protocol)


def build_policy(settings: CairnSettings) -> "Policy":
    """The shipped checkpoint, or a model at an endpoint.

    Raises:
        SetupError: the endpoint is not named, or CheckpointError where the checkpoint cannot be used.
    """
    if settings.policy == "embedded":
        from agent.policies.embedded import EmbeddedPolicy

        return EmbeddedPolicy.load(settings.checkpoint or newest_checkpoint())
    if not settings.base_url or not settings.model:
        raise SetupError(
            "the policy 'openai' needs an endpoint and a model, "
            "for example: --base-url http://127.0.0.1:11434/v1 --model qwen3:8b"
        )
    from agent.policies.openai_chat import SOURCES, ChatPolicy

    return ChatPolicy(
        base_url=settings.base_url,
        model=settings.model,
        api_key=settings.api_key.get_secret_value(),
        sources=settings.sources or (("corpus",) if settings.corpus else SOURCES),
    )


def newest_checkpoint(folder: Path = CHECKPOINTS) -> Path:
    """The newest of the shipped checkpoints, in the form that `embedded` reads.

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


def build_sources(settings: CairnSettings) -> "dict[str, Source]":
    """The sources by the names that a plan uses; `all` asks each of them and fuses what they find.

    Raises:
        SetupError: a name that no source has, or a corpus or world that cannot be read.
    """
    if settings.corpus is None:
        return _chosen(settings, _world(settings).sources())
    from agent.sources.corpus import CorpusSource

    return _chosen(settings, dict.fromkeys((*SOURCE_NAMES, "all"), CorpusSource.open(settings.corpus)))


def _chosen(settings: CairnSettings, there: "Mapping[str, Source]") -> "dict[str, Source]":
    """Only the sources that the settings name, and `all`, which then asks only these."""
    if not settings.sources:
        return dict(there)
    if unknown := [name for name in settings.sources if name not in there]:
        raise SetupError(f"there is no source {unknown[0]!r}; there are: {', '.join(there)}")
    chosen = {name: there[name] for name in settings.sources}
    if "all" in chosen:
        return chosen
    if settings.corpus:
        return chosen | {"all": there["all"]}
    from agent.sources.fuse import FusedSource

    return chosen | {"all": FusedSource(chosen)}


def notices(settings: CairnSettings) -> list[str]:
    """What a person should know before believing an answer."""
    connect = "connect a model with --policy openai --base-url URL --model NAME"
    match settings.policy, settings.corpus:
        case "embedded", None:
            return [f"The embedded policy knows how to search the little world, and nothing else; {connect}."]
        case "embedded", _:
            return [f"The embedded policy was trained on the little world only; on your documents, {connect}."]
        case _, None:
            return ["The little world answers the searches; bring your documents with --corpus DIR."]
        case _:
            return []


def _world(settings: CairnSettings) -> "World":
    from agent.world import load_world

    return load_world(settings.world)
