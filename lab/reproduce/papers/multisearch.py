"""MultiSearch (2605.13534) in miniature: GDPO, the shape of its rewards, several queries, the depth, the retriever."""

from typing import Any, Final

from lab.reproduce.design import SHIPPED, Arm, Direction, Expected, Paper, Side, Training, sides

_PROTOCOL: Final = "multisearch"
FULL: Final = "multisearch-gdpo"


def _reward(settings: dict[str, Any] | None = None, weights: dict[str, float] | None = None) -> dict[str, Any]:
    printed = {"variant": "printed", **(settings or {})}
    return {"reward": [{"name": "multisearch", "settings": printed, "weights": weights or {}}]}


def _training(name: str, says: str, changes: dict[str, Any], **more: Any) -> Training:
    return Training(name=name, says=says, protocol=_PROTOCOL, changes={"learning": {"name": "gdpo"}, **changes}, **more)


def _arm(name: str, says: str, **more: Any) -> Arm:
    return Arm(name=name, says=says, policy=SHIPPED, protocol=_PROTOCOL, **more)


_TRAININGS: Final = (
    _training(FULL, "GDPO by the printed reward", _reward()),
    _training("multisearch-grpo", "GRPO by the same reward", {**_reward(), "learning": {"name": "grpo"}}),
    _training("multisearch-unconditional", "the bonuses count whatever the answer", _reward({"condition": "none"})),
    _training("multisearch-turn", "the bonuses are taken turn by turn", _reward({"level": "turn"})),
    _training("multisearch-em", "EM in the place of F1", _reward({"answer": "em"})),
    _training("multisearch-no-query", "without the bonus for queries", _reward(weights={"query": 0.0})),
    _training("multisearch-no-merge", "without the bonus for merges", _reward(weights={"merge": 0.0})),
    _training(
        "multisearch-single-hop",
        "trained on single look-ups and choices alone",
        _reward(),
        mix={"chain1": 0.7, "choice": 0.3},
    ),
    _training(
        "multisearch-multi-hop",
        "trained on chains, comparisons and intersections alone",
        _reward(),
        mix={"chain2": 0.4, "chain3": 0.25, "comparison": 0.2, "intersection": 0.15},
    ),
)

_ARMS: Final = (
    _arm("three-queries", "up to three queries a search, three passages each, BM25"),
    _arm("two-queries", "the search ends behind the second query", queries=2),
    _arm("one-query", "the search ends behind the first query", queries=1),
    *(
        _arm(f"top-{k}", f"{k} passages a query", protocol_changes={"passages": k})
        for k in (1, 2, 4, 5)
    ),
    _arm("dense", "the world's passages ranked by MiniLM's vectors", dense=True),
)  # fmt: skip


def _direction(
    name: str, claim: str, figures: str, place: str, expected: tuple[Expected, ...], cannot: str
) -> Direction:
    return Direction(
        name=f"multisearch.{name}",
        paper="multisearch",
        claim=claim,
        figures=figures,
        place=place,
        expected=expected,
        cannot=cannot,
    )


_DIRECTIONS: Final = (
    _direction(
        "gdpo",
        "GDPO is better than GRPO with the same rewards.",
        "mean EM, 3B-Base .422 / .403, 3B-Instruct .416 / .384, 7B-Base .445 / .403, 7B-Instruct .422 / .400",
        "table 4",
        sides(FULL, "multisearch-grpo"),
        "What a few dozen steps do to a policy that was taught the format says little of 200 steps from a base model.",
    ),
    _direction(
        "conditional",
        "Bonuses that count only where the answer is right are better than unconditional ones.",
        ".416 / .364",
        "table 7",
        sides(FULL, "multisearch-unconditional"),
        "The start asks three queries by itself, so an unconditional bonus has little to distort within so few steps.",
    ),
    _direction(
        "rollout-level",
        "Rewards of the whole rollout are better than rewards turn by turn.",
        ".416 / .384",
        "table 7",
        sides(FULL, "multisearch-turn"),
        "Rollouts here have one to four turns; the two rewards differ in few of them.",
    ),
    _direction(
        "f1",
        "F1 as the answer's reward is better than EM.",
        ".416 / .403",
        "table 7",
        sides(FULL, "multisearch-em"),
        "Answers of the little world are one or two names or a year, where F1 and EM hardly differ.",
    ),
    _direction(
        "bonuses",
        "The bonus for queries and the bonus for merges both help.",
        "full above each variant without (3B-Instruct; prose)",
        "table 2",
        (*sides(FULL, "multisearch-no-query"), *sides(FULL, "multisearch-no-merge")),
        "The paper takes the bonuses away one behind the other, this one at a time; its variant without merge blocks "
        "would need another start.",
    ),
    _direction(
        "both-kinds",
        "Training on single-hop and multi-hop questions is better than training on either alone.",
        "best mean of the seven sets with both (prose)",
        "table 6",
        (*sides(FULL, "multisearch-single-hop"), *sides(FULL, "multisearch-multi-hop")),
        "Both kinds come from one world with one wording; the paper's are two data sets.",
    ),
    _direction(
        "several-queries",
        "Several queries a search are better than one.",
        "full above single-query retrieval (prose)",
        "table 2",
        sides("three-queries", "one-query"),
        "One policy that was trained with three is cut short behind the first; the paper trains the variant.",
    ),
    _direction(
        "three-queries",
        "Three queries a search are better than one and than two.",
        "the peak of the curve is at 3",
        "figure 5",
        (*sides("three-queries", "one-query"), *sides("three-queries", "two-queries")),
        "More than three cannot be tested: the policy never writes them. The oracle that taught it asks at most three.",
    ),
    _direction(
        "depth-up-to-three",
        "More passages a query help up to three.",
        "the curve rises until k = 3",
        "figure 6",
        (*sides("top-2", "top-1"), *sides("three-queries", "top-2", margin=0.02)),
        "The policy was trained with three, which favours three.",
    ),
    _direction(
        "depth-from-four",
        "From four passages a query on, it gets worse.",
        "the curve falls from k = 4",
        "figure 6",
        (*sides("three-queries", "top-4", margin=0.02), *sides("three-queries", "top-5", margin=0.02)),
        "The policy was trained with three, which favours three; contexts of five are longer than any it has seen.",
    ),
    _direction(
        "dense",
        "Dense retrieval is better than BM25.",
        "E5 above BM25 (prose)",
        "table 9",
        sides("dense", "three-queries"),
        "Names of the little world are invented, so an encoder has never seen them; queries were learned for BM25.",
    ),
    _direction(
        "signal",
        "The share of useful words rises from what one query finds over what a round shows to what a merge says.",
        "merge above information above single query",
        "figure 3",
        (
            Expected(
                first=Side(arm="three-queries", metric="snr_merge"),
                second=Side(arm="three-queries", metric="snr_information"),
            ),
            Expected(
                first=Side(arm="three-queries", metric="snr_information"),
                second=Side(arm="three-queries", metric="snr_query"),
            ),
        ),
        "Useful is judged by gold passages and answers here, by a language model there. A round shows a passage once "
        "that several queries found, and what several find is mostly the gold, so a round can be below a query.",
    ),
    _direction(
        "fewer-rounds",
        "Several queries a search need fewer rounds than one.",
        "fewer rounds (prose)",
        "figure 3",
        sides("one-query", "three-queries", metric="rounds", margin=0.1),
        "The policy that is cut short was not trained so.",
    ),
)

MULTISEARCH: Final = Paper(
    name="multisearch",
    title="MultiSearch (2605.13534)",
    trainings=_TRAININGS,
    arms=_ARMS,
    directions=_DIRECTIONS,
)
