"""Learning When to Search in miniature: its two stages, each part of its reward, and when the policy searches."""

from typing import Any, Final

from lab.reproduce.design import Direction, Expected, Paper, Side, Training, sides

_PROTOCOL: Final = "reflect"
BOTH: Final = "reflect-both"
OUTCOME: Final = "reflect-outcome"
ALWAYS: Final = "reflect-always"
_KNOWN: Final = ("known",)


def _training(name: str, says: str, reward: dict[str, Any]) -> Training:
    dapo = {"learning": {"name": "dapo", "resample": 1}, "optimizer": {"lr": 2e-4}}
    changes: dict[str, Any] = {**dapo, "reward": [reward]}
    return Training(name=name, says=says, protocol=_PROTOCOL, changes=changes, length=2.0, world="known")


def _reflect(settings: dict[str, Any] | None = None, weights: dict[str, float] | None = None) -> dict[str, Any]:
    # Names of the little world hold prepositions, so a query with one may be as short as it can be.
    printed = {"variant": "printed", "right": "em", "prepositions": [], **(settings or {})}
    return {"name": "reflect", "settings": printed, "weights": weights or {}}


_TRAININGS: Final = (
    _training(BOTH, "stage one, and stage two from the middle on", _reflect()),
    _training("reflect-one", "stage one throughout", _reflect({"stage": 1})),
    _training("reflect-two", "stage two throughout", _reflect({"stage": 2})),
    _training("reflect-no-queries", "both stages without r_s", _reflect(weights={"search": 0.0})),
    _training("reflect-no-answer", "both stages without r_a", _reflect(weights={"answer": 0.0})),
    _training(OUTCOME, "the outcome alone: nothing is said about searching",
              {"name": "outcome", "settings": {"variant": "printed", "answer": "em"}}),
    _training(ALWAYS, "the outcome, which counts only after a search",
              {"name": "outcome", "settings": {"variant": "printed", "answer": "em", "needs_search": True}}),
)  # fmt: skip


def _direction(
    name: str, claim: str, figures: str, place: str, expected: tuple[Expected, ...], cannot: str
) -> Direction:
    return Direction(
        name=f"reflect.{name}",
        paper="reflect",
        claim=claim,
        figures=figures,
        place=place,
        expected=expected,
        cannot=cannot,
    )


_WHEN: Final = (
    Expected(kind="no_more", first=Side(arm=BOTH, metric="searches", types=_KNOWN), second=0.2, margin=0.0),
    Expected(first=Side(arm=BOTH, metric="searches", but=_KNOWN), second=0.95, margin=0.0),
)

_DIRECTIONS: Final = (
    _direction(
        "stages",
        "Both stages together are better than either alone.",
        "mean judge score with both above both ablations",
        "tables 2 and 4",
        (*sides(BOTH, "reflect-one"), *sides(BOTH, "reflect-two")),
        "The paper's third variant, one reward for all of the training, is not spelled out and is left out.",
    ),
    _direction(
        "without-stage-one",
        "Without stage one the policy searches too little.",
        "RC .35 and mean .35 without it",
        "table 4",
        (*sides(BOTH, "reflect-two", metric="searches", margin=0.1), *sides(BOTH, "reflect-two")),
        "The start searches nearly always, where a reasoning model hardly does by itself.",
    ),
    _direction(
        "without-stage-two",
        "Without stage two the policy searches too much.",
        "RC 1.82 without it",
        "table 4",
        sides("reflect-one", BOTH, metric="searches", margin=0.1),
        "How much is too much depends on the questions' mix.",
    ),
    _direction(
        "without-query-reward",
        "Without r_s there are more searches and no better answers.",
        "RC 1.14 → 1.26 at no better score",
        "table 4",
        (
            *sides("reflect-no-queries", BOTH, metric="searches", margin=0.1),
            *sides("reflect-no-queries", BOTH, kind="no_more"),
        ),
        "Queries are compared by hashed words, and those of the little world are short already.",
    ),
    _direction(
        "without-answer-reward",
        "Without r_a it is far worse, with more searches.",
        "RC 2.06, mean .564 → .479",
        "table 4",
        (*sides(BOTH, "reflect-no-answer"), *sides("reflect-no-answer", BOTH, metric="searches", margin=0.1)),
        "A start that answers well by habit loses little where nothing rewards its answers for a few dozen steps.",
    ),
    _direction(
        "known",
        "After both stages the policy does not search for what it knows, and searches for what it does not.",
        "the aim of the method; here at most 0.2 and at least 0.95 searches a question",
        "section 3",
        (
            Expected(first=Side(arm=OUTCOME, metric="searches", types=_KNOWN),
                     second=Side(arm=BOTH, metric="searches", types=_KNOWN), margin=0.1),
            *_WHEN,
            Expected(kind="no_more", first=Side(arm=OUTCOME), second=Side(arm=BOTH)),
        ),
        "What is known is a closed set of some sixty facts that the start has seen often; real knowledge has no edge.",
    ),
    _direction(
        "as-good-as-always",
        "After both stages the policy searches only for what it does not know, and answers no worse than one that "
        "always searches.",
        "the aim of the method; at most 0.2 and at least 0.95 searches a question",
        "section 3",
        (
            Expected(first=Side(arm=ALWAYS, metric="searches", types=_KNOWN),
                     second=Side(arm=BOTH, metric="searches", types=_KNOWN), margin=0.1),
            *_WHEN,
            Expected(kind="no_more", first=Side(arm=ALWAYS), second=Side(arm=BOTH)),
        ),
        "It was added when the first seed of `reflect.known` was there: the outcome alone had unlearned searching for "
        "what is known as well, and was no policy that always searches. Its bounds are those of `reflect.known`.",
    ),
)  # fmt: skip

REFLECT: Final = Paper(
    name="reflect",
    title="Learning When to Search",
    trainings=_TRAININGS,
    arms=(),
    directions=_DIRECTIONS,
)
