"""Learning When to Search in miniature: its two stages, each part of its reward, and when the policy searches."""

from typing import Any, Final

from lab.reproduce.design import (
    AREA,
    CURVES,
    ENDS,
    Check,
    Direction,
    Expected,
    Paper,
    Side,
    Training,
    Untested,
    baselines,
    differs,
    more,
    room,
    sides,
    uncertain,
)
from lab.reproduce.power import Spread

_PROTOCOL: Final = "reflect"
BOTH: Final = "reflect-both"
ALWAYS: Final = "reflect-always"
_ONE, _TWO = "reflect-one", "reflect-two"
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


def _training(name: str, says: str, reward: dict[str, Any]) -> Training:
    dapo = {"learning": {"name": "dapo", "resample": 1}, "optimizer": {"lr": 2e-4}, "rollout": {"prompts": 5}}
    return Training(name=name, says=says, protocol=_PROTOCOL, changes={**dapo, "reward": [reward]}, world="known")


def _reflect(settings: dict[str, Any] | None = None, weights: dict[str, float] | None = None) -> dict[str, Any]:
    printed = {"variant": "printed", "right": "em", "prepositions": [], **(settings or {})}
    return {"name": "reflect", "settings": printed, "weights": weights or {}}


_ALWAYS: Final[dict[str, Any]] = {
    "name": "outcome",
    "settings": {"variant": "printed", "answer": "em", "needs_search": True},
}
_TRAININGS: Final = (
    _training(BOTH, "stage one, and stage two from the middle on", _reflect()),
    _training(_ONE, "stage one throughout", _reflect({"stage": 1})),
    _training(_TWO, "stage two throughout", _reflect({"stage": 2})),
    _training(_NO_QUERIES, "both stages without r_s", _reflect(weights={"search": 0.0})),
    _training(_NO_ANSWER, "both stages without r_a", _reflect(weights={"answer": 0.0})),
    _training(ALWAYS, "the outcome, which counts only after a search", _ALWAYS),
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
    )


def _searches(first: str, second: str, margin: float) -> tuple[Expected, ...]:
    return sides(first, second, metric="searches", margin=margin, spread=_COUNTS)


_DIRECTIONS: Final = (
    _direction(
        "stages",
        "Both stages together are better than either alone.",
        figures="mean judge score .564 with both; .35 without stage one (table 4)",
        place="tables 2 and 4",
        manipulated="which stages the training has",
        margin_from="half of .05: the paper's .21 over stage two alone is judged by `reflect.without-stage-one`",
        expected=sides(BOTH, _ONE, _TWO, margin=0.025, spread=ENDS),
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
        "Without r_s there are more searches and no better answers.",
        figures="RC 1.14 → 1.26 at no better score",
        place="table 4",
        manipulated="the weight of r_s",
        margin_from="half of .12 searches; no better is within .02",
        expected=(
            *_searches(_NO_QUERIES, BOTH, 0.06),
            *sides(_NO_QUERIES, BOTH, metric=AREA, kind="no_more", margin=0.035, spread=CURVES),
        ),
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
        "as-good-as-always",
        "After both stages the policy searches less for what it knows than one that always searches, and answers no "
        "worse.",
        figures="the aim of the method",
        place="section 3",
        manipulated="whether the reward takes off for searches, or wants one",
        margin_from="half of one search; no worse is within .05",
        expected=(
            Expected(
                first=Side(arm=ALWAYS, metric="searches", types=_KNOWN),
                second=Side(arm=BOTH, metric="searches", types=_KNOWN),
                margin=0.5,
                spread=_COUNTS,
            ),
            *sides(ALWAYS, BOTH, kind="no_more", margin=0.05, spread=ENDS),
        ),
        checks=(_KNOWS, _SEARCHES, _ROOM, more(ALWAYS, BOTH, "area_searches", "it searches more over its course")),
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
            name="reflect.unified",
            claim="Both stages are better than one reward for all of the training.",
            figures="table 2",
            why="The unified reward is not spelled out.",
        ),
        Untested(
            name="reflect.reasoning",
            claim="A reasoning model is better than a plain one of the same size.",
            figures="figure 2",
            why="There is no reasoning model of this size.",
        ),
    ),
)
