"""A policy answers the questions of an unseen world: what is particular about it, and the figures that are kept."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from agent.build.agent import build_policy
from agent.errors import SetupError
from agent.policies.embedded import EmbeddedPolicy
from agent.protocols import protocol_named
from agent.settings import CairnSettings, settings_of
from agent.world import load_world
from lab.reproduce.design import Arm
from lab.reproduce.narrow import NarrowPolicy
from train.checkpoints.own_protocols import as_toml
from train.common.saving import as_a_whole
from train.evaluation.session import Evaluation
from train.evaluation.store import read_results

ANSWERS: Final = "answers.json"
METRICS: Final = (
    "em",
    "f1",
    "searches",
    "rounds",
    "policy_tokens",
    "gold_found",
    "snr_query",
    "snr_information",
    "snr_merge",
)
_AT_ONCE: Final = 16
_PATIENCE: Final = {"seconds": 3600, "search_seconds": 600}
"""However slow the machine is, no answer is forced by it."""

Answers = dict[str, dict[str, Any]]
"""Question id → its `type`, and its figures by name (None where one does not apply)."""
Show = Callable[[float, float, str, str], None]
"""Gets the progress: done, of how many, of what, and what there is to see."""


def evaluate(arm: Arm, *, world: Path, policy: Path, out: Path, show: Show) -> Answers:
    """Ask every question that is not answered yet, and keep the figures.

    Args:
        arm: the policy, and how it answers.
        world: folder of the world.
        policy: folder of the exported checkpoint.
        out: of the results; questions that have one there are left out.
        show: gets the progress.

    Raises:
        SetupError: something cannot be used, or no question could be scored.
    """
    out.mkdir(parents=True, exist_ok=True)
    settings = _settings(arm, world, policy, out)
    if arm.reader:
        answers = _read(settings, show)
    else:
        _evaluate(arm, settings, out, show)
        answers = {result.id: _figures(result.type, result.metrics) for result in read_results(out)}
    if not answers:
        raise SetupError(f"no question of {world} could be scored for {arm.name}")
    with as_a_whole(out / ANSWERS) as made:
        made.write_text(json.dumps(answers, indent=0) + "\n", encoding="utf-8")
    return answers


def read_answers(folder: Path) -> Answers | None:
    """What was kept; None where it is not there yet.

    Raises:
        SetupError: it is damaged.
    """
    path = folder / ANSWERS
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    except (OSError, ValueError) as error:
        raise SetupError(f"{path} cannot be read ({error}): remove it, then run the same command again") from error


def _figures(kind: str, metrics: Mapping[str, float | None]) -> dict[str, Any]:
    return {"type": kind, **{name: metrics.get(name) for name in METRICS}}


def _settings(arm: Arm, world: Path, policy: Path, out: Path) -> CairnSettings:
    return settings_of(
        policy="embedded",
        checkpoint=policy,
        world=str(world),
        protocol=_protocol(arm, out),
        sources=arm.sources or None,
        budgets={**_PATIENCE, **arm.budgets},
    )


def _protocol(arm: Arm, out: Path) -> str:
    """The protocol's name, or the file of one that differs from it."""
    if not arm.protocol_changes:
        return arm.protocol
    # Its own name keeps the number of passages that a checkpoint was trained with from being put in again.
    changes = {**arm.protocol_changes, "name": f"{arm.protocol}-{arm.name}"}
    own = protocol_named(arm.protocol).model_copy(update=changes)
    path = out / "protocol.toml"
    path.write_text(as_toml(own), encoding="utf-8")
    return str(path)


def _evaluate(arm: Arm, settings: CairnSettings, out: Path, show: Show) -> None:
    policy = build_policy(settings) if arm.queries else None
    narrow = NarrowPolicy(policy, arm.queries) if isinstance(policy, EmbeddedPolicy) else None
    sources = None
    if arm.dense:
        from agent.sources.corpus.encoder import Encoder
        from lab.reproduce.dense import ENCODER, dense_sources

        sources = dense_sources(load_world(settings.world), Encoder.load(ENCODER, device="cpu"))
    evaluation = Evaluation(settings, concurrency=_AT_ONCE, out=out, policy=narrow, sources=sources, retry_failed=True)
    figures = evaluation.run(lambda so_far: show(so_far.done, so_far.total, "questions", ""))
    if figures["n"] < len(evaluation.questions):
        raise SetupError(f"{arm.name}: some questions failed ({evaluation.last_failure})")


def _read(settings: CairnSettings, show: Show) -> Answers:
    """EM of the reader in each condition, and of the agent itself."""
    from lab.cli.reader import CHECKPOINT
    from lab.reader.transfer import ask_each
    from train.reader.reading import TrainedReader

    reader = TrainedReader.load(CHECKPOINT)
    scored, _ = ask_each(settings, reader, show=lambda done, total: show(done, total, "questions", ""))
    return {
        one.id: {"type": one.type, "em": one.agent_em, **{f"em_{name}": one.em[name] for name in one.em}}
        for one in scored
    }
