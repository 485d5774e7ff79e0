"""Learning When to Search in miniature: its two stages, each part of its reward, and when the policy searches."""

from typing import Any, Final

from lab.reproduce.design import (
    ENDS,
    Check,
    Direction,
    Expected,
    Paper,
    Training,
    Untested,
    baselines,
    differs,
    room,
    sides,
    uncertain,
)
from lab.reproduce.power import Spread

_PROTOCOL: Final = "reflect"
BOTH: Final = "reflect-both"
_ONE, _TWO, _UNIFIED = "reflect-one", "reflect-two", "reflect-unified"
_UNDECIDED: Final = (
    "the start's habits are stronger than a base model's, so there is more to change; an effect of the paper's size "
    "would be undecided"
)
_NO_QUERIES, _NO_ANSWER = "reflect-no-queries", "reflect-no-answer"
_KNOWN: Final = ("known",)
_COUNTS: Final = Spread(seeds=0.09, questions=0.5)
"""Of searches a question."""
_SEARCHES: Final = uncertain(_PROTOCOL, "searched", "the start searches at times for what it does not know", but=_KNOWN)
_KNOWS: Final = uncertain(_PROTOCOL, "searched", "the start searches at times for what it knows", types=_KNOWN)
_REPEATS: Final = uncertain(_PROTOCOL, "repeated", "the start repeats a search at times")
_ROOM: Final = room(_PROTOCOL)
_DEPARTURES: Final = (
    "exact matches for the judge; queries compared by hashed words",
    "no prepositions among the words that make a query not concise: names of the little world hold them",
    "what is known is a closed set of some sixty facts",
)


def _training(name: str, says: str, *rewards: dict[str, Any]) -> Training:
    dapo = {"learning": {"name": "dapo", "resample": 1}, "optimizer": {"lr": 2e-4}, "rollout": {"prompts": 5}}
    return Training(name=name, says=says, protocol=_PROTOCOL, changes={**dapo, "reward": list(rewards)}, world="known")


def _reflect(settings: dict[str, Any] | None = None, weights: dict[str, float] | None = None) -> dict[str, Any]:
    printed = {"variant": "printed", "right": "em", "prepositions": [], **(settings or {})}
    return {"name": "reflect", "settings": printed, "weights": weights or {}}


_PLAIN: Final = _reflect({"stage": 1, "beta": 0.0})
"""An answer is worth 1 or -1, however much was searched."""
_TRAININGS: Final = (
    _training(BOTH, "stage one, and stage two from the middle on", _reflect()),
    _training(_ONE, "stage one, and then plain right and wrong", {**_reflect({"stage": 1}), "until": 0.5}, _PLAIN),
    _training(_TWO, "plain right and wrong, and then stage two", {**_PLAIN, "until": 0.5}, _reflect({"stage": 2})),
    _training(_UNIFIED, "both stages at once, throughout", _reflect({"stage": "both"})),
    _training(_NO_QUERIES, "both stages without r_s", _reflect(weights={"search": 0.0})),
    _training(_NO_ANSWER, "both stages without r_a", _reflect(weights={"answer": 0.0})),
)


def _direction(
    name: str,
    claim: str,
    *,
    figures: str,
    place: str,
    manipulated: str,
    margin_from: str,
    expected: tuple[Expected, ...],
    checks: tuple[Check, ...],
    departures: tuple[str, ...] = (),
    larger_because: str = "",
) -> Direction:
    return Direction(
        name=f"reflect.{name}",
        paper="reflect",
        claim=claim,
        figures=figures,
        place=place,
        manipulated=manipulated,
        margin_from=margin_from,
        expected=expected,
        checks=checks,
        departures=(*departures, *_DEPARTURES),
        larger_because=larger_because,
    )


def _searches(first: str, second: str, margin: float) -> tuple[Expected, ...]:
    return sides(first, second, metric="searches", margin=margin, spread=_COUNTS)


_DIRECTIONS: Final = (
    _direction(
        "stages",
        "Both stages together are better than either alone.",
        figures="mean judge score .564 with both, .546 without stage two, .350 without stage one",
        place="table 4",
        manipulated="which stages the training has",
        margin_from="half of .018 and of .214",
        expected=(*sides(BOTH, _ONE, margin=0.009, spread=ENDS), *sides(BOTH, _TWO, margin=0.107, spread=ENDS)),
        larger_because=_UNDECIDED,
        checks=(
            _SEARCHES,
            _ROOM,
            differs(BOTH, _ONE, "area_searches", "stage two changes the course of searches"),
            differs(BOTH, _TWO, "area_searches", "stage one changes the course of searches"),
        ),
    ),
    _direction(
        "without-stage-one",
        "Without stage one the policy searches too little, and answers worse.",
        figures="RC .35 and mean .35 without it; 1.14 and .564 with both",
        place="table 4",
        manipulated="whether the first half of the training pays for searches of wrong answers",
        margin_from="half of .79 searches; half of .21",
        expected=(*_searches(BOTH, _TWO, 0.39), *sides(BOTH, _TWO, margin=0.105, spread=ENDS)),
        checks=(_SEARCHES, _ROOM, differs(_TWO, "reflect-start", "searches", "the training moves searches")),
    ),
    _direction(
        "without-stage-two",
        "Without stage two the policy searches too much.",
        figures="RC 1.82 without it, 1.14 with both",
        place="table 4",
        manipulated="whether the second half of the training takes off for searches of right answers",
        margin_from="half of .68 searches",
        expected=_searches(_ONE, BOTH, 0.34),
        checks=(_REPEATS, _KNOWS, _ROOM, differs(_ONE, "reflect-start", "searches", "the training moves searches")),
    ),
    _direction(
        "without-query-reward",
        "Without r_s there are more searches and worse answers.",
        figures="RC 1.14 → 1.26, mean .564 → .540",
        place="table 4",
        manipulated="the weight of r_s",
        margin_from="half of .12 searches; half of .024",
        expected=(*_searches(_NO_QUERIES, BOTH, 0.06), *sides(BOTH, _NO_QUERIES, margin=0.012, spread=ENDS)),
        larger_because=_UNDECIDED,
        checks=(
            _REPEATS,
            _ROOM,
            differs(_NO_QUERIES, BOTH, "area_repeated", "the course of repeated searches differs"),
        ),
    ),
    _direction(
        "without-answer-reward",
        "Without r_a it is far worse, with more searches.",
        figures="RC 1.14 → 2.06, mean .564 → .479",
        place="table 4",
        manipulated="the weight of r_a",
        margin_from="half of .085; half of .92 searches",
        expected=(*sides(BOTH, _NO_ANSWER, margin=0.042, spread=ENDS), *_searches(_NO_ANSWER, BOTH, 0.46)),
        checks=(
            _SEARCHES,
            _ROOM,
            differs(_NO_ANSWER, BOTH, "area_searches", "the course of searches differs"),
        ),
    ),
    _direction(
        "unified",
        "Both stages, one after the other, are better than both at once.",
        figures="mean .564 / .454, RC 1.14 / .52 (4B, step 180)",
        place="table 2",
        manipulated="whether wrong answers are paid and right ones charged for searches in turn, or all the time",
        margin_from="half of .110; half of .62 searches",
        expected=(*sides(BOTH, _UNIFIED, margin=0.055, spread=ENDS), *_searches(BOTH, _UNIFIED, 0.31)),
        checks=(
            _SEARCHES,
            _ROOM,
            differs(BOTH, _UNIFIED, "area_searches", "the course of searches differs"),
        ),
    ),
)

REFLECT: Final = Paper(
    name="reflect",
    title="Learning When to Search",
    trainings=_TRAININGS,
    arms=baselines(_PROTOCOL, "known"),
    directions=_DIRECTIONS,
    untested=(
        Untested(
            name="reflect.naive",
            claim="It searches less than a method that searches once for every question, and answers better.",
            figures="RC 1.00 (table 1)",
            why="The baseline is another method; a reward that always wants a search would be a third one.",
        ),
        Untested(
            name="reflect.reasoning",
            claim="A reasoning model is better than a plain one of the same size.",
            figures="figure 2",
            why="There is no reasoning model of this size.",
        ),
    ),
)
