"""What every figure of one question means: its name, its unit, which way is better, its definition in a sentence."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from agent.trace import BudgetName

Better = Literal["higher", "lower", "none"]
Unit = Literal["share", "count", "words", "tokens", "seconds", "usd", "credits"]
Group = Literal["answer", "abstention", "search", "signal", "evidence", "ending", "cost"]

BUDGETS: Final[tuple[BudgetName, ...]] = get_args(BudgetName)


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure. A share of one question is 0 to 1; over questions the mean is taken of those that have it."""

    label: str
    unit: Unit
    better: Better
    definition: str
    group: Group

    @property
    def is_share(self) -> bool:
        return self.unit == "share"


_UNDER: Final = {
    "triviaqa": ("TriviaQA", "TriviaQA's normalisation: as SQuAD's, but punctuation becomes spaces"),
    "unicode": ("Unicode", "the normalisation for any script: case, accents and punctuation of every script folded"),
    "none": ("to the letter", "no normalisation but white space"),
}


def _answer() -> Iterator[tuple[str, Metric]]:
    def add(name: str, label: str, definition: str) -> tuple[str, Metric]:
        return name, Metric(label, "share", "higher", definition, "answer")

    yield add(
        "em",
        "EM",
        "Exact match: the answer equals a gold answer after SQuAD's normalisation (lower case, no punctuation, no"
        " articles). Where no answer exists: the agent says so. Of a choice with several right options: as Choice.",
    )
    yield add(
        "f1",
        "F1",
        "F1 over words after SQuAD's normalisation, of the gold answer that fits best. Where no answer exists: as EM."
        " Of a choice with several right options: as Choice F1.",
    )
    yield add(
        "cover",
        "Cover",
        "A gold answer is in the answer as whole words, after SQuAD's normalisation. Where none exists: as EM. Of a"
        " choice with several right options: all of them are named.",
    )
    for name, (label, said) in _UNDER.items():
        yield add(f"em_{name}", f"EM, {label}", f"EM under {said}.")
        yield add(f"f1_{name}", f"F1, {label}", f"F1 under {said}.")
        yield add(f"cover_{name}", f"Cover, {label}", f"Cover under {said}.")
    yield add(
        "f1_hotpotqa",
        "F1, HotpotQA",
        "F1 with the rule of HotpotQA and 2WikiMultiHopQA: if one side is yes, no or noanswer, only equality counts.",
    )
    yield add(
        "cover_anywhere",
        "Cover, characters",
        'A gold answer is in the answer as characters, as several papers count it: "no" is found in "nothing".',
    )
    yield add("choice", "Choice", "Multiple choice: exactly the right options are named, by letter or in words.")
    yield add("choice_f1", "Choice F1", "Multiple choice: F1 between the named and the right options.")
    yield add("judged", "Judge", "A language model says that the answer means the same as a gold answer.")
    yield add("answer_grounded", "Grounded", "The answer is, as whole words, in a passage that was shown or cited.")


def _abstention() -> Iterator[tuple[str, Metric]]:
    group: Group = "abstention"
    yield "empty", Metric("No answer", "share", "lower", "The answer holds no letter and no digit.", group)
    yield (
        "abstained",
        Metric(
            "Abstained", "share", "none", "The answer says that it does not know (see the list of patterns).", group
        ),
    )
    yield (
        "abstained_rightly",
        Metric("Abstained rightly", "share", "higher", "Of questions without an answer: the agent says so.", group),
    )
    yield (
        "abstained_wrongly",
        Metric(
            "Abstained wrongly", "share", "lower", "Of questions with an answer: the agent says it has none.", group
        ),
    )
    yield (
        "abstention_precision",
        Metric("Abstention precision", "share", "higher", "Of abstentions: the question had no answer.", group),
    )


def _search() -> Iterator[tuple[str, Metric]]:
    group: Group = "search"
    counts: dict[str, tuple[str, Better, str]] = {
        "searches": ("Searches", "lower", "Queries that were sent to a source."),
        "rounds": ("Rounds", "lower", "Rounds of searching."),
        "failed_searches": ("Failed searches", "lower", "Searches that a source failed, after every fallback."),
        "duplicate_searches": (
            "Repeated searches",
            "lower",
            "Searches whose source, words and filters are those of an earlier one.",
        ),
        "empty_searches": ("Empty searches", "lower", "Searches that found nothing."),
        "skipped_searches": ("Skipped searches", "lower", "Planned searches that did not run."),
        "rejected_plans": ("Rejected plans", "lower", "Plans that could not run and were sent back."),
        "passages": ("Passages", "none", "Passages that were shown."),
    }
    for name, (label, better, definition) in counts.items():
        yield name, Metric(label, "count", better, definition, group)
    shares = {
        "gold_found": ("Gold shown", "Of the gold passages: shown to the policy."),
        "all_gold": ("All gold shown", "Every gold passage was shown."),
        "gold_retrieved": ("Gold retrieved", "Of the gold passages: found by a search, shown or not."),
        "gold_in_corpus": ("Gold in corpus", "Of the gold passages: the searched corpus has them at all."),
    }
    for name, (label, definition) in shares.items():
        yield name, Metric(label, "share", "higher", definition, group)


def _signal() -> Iterator[tuple[str, Metric]]:
    signal = "a gold passage, or one that holds a gold answer"
    pairs = {
        "snr_query": ("SNR of queries", f"Of the words that one query found: in {signal}; mean over queries."),
        "snr_information": ("SNR of information", f"Of the words that a round showed: in {signal}; mean over rounds."),
        "snr_merge": (
            "SNR of merges",
            "Of the words of a merge or reflect block: in sentences that hold a gold answer or stand mostly in a gold"
            " passage; mean over blocks.",
        ),
        "snr_information_judged": (
            "SNR of information, judged",
            "Of the words that were shown: in sentences that a language model finds helpful for the answer.",
        ),
        "snr_merge_judged": (
            "SNR of merges, judged",
            "Of the words of merge and reflect blocks: in sentences that a language model finds helpful.",
        ),
    }
    for name, (label, definition) in pairs.items():
        yield name, Metric(label, "share", "higher", definition, "signal")


def _evidence() -> Iterator[tuple[str, Metric]]:
    group: Group = "evidence"
    yield (
        "claims",
        Metric("Claims", "count", "none", "Claims in the evidence block, or that a last merge cites.", group),
    )
    yield "citations", Metric("Citations", "count", "none", "Different passages that are cited.", group)
    shares: dict[str, tuple[str, Better, str]] = {
        "citation_precision": ("Citation precision", "higher", "Of the cited passages: gold."),
        "citation_recall": ("Citation recall", "higher", "Of the gold passages: cited."),
        "citations_valid": ("Valid citations", "higher", "Of the numbers cited: those of a passage that was shown."),
        "evidence_support": (
            "Supported claims",
            "higher",
            "Of the claims: verbatim or close in a passage that they cite (an estimate by words).",
        ),
        "evidence_verbatim": ("Verbatim claims", "none", "Of the claims: word for word in a passage that they cite."),
        "evidence_uncited": ("Uncited claims", "lower", "Of the claims: without a passage that was shown."),
    }
    for name, (label, better, definition) in shares.items():
        yield name, Metric(label, "share", better, definition, group)


def _ending() -> Iterator[tuple[str, Metric]]:
    group: Group = "ending"
    yield (
        "answer_closed",
        Metric("Answer closed", "share", "higher", "The policy wrote and closed its answer by itself.", group),
    )
    yield "forced", Metric("Forced", "share", "lower", "A budget ended and the answer was forced.", group)
    for budget in BUDGETS:
        what = (
            "the user requested the answer" if budget == "user" else f"the budget of {budget.replace('_', ' ')} ended"
        )
        yield (
            f"forced_{budget}",
            Metric(f"Forced: {budget.replace('_', ' ')}", "share", "lower", f"Forced: {what}.", group),
        )
    yield "bad_format", Metric("Bad format", "share", "lower", "The policy's text ended in no answer.", group)


def _cost() -> Iterator[tuple[str, Metric]]:
    table: dict[str, tuple[str, Unit, str]] = {
        "prompt_tokens": ("Prompt tokens", "tokens", "Tokens of the prompt."),
        "policy_tokens": ("Policy tokens", "tokens", "Tokens that the model sampled."),
        "answer_tokens": ("Answer tokens", "tokens", "Sampled tokens that are the answer."),
        "environment_tokens": ("Environment tokens", "tokens", "Tokens of passages and notices."),
        "seconds": ("Seconds", "seconds", "Wall time of the whole question."),
        "seconds_policy": ("Seconds of the model", "seconds", "Wall time in the model."),
        "seconds_search": ("Seconds of searching", "seconds", "Wall time in the sources."),
        "first_token": ("First token", "seconds", "Seconds to the first token."),
        "usd": (
            "Cost",
            "usd",
            "US dollars: as reported, or what the paid searches cost by the prices in the settings.",
        ),
        "credits": ("Credits", "credits", "Credits of paid sources."),
    }
    for name, (label, unit, definition) in table.items():
        yield name, Metric(label, unit, "lower", definition, "cost")


METRICS: Final[Mapping[str, Metric]] = dict(
    pair for part in (_answer, _abstention, _search, _signal, _evidence, _ending, _cost) for pair in part()
)
"""Every figure by its name, in the order of a report."""
