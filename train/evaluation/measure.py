"""Every figure of one question, from its trace, or from the answer alone where an agent shows no trace.

None says that a figure does not apply: a mean is over those questions that have it. `METRICS` says what each means.
"""

from collections.abc import Sequence

from agent.sources.questions import GoldQuestion
from agent.trace import Answered, Gathered, Planned, PlanRejected, Searched, SearchFailed, Skipped, Trace
from train.evaluation.abstention import abstains
from train.evaluation.answer import AgentAnswer, Citation
from train.evaluation.catalogue import BUDGETS, METRICS, Metric
from train.evaluation.choices import SetScores, chosen, in_words, right_options, set_f1, several_right
from train.evaluation.gold import GoldBook, NamedText, gold_among, gold_name, gold_of, in_corpus
from train.evaluation.metrics import cover, cover_anywhere, exact_match, f1, f1_hotpotqa
from train.evaluation.normalisations import DEFAULT, NORMALISATIONS, none
from train.evaluation.snr import distinctive_answers, snr_of
from train.evaluation.support import claims_of, support_of

__all__ = ["METRICS", "GoldBook", "Metric", "measure", "measure_answer", "measure_reply"]

Figures = dict[str, float | None]


def measure(question: GoldQuestion, trace: Trace, *, book: GoldBook | None = None) -> Figures:
    """Every figure of a rollout.

    Args:
        question: with its gold.
        trace: of the rollout.
        book: what the searched corpus has of the gold passages; without it nothing is said of coverage, and passages
            are known by their ids only.
    """
    return (
        _words(question, trace.answer or "", [f"{p.title}\n{p.text}" for p in trace.passages])
        | _searching(question, trace, book)
        | snr_of(question, trace, book)
        | _evidence(question, trace, book)
        | _ending(trace)
        | _cost(trace)
    )


def measure_answer(
    question: GoldQuestion, text: str, citations: Sequence[Citation] = (), *, book: GoldBook | None = None
) -> Figures:
    """The figures that an answer and what it cites allow."""
    return (
        _words(question, text, [c.text for c in citations])
        | _citations(question, citations, book)
        | _coverage(question, book)
    )


def measure_reply(question: GoldQuestion, answer: AgentAnswer, *, book: GoldBook | None = None) -> Figures:
    """The figures of an agent without a trace: of its answer, and what it reports of its cost."""
    return measure_answer(question, answer.text, answer.citations, book=book) | {
        "searches": answer.searches,
        "prompt_tokens": answer.prompt_tokens,
        "policy_tokens": answer.completion_tokens,
        "seconds": answer.seconds,
        "first_token": answer.first_token,
        "usd": answer.usd,
    }


def _words(question: GoldQuestion, text: str, read: Sequence[str]) -> Figures:
    """What the text of the answer says, and whether it is in what was read."""
    empty = not any(c.isalnum() for c in text)
    unanswerable = question.unanswerable or not question.answers
    said = in_words(text, question.options)
    gave_up = not empty and abstains(text) and (unanswerable or not exact_match(said, question.answers))
    figures: Figures = {
        "empty": float(empty),
        "abstained": float(gave_up),
        "abstained_rightly": float(gave_up) if unanswerable else None,
        "abstained_wrongly": None if unanswerable else float(gave_up),
        "abstention_precision": float(unanswerable) if gave_up else None,
        "judged": None,
    }
    several = several_right(text, question.answers, question.options)
    if unanswerable:
        figures |= _unanswered(float(gave_up))
    else:
        figures |= _of_set(several) if several else _scores(said, question.answers)
    figures |= _choice(question, text)
    speaks = bool(distinctive_answers(question)) and not empty and not gave_up and bool(any(read))
    figures["answer_grounded"] = float(any(cover(part, [said]) for part in read)) if speaks else None
    return figures


def _scores(said: str, golds: Sequence[str]) -> Figures:
    figures: Figures = {"f1_hotpotqa": f1_hotpotqa(said, golds), "cover_anywhere": float(cover_anywhere(said, golds))}
    for name, by in NORMALISATIONS.items():
        end = "" if name == DEFAULT else f"_{name}"
        figures[f"em{end}"] = float(exact_match(said, golds, by=by))
        figures[f"f1{end}"] = f1(said, golds, by=by)
        figures[f"cover{end}"] = float(cover(said, golds, by=by))
    return figures


def _unanswered(right: float) -> Figures:
    """Where no answer exists, every score asks only whether the agent says so (SQuAD 2.0)."""
    return dict.fromkeys(_scores("", ()), right)


def _of_set(scores: SetScores) -> Figures:
    """Where several options are right, one of them is not the whole answer; they are compared as sets, not as words."""
    by_kind = {"em": scores.exact, "f1": scores.f1, "cover": scores.cover}
    return {name: by_kind[name.partition("_")[0]] for name in _scores("", ())}


def _choice(question: GoldQuestion, text: str) -> Figures:
    gold = right_options(question.answers, question.options)
    if not gold:
        return {"choice": None, "choice_f1": None}
    named = chosen(text, question.options)
    return {"choice": float(named == gold), "choice_f1": set_f1(named, gold)}


def _searching(question: GoldQuestion, trace: Trace, book: GoldBook | None) -> Figures:
    steps = trace.steps
    found = [step for step in steps if isinstance(step, Searched)]
    gold = gold_of(question, book)
    observed = len(gold_among(question, trace.passages, book))
    retrieved = len(gold_among(question, (p for step in found for p in step.passages), book))
    return {
        "searches": trace.usage.searches,
        "rounds": trace.usage.rounds,
        "failed_searches": sum(isinstance(step, SearchFailed) for step in steps),
        "duplicate_searches": _repeated(trace),
        "empty_searches": sum(not step.passages for step in found),
        "skipped_searches": sum(isinstance(step, Skipped) for step in steps),
        "rejected_plans": sum(isinstance(step, PlanRejected) for step in steps),
        "passages": sum(len(step.passages) for step in steps if isinstance(step, Gathered)),
        "gold_found": observed / len(gold) if gold else None,
        "all_gold": float(observed == len(gold)) if gold else None,
        "gold_retrieved": retrieved / len(gold) if gold else None,
    } | _coverage(question, book)


def _repeated(trace: Trace) -> int:
    """Queries that ran although the same had run before: the same source, words and filters."""
    ran = {(s.round, s.node) for s in trace.steps if isinstance(s, Searched | SearchFailed)}
    queries = [
        (node.source, none(node.query).casefold(), tuple(sorted((f.name, f.value) for f in node.filters)))
        for step in trace.steps
        if isinstance(step, Planned)
        for node in step.plan.nodes
        if (step.round, node.id) in ran
    ]
    return len(queries) - len(set(queries))


def _coverage(question: GoldQuestion, book: GoldBook | None) -> Figures:
    return {"gold_in_corpus": in_corpus(question, book) if book else None}


def _evidence(question: GoldQuestion, trace: Trace, book: GoldBook | None) -> Figures:
    claims = claims_of(trace)
    observed = {passage.number: passage for passage in trace.passages}
    numbers = [number for claim in claims for number in claim.cites]
    cited = [observed[number] for number in dict.fromkeys(numbers) if number in observed]

    def part(*kinds: str) -> float | None:
        return sum(support_of(claim, observed=observed) in kinds for claim in claims) / len(claims) if claims else None

    return {
        "claims": len(claims),
        "citations_valid": sum(number in observed for number in numbers) / len(numbers) if numbers else None,
        "evidence_support": part("verbatim", "close"),
        "evidence_verbatim": part("verbatim"),
        "evidence_uncited": part("uncited"),
    } | _citations(question, cited, book)


def _citations(question: GoldQuestion, cited: Sequence[NamedText], book: GoldBook | None) -> Figures:
    """How much of what is cited is gold, and how much of the gold is cited."""
    different = {_key(one): one for one in cited}.values()
    gold = gold_of(question, book)
    right = [name for one in different if (name := gold_name(question, one, book))]
    return {
        "citations": len(different),
        "citation_precision": len(right) / len(different) if gold and different else None,
        "citation_recall": len(set(right)) / len(gold) if gold else None,
    }


def _key(named: NamedText) -> tuple[str, str]:
    return (named.id, "") if named.id else (named.url, named.title)


def _ending(trace: Trace) -> Figures:
    stopped = trace.stopped
    reason = stopped.reason if stopped else "interrupted"
    spoken = any(isinstance(step, Answered) and step.by == "loop" for step in trace.steps)
    figures: Figures = {
        "answer_closed": None if spoken else float(reason == "answered"),
        "forced": float(reason == "forced"),
        "bad_format": float(reason == "bad_format"),
    }
    ended = stopped.budget if stopped and reason == "forced" else None
    return figures | {f"forced_{budget}": float(ended == budget) for budget in BUDGETS}


def _cost(trace: Trace) -> Figures:
    usage, timings = trace.usage, trace.timings
    return {
        "prompt_tokens": usage.prompt_tokens,
        "policy_tokens": usage.policy_tokens,
        "answer_tokens": usage.answer_tokens,
        "environment_tokens": usage.environment_tokens,
        "seconds": timings.total,
        "seconds_policy": timings.policy,
        "seconds_search": timings.search,
        "first_token": timings.first_token,
        "usd": usage.usd,
        "credits": usage.credits,
    }
