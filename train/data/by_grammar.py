"""The steps from bundles to questions in a little world: written by grammar, filtered exactly."""

import random
from collections.abc import Iterable, Sequence
from typing import Final

from agent.errors import SetupError
from train.data.bundling import Grounds
from train.data.checking import Checked, Name, checking
from train.data.folder import counted
from train.data.grammar import Grammar
from train.data.inputs import WorldInput
from train.data.recipe import DataRecipe
from train.data.records import Bundle, Candidate
from train.data.steps import Made, Steps
from train.data.writing import REPEATED

NOT_LINKED = "nothing in one of its documents leads to a fitting other one"
NOT_DRAWN = "not drawn (--limit)"
FILTERS: Final[tuple[Name, ...]] = ("by heart", "together", "alone", "found")
"""In their order."""


def questions_by_grammar(steps: Steps, recipe: DataRecipe, inputs: WorldInput, ground: Grounds) -> list[Candidate]:
    """The questions that are left in the end.

    Raises:
        SetupError: there is none to write, or the folder cannot be written.
    """
    found = steps.rows("writing", Candidate, lambda: _written(steps, recipe, inputs, ground))
    check = checking(steps.spread, inputs, diverse=recipe.bundles == "diverse")
    for name in FILTERS:
        held = found
        found = steps.rows(name, Candidate, lambda n=name, h=held: _passed(steps, n, h, check(n, h)))
    return found


def drawn(bundles: Sequence[Bundle], recipe: DataRecipe) -> list[Bundle]:
    """The bundles that get questions, in their order."""
    if not recipe.limit or recipe.limit >= len(bundles):
        return list(bundles)
    places = random.Random(f"cairn data limit {recipe.seed}").sample(range(len(bundles)), recipe.limit)
    return [bundles[place] for place in sorted(places)]


def _written(steps: Steps, recipe: DataRecipe, inputs: WorldInput, ground: Grounds) -> tuple[list[Candidate], Made]:
    bundles = drawn(ground.bundles, recipe)
    grammars = {part: Grammar(world, seed=recipe.seed) for part, world in inputs.parts.items()}
    kept: dict[str, Candidate] = {}
    whys = [NOT_DRAWN] * (len(ground.bundles) - len(bundles))
    show = steps.progress("writing")
    for place, bundle in enumerate(bundles, start=1):
        candidates = _about(bundle, grammars[ground.docs[bundle.documents[0]].part], ground, recipe)
        whys += [] if candidates else [NOT_LINKED]
        for candidate in candidates:
            if candidate.question in kept:
                whys.append(REPEATED)
            else:
                kept[candidate.question] = candidate
        show(place, len(bundles))
    if not kept:
        raise SetupError(f"the grammar wrote no question about {len(bundles)} bundles: take a larger world")
    figures = {"questions": len(kept)} | counted(candidate.type for candidate in kept.values())
    return list(kept.values()), Made(len(ground.bundles), len(kept), counted(whys), figures, of="bundles")


def _about(bundle: Bundle, grammar: Grammar, ground: Grounds, recipe: DataRecipe) -> list[Candidate]:
    return [
        Candidate(
            id=question.id,
            question=question.question,
            answers=question.answers,
            type=question.type,
            bundle=bundle.id,
            supporting=question.supporting,
            sources=tuple(sorted({ground.docs[key].source for key in question.supporting})),
            options=question.candidates if question.type == "choice" else (),
            plan=question,
        )
        for question in grammar.write(bundle, each=recipe.each, sources=1 if recipe.bundles == "same" else 2)
    ]


def _passed(
    steps: Steps, name: Name, candidates: Sequence[Candidate], checked: Iterable[Checked]
) -> tuple[list[Candidate], Made]:
    kept: list[Candidate] = []
    whys: list[str] = []
    show = steps.progress(name)
    for place, (why, candidate) in enumerate(checked, start=1):
        if why:
            whys.append(why)
        else:
            kept.append(candidate)
        show(place, len(candidates))
    return kept, Made(len(candidates), len(kept), counted(whys))
