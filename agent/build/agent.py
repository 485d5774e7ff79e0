"""From settings to a ready `Agent`. Each engine is imported where it is built; sources are `agent.build.sources`'s."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, assert_never

from agent.build.shipped import is_shipped, is_small, newest_checkpoint, with_policy
from agent.build.sources import build_sources, chosen, distinct, uses_manual, uses_world
from agent.errors import SetupError
from agent.parallel.processes import SAFE_PATH
from agent.policies.model_folder import as_in_training, with_passages, without_dates
from agent.protocols import TextProtocol, load_protocol, protocol_named, protocol_names
from agent.protocols.registry import whole, with_texts
from agent.settings import CairnSettings, default_environment
from agent.settings.model import of_checkpoint

if TYPE_CHECKING:
    from agent.loop.agent import Agent
    from agent.policies.base import Policy
    from agent.sources.base import Source

VLLM_ENVIRONMENT: Final = {
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
}
"""vLLM reads its environment by itself: its log is kept from standard output, and nothing is sent anywhere."""
LIVE_SEARCH_SECONDS: Final = 30.0
"""One search of a live source or an MCP server, where the settings say nothing: arXiv's queue moves once in three
seconds."""


def build_agent(
    settings: CairnSettings, *, policy: "Policy | None" = None, sources: "Mapping[str, Source] | None" = None
) -> "Agent":
    """Make the agent that the settings describe; what the caller already has is taken as it is.

    Raises:
        SetupError: a setting, folder, protocol or checkpoint that cannot be used.
    """
    from agent.loop.agent import Agent, Budgets
    from agent.policies.base import Dated, Sampling, Trained

    settings = settings if policy else with_policy(settings)
    protocol = build_protocol(settings)
    if policy is None:
        protocol = as_trained(protocol, settings)
    elif isinstance(policy, Trained):
        protocol = with_passages(protocol, policy.passages)
        protocol = without_dates(protocol) if isinstance(policy, Dated) and not policy.dates else protocol
    scope = None
    if sources is None and uses_world(settings):
        from agent.world import load_world

        world = load_world(settings.world)
        sources = chosen(settings, world.sources())
        # Of all policies only the embedded one knows so little that it must say so.
        scope = world.outside if policy is None and settings.policy == "embedded" else None
    sources = build_sources(settings) if sources is None else sources
    limits: dict[str, Any] = settings.budgets.model_dump(exclude_none=True)
    if settings.is_live or settings.mcp:
        seconds = (LIVE_SEARCH_SECONDS, *(table.seconds for table in settings.mcp.values()))
        limits = {"search_seconds": max(seconds)} | limits
    if settings.policy == "openai" and (tokens := limits.get("policy_tokens", 0)) > Budgets.policy_tokens:
        limits["answer_tokens"] = tokens // 4  # a model that reasons does so before its answer, too
    budgets = Budgets(**limits)
    return Agent(
        policy=policy or build_policy(settings, sources=distinct(sources)),
        protocol=protocol,
        sources=sources,
        budgets=budgets.with_tokens(budgets.policy_tokens),
        sampling=Sampling(
            temperature=protocol.temperature if settings.temperature is None else settings.temperature,
            top_p=protocol.top_p,
        ),
        scope=scope,
    )


def build_protocol(settings: CairnSettings) -> TextProtocol:
    """A built-in protocol or a profile by its name, or one from a file, with the texts that the user gives it.

    Raises:
        SetupError: there is no such protocol, or texts that it needs are missing.
    """
    own = settings.protocol.endswith(".toml")
    protocol = load_protocol(Path(settings.protocol)) if own else protocol_named(settings.protocol)
    return whole(with_texts(protocol, settings.prompt_file) if settings.prompt_file else protocol)


def as_trained(protocol: TextProtocol, settings: CairnSettings) -> TextProtocol:
    """The protocol with as many passages a search, and with or without dates, as the checkpoint was trained with.

    Raises:
        CheckpointError: the checkpoint's cairn.json cannot be read.
    """
    if settings.policy == "embedded":
        _refuse_nameless(settings)
        folder = settings.checkpoint or newest_checkpoint()
    else:
        folder = Path(settings.tokenizer or settings.model)
    return as_in_training(protocol, folder)


def build_policy(settings: CairnSettings, *, sources: Sequence[str] = ()) -> "Policy":
    """The shipped checkpoint, a model of this process, or one at an endpoint.

    Args:
        settings: say which policy and model.
        sources: the sources that the rules name to a model without training.

    Raises:
        SetupError: the model or its endpoint is not named, or CheckpointError where it cannot be used.
    """
    match settings.policy:
        case "embedded":
            from agent.policies.embedded import EmbeddedPolicy

            _refuse_nameless(settings)
            return EmbeddedPolicy.load(settings.checkpoint or newest_checkpoint())
        case "transformers":
            from agent.policies.transformers import TransformersPolicy

            return TransformersPolicy.load(named_model(settings), device=settings.device, dtype=settings.dtype)
        case "vllm":
            return _vllm(settings)
        case "openai":
            return _openai(settings, sources)
        case _:
            assert_never(settings.policy)


def _openai(settings: CairnSettings, sources: Sequence[str]) -> "Policy":
    """A model at an endpoint."""
    if not settings.base_url or not settings.model:
        raise SetupError(
            "the policy 'openai' needs an endpoint and a model, "
            "for example: --base-url http://127.0.0.1:11434/v1 --model qwen3:8b"
        )
    from agent.outbound.llm import LlmClient
    from agent.policies.openai_chat import SOURCES
    from agent.policies.openai_policy import OpenAiPolicy

    key = settings.api_key.get_secret_value()
    return OpenAiPolicy(
        LlmClient(base_url=settings.base_url, model=settings.model, api_key=key),
        kind=settings.endpoint,
        continues=settings.continues,
        tokenizer=settings.tokenizer,
        marks=build_protocol(settings).all_marks,
        sources=sources or SOURCES,
        rung=settings.rung,
    )


def _refuse_nameless(settings: CairnSettings) -> None:
    """A model that is no folder does not say what reads it, so a setting must."""
    if settings.model and settings.checkpoint is None and "policy" not in settings.model_fields_set:
        raise SetupError(
            f"there is no folder {settings.model}; for a model at an endpoint add --base-url URL, "
            "for one on the hub --policy transformers or --policy vllm"
        )


def _vllm(settings: CairnSettings) -> "Policy":
    """A model that vLLM runs in this process."""
    model = named_model(settings)
    default_environment(VLLM_ENVIRONMENT | SAFE_PATH)
    from agent.policies.vllm import VllmPolicy

    return VllmPolicy.load(model, dtype=settings.dtype, **settings.vllm.arguments)


def named_model(settings: CairnSettings) -> str:
    """The model of this process.

    Raises:
        SetupError: none is named.
    """
    if not settings.model:
        raise SetupError(
            f"the policy {settings.policy!r} needs a model in the hub's form: a folder, or a name on the hub; "
            f"for example: --policy {settings.policy} --model Qwen/Qwen3-0.6B"
        )
    return settings.model


def notices(settings: CairnSettings) -> list[str]:
    """What a person should know before believing an answer."""
    return [*_about_policy(settings), *_about_protocol(settings), *_about_sources(settings)]


def _about_policy(settings: CairnSettings) -> list[str]:
    connect = "connect a model with --policy openai --base-url URL --model NAME"
    if settings.policy != "embedded":
        return []
    if is_small(settings):
        return [
            f"Answers come from small-v1, a model of 135 million parameters: check what it cites. For more, {connect}."
        ]
    if uses_world(settings):
        return [f"The embedded policy was trained to search the little world, and nothing else; {connect}."]
    if not is_shipped(settings):
        return []
    return [
        "The embedded policy was trained on the little world only; for other sources, run cairn model fetch, "
        f"or {connect}."
    ]


def _about_protocol(settings: CairnSettings) -> list[str]:
    """A checkpoint writes a protocol badly that it was not trained on; protocols of other people's files are theirs."""
    if settings.policy != "embedded" or settings.checkpoint is None:
        return []
    trained: tuple[str, ...] = of_checkpoint(settings.checkpoint, said=()).get("protocols", ())
    if settings.protocol in trained or not {settings.protocol, *trained} <= set(protocol_names()):
        return []
    return [
        f"The model was trained on the protocol {' and '.join(trained)}, not on {settings.protocol}: expect poor "
        f"answers, or use --protocol {trained[0]}."
    ]


def _about_sources(settings: CairnSettings) -> list[str]:
    own = "add your documents with --corpus DIR, or search the live web with a key, for example CAIRN_TAVILY_KEY"
    if uses_manual(settings):
        return [f"Cairn searches its own manual; {own}."]
    if uses_world(settings) and settings.policy != "embedded":
        return [f"Cairn searches the little world; {own}."]
    return []
