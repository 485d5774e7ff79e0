"""MultiSearch (2605.13534) in miniature: GDPO, the shape of its rewards, the number of queries, the depth."""

from typing import Any, Final

from lab.reproduce.design import (
    AREA,
    CURVES,
    INFERRED,
    SHIPPED,
    Arm,
    Check,
    Direction,
    Expected,
    Paper,
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

_PROTOCOL: Final = "multisearch"
FULL: Final = "multisearch-gdpo"
_MEAN: Final = 0.0145
"""Half of GDPO's mean effect over four backbones."""
_MORE: Final = "the paper's four policies differ by .019 to .042; of the smaller differences this study may see nothing"
_AS_GDPO: Final = "the paper's figure is in prose alone; as for `multisearch.gdpo`"
_DEPARTURES: Final = (
    "a policy of four million parameters from a start that was taught the format, eight steps",
    "KL weight 0 and top-p 1 for .001 and .95",
)
_QUERIES: Final = uncertain(_PROTOCOL, "three_queries", "the start writes three queries in some of its rounds")
_MERGES: Final = uncertain(_PROTOCOL, "merge_gold", "the start's merges hold a gold answer at times")
_ROOM: Final = room(_PROTOCOL)


def _reward(settings: dict[str, Any] | None = None, weights: dict[str, float] | None = None) -> dict[str, Any]:
    printed = {"variant": "printed", **(settings or {})}
    return {"reward": [{"name": "multisearch", "settings": printed, "weights": weights or {}}]}


def _training(name: str, says: str, changes: dict[str, Any], **also: Any) -> Training:
    learning = {"learning": {"name": "gdpo"}}
    return Training(name=name, says=says, protocol=_PROTOCOL, world="hard", changes={**learning, **changes}, **also)


def _at_most(number: int) -> Training:
    """A policy for a number of queries: a search ends behind them, and the bonus is for having them."""
    changes, names = {"max_queries": number, "cut_queries": True}, {1: "one", 2: "two"}
    says = f"the first {names[number]} quer{'y' if number == 1 else 'ies'} a search, in training and evaluation"
    name = f"multisearch-{names[number]}"
    return _training(name, says, _reward({"more_than": number - 1.0}), protocol_changes=changes)


def _arm(name: str, says: str, **also: Any) -> Arm:
    return Arm(name=name, says=says, policy=SHIPPED, protocol=_PROTOCOL, world="hard", **also)


_TRAININGS: Final = (
    _training(FULL, "GDPO by the printed reward", _reward()),
    _training("multisearch-grpo", "GRPO by the same reward", {**_reward(), "learning": {"name": "grpo"}}),
    _training("multisearch-unconditional", "the bonuses count whatever the answer", _reward({"condition": "none"})),
    _training("multisearch-turn", "the bonuses are taken turn by turn", _reward({"level": "turn"})),
    _training("multisearch-no-query", "without the bonus for queries", _reward(weights={"query": 0.0})),
    _training("multisearch-no-merge", "without the bonus for merges", _reward(weights={"merge": 0.0})),
    _at_most(1),
    _at_most(2),
)
_ARMS: Final = (
    *baselines(_PROTOCOL, "hard"),
    *(
        _arm(f"top-{k}", f"{k} passage{'s' if k > 1 else ''} a query", protocol_changes={"passages": k})
        for k in (1, 2, 3, 5)
    ),
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
        name=f"multisearch.{name}",
        paper="multisearch",
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


def _against(*names: str, margin: float) -> tuple[Expected, ...]:
    return sides(FULL, *names, metric=AREA, margin=margin, spread=CURVES)


def _depth(first: str, second: str) -> Expected:
    (one,) = sides(first, second, margin=0.01, spread=INFERRED)
    return one


_DIRECTIONS: Final = (
    _direction(
        "gdpo",
        "GDPO is better than GRPO with the same rewards.",
        figures="mean EM, 3B-Base .422 / .403, 3B-Instruct .416 / .384, 7B-Base .445 / .403, 7B-Instruct .422 / .400",
        place="table 4",
        manipulated="how the three rewards are put together: each normalised on its own, or their sum",
        margin_from="half of .029, the mean of four",
        expected=_against("multisearch-grpo", margin=_MEAN),
        larger_because=_MORE,
        checks=(
            _QUERIES,
            _MERGES,
            _ROOM,
            differs(FULL, "multisearch-grpo", "area_merge_gold", "the course of merges with the answer differs"),
        ),
    ),
    _direction(
        "conditional",
        "Bonuses that count only where the answer is right are better than unconditional ones.",
        figures=".416 / .364",
        place="table 7",
        manipulated="whether a bonus needs a right answer",
        margin_from="half of .052",
        expected=_against("multisearch-unconditional", margin=0.026),
        checks=(
            _QUERIES,
            _MERGES,
            _ROOM,
            differs(FULL, "multisearch-unconditional", "area_three_queries", "the course of rounds with three queries "
                    "differs"),
        ),
    ),
    _direction(
        "rollout-level",
        "Rewards of the whole rollout are better than rewards turn by turn.",
        figures=".416 / .384",
        place="table 7",
        manipulated="over what the bonuses are taken",
        margin_from="half of .032",
        expected=_against("multisearch-turn", margin=0.016),
        checks=(
            _QUERIES,
            _MERGES,
            _ROOM,
            differs(FULL, "multisearch-turn", "area_merge_gold", "the course of merges with the answer differs"),
        ),
        departures=("the three rewards of a rollout of one turn are the same in both arms",),
    ),
    _direction(
        "bonuses",
        "The bonus for queries and the bonus for merges both help.",
        figures="full above each variant without (3B-Instruct; prose)",
        place="table 2",
        manipulated="the weight of each bonus",
        margin_from=_AS_GDPO,
        expected=_against("multisearch-no-query", "multisearch-no-merge", margin=_MEAN),
        larger_because=_MORE,
        checks=(
            _QUERIES,
            _MERGES,
            _ROOM,
            more(FULL, "multisearch-no-query", "area_three_queries", "the bonus makes rounds of three queries"),
            more(FULL, "multisearch-no-merge", "area_merge_gold", "the bonus makes merges that hold the answer"),
        ),
        departures=("each bonus is taken away alone; the paper takes away the second beside the first",),
    ),
    _direction(
        "several-queries",
        "Several queries a search are better than one.",
        figures="full above single-query retrieval (prose)",
        place="table 2",
        manipulated="queries a search, by a policy that was trained for each number",
        margin_from=_AS_GDPO,
        expected=_against("multisearch-one", margin=_MEAN),
        larger_because=_MORE,
        checks=(_QUERIES, _ROOM, more(FULL, "multisearch-one", "queries", "it has more queries a round")),
        departures=("the paper's variant has neither merges nor their reward",),
    ),
    _direction(
        "three-queries",
        "Three queries a search are better than one and than two.",
        figures="the peak of the curve is at 3",
        place="figure 5",
        manipulated="queries a search, by a policy that was trained for each number",
        margin_from=_AS_GDPO,
        expected=_against("multisearch-one", "multisearch-two", margin=_MEAN),
        larger_because=_MORE,
        checks=(
            _QUERIES,
            _ROOM,
            more(FULL, "multisearch-two", "queries", "three are more than two"),
            more("multisearch-two", "multisearch-one", "queries", "two are more than one"),
        ),
        departures=("more than three are not tested: the start has never seen any",),
    ),
    _direction(
        "fewer-rounds",
        "Several queries a search need fewer rounds than one.",
        figures="fewer rounds (prose)",
        place="figure 3",
        manipulated="queries a search, by a policy that was trained for each number",
        margin_from="the paper's figure is a plot; a twentieth of a round",
        expected=sides("multisearch-one", FULL, metric="rounds", margin=0.05,
                       spread=Spread(seeds=0.05, questions=0.6)),
        checks=(_QUERIES, _ROOM, more(FULL, "multisearch-one", "queries", "it has more queries a round")),
        departures=("the figure compares with Search-R1, which has no merges either",),
    ),
    _direction(
        "depth-up-to-three",
        "More passages a query help up to three.",
        figures="the curve rises until k = 3",
        place="figure 6",
        manipulated="passages a query, at inference",
        margin_from="the paper's figure is a plot; about .02 a step",
        expected=(_depth("top-2", "top-1"), _depth("top-3", "top-2")),
        checks=(
            room(_PROTOCOL, "top-1"),
            room(_PROTOCOL, "top-2"),
            more("top-2", "top-1", "passages", "more is shown"),
            more("top-3", "top-2", "passages", "more is shown"),
        ),
        departures=("one policy, trained with three, which favours three",),
        larger_because="in a world of hard wording, passages of a lower rank are often the only gold ones",
    ),
    _direction(
        "depth-from-four",
        "From four passages a query on, it gets worse.",
        figures="the curve falls from k = 4",
        place="figure 6",
        manipulated="passages a query, at inference",
        margin_from="the paper's figure is a plot; about .02 a step",
        expected=(_depth("top-3", "top-5"),),
        checks=(more("top-5", "top-3", "passages", "more is shown"),),
        departures=("five for four and more", "one policy, trained with three, which has seen no longer contexts"),
        larger_because="a policy of this size confuses names in long contexts",
    ),
)  # fmt: skip

_UNTESTED: Final = (
    Untested(
        name="multisearch.f1",
        claim="F1 as the answer's reward is better than EM.",
        figures=".416 / .403 (table 7)",
        why="An effect of .013 needs about 30 seeds, and answers of the little world are one or two names, where F1 "
        "and EM hardly differ.",
    ),
    Untested(
        name="multisearch.both-kinds",
        claim="Training on single-hop and multi-hop questions is better than training on either alone.",
        figures="best mean of the seven sets with both (table 6, prose)",
        why="Both kinds come from one world with one wording here; the paper's are two data sets.",
    ),
    Untested(
        name="multisearch.strategies",
        claim="A mix of query strategies is better than any one of them, and than none.",
        figures="table 3, prose",
        why="The strategies are in the prompt, which a policy of this size does not read; the shipped instructions "
        "have all three.",
    ),
    Untested(
        name="multisearch.merging",
        claim="The agent's own merge is better than a selection by TF-IDF, and than another model's.",
        figures="table 8, prose",
        why="It needs a model of the agent's size that merges for any question.",
    ),
    Untested(
        name="multisearch.signal",
        claim="The share of useful words rises from what one query finds over what a round shows to what a merge says.",
        figures="figure 3",
        why="Useful is what a language model judges so; a count of gold words would be another claim.",
    ),
    Untested(
        name="multisearch.dense",
        claim="Dense retrieval is better than BM25.",
        figures="E5 above BM25 (table 9, prose)",
        why="Names of the little world are invented, so no encoder has seen them. Tested on real questions.",
    ),
)

MULTISEARCH: Final = Paper(
    name="multisearch",
    title="MultiSearch (2605.13534)",
    trainings=_TRAININGS,
    arms=_ARMS,
    directions=_DIRECTIONS,
    untested=_UNTESTED,
)
