"""Real questions as jobs: an index of each set, and each arm's answers. They go on where they were stopped."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from agent.build.agent import build_policy
from agent.build.shipped import is_small, with_policy
from agent.errors import SetupError
from agent.policies.embedded import EmbeddedPolicy
from agent.settings import CairnSettings, settings_of
from agent.sources.corpus.build import Dense, build_index
from agent.sources.kg.build import build_graph
from lab.reproduce.evaluating import AT_ONCE, PATIENCE, Answers, figures_of, keep_answers
from lab.reproduce.narrow import NarrowPolicy
from lab.reproduce.protocols import changed_protocol
from lab.reproduce.real import RealArm, RealRecipe, RealSet
from train.common.recipe_files import read_model
from train.common.saving import as_a_whole
from train.evaluation.chosen import QuestionChoice
from train.evaluation.session import Evaluation

GRAPH: Final = "graph.sqlite"
Show = Callable[[float, float, str, str], None]


class RealStudy:
    """A recipe of sets, the folder that they lie in, and a limit of questions."""

    def __init__(self, path: Path, data: Path, *, limit: int = 0) -> None:
        """Read the recipe.

        Raises:
            SetupError: it cannot be read, or a file that it names is not there.
        """
        self.recipe = read_model(path, RealRecipe)
        self.data = data.resolve()
        self.questions = min(limit, self.recipe.questions) if limit else self.recipe.questions
        for one in self.recipe.sets:
            for name in (one.questions, one.corpus):
                if not (self.data / name).is_file():
                    raise SetupError(f"{self.data} has no {name}, which {path} names: name the right --data folder")

    def sets_of(self, arm: RealArm) -> list[RealSet]:
        return [one for one in self.recipe.sets if one.group == arm.group]


def build(real: RealStudy, one: RealSet, out: Path, *, dense: bool) -> None:
    """Index the documents of a set, and its graph where it has one.

    Raises:
        SetupError: a file cannot be used.
    """
    build_index([real.data / one.corpus], out, dense=Dense(real.recipe.dense) if dense else None)
    if not one.triples:
        return
    triples = out.parent / f"{one.name}.tsv"
    with as_a_whole(triples) as made, (real.data / one.questions).open(encoding="utf-8") as lines:
        rows = ("\t".join(json.loads(line).get(one.triples) or ()) for line in lines)
        made.write_text("".join(f"{row}\n" for row in rows if row and _drawn(row, one.share)), encoding="utf-8")
    build_graph([triples], graph_of(out))


def _drawn(row: str, share: float) -> bool:
    return int.from_bytes(hashlib.sha256(row.encode()).digest()[:4], "big") < share * 2**32


def graph_of(index: Path) -> Path:
    return index.parent / f"{index.name}.{GRAPH}"


def answer(real: RealStudy, arm: RealArm, one: RealSet, *, index: Path, out: Path, show: Show) -> Answers:
    """Answer the questions of a set that are not answered yet.

    Args:
        real: with its data.
        arm: how they are answered.
        one: the set.
        index: of its documents.
        out: folder of the results.
        show: gets the progress.

    Raises:
        SetupError: something cannot be used.
    """
    out.mkdir(parents=True, exist_ok=True)
    settings = _settings(arm, index, out)
    evaluation = Evaluation(
        settings,
        real.data / one.questions,
        choice=QuestionChoice(limit=real.questions),
        concurrency=AT_ONCE,
        out=out,
        retry_failed=True,
        policy=_narrow(arm, settings),
    )
    figures = evaluation.run(lambda so_far: show(so_far.done, so_far.total, "questions", ""))
    if figures["n"] < len(evaluation.questions):
        raise SetupError(f"{arm.name}: some questions failed ({evaluation.last_failure})")
    answers = figures_of(evaluation.questions, out)
    keep_answers(answers, out)
    return answers


def _narrow(arm: RealArm, settings: CairnSettings) -> NarrowPolicy | None:
    if not arm.queries:
        return None
    policy = build_policy(settings)
    assert isinstance(policy, EmbeddedPolicy)
    return NarrowPolicy(policy, arm.queries)


def _settings(arm: RealArm, index: Path, out: Path) -> CairnSettings:
    """With `small-v1`, for whose base model the settings may need the package index once.

    Raises:
        SetupError: it cannot be had: the little world's policy would answer.
    """
    budgets: dict[str, Any] = {**PATIENCE, **({"context_tokens": arm.context} if arm.context else {})}
    settings = settings_of(
        policy="embedded",
        corpus=index if arm.documents else None,
        kg=graph_of(index) if arm.graph else None,
        retrieval=arm.retrieval,
        protocol=changed_protocol(arm.protocol, {"passages": arm.passages}, label=arm.name, folder=out),
        budgets=budgets,
    )
    if not is_small(fitting := with_policy(settings)):
        raise SetupError("small-v1 has no base model: get it with `cairn model fetch`")
    return fitting
