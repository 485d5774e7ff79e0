"""How an answer is scored against a task's gold, for every reward in the same way. Words are those of SQuAD."""

from collections.abc import Sequence
from typing import Literal

from train.evaluation.abstention import abstains
from train.evaluation.choices import chosen, in_words, right_options, set_f1, several_right
from train.evaluation.metrics import cover, exact_match, f1
from train.evaluation.normalisations import squad
from train.rewards.task import Task

Metric = Literal["f1", "em", "cover", "mean"]
"""`mean` is that of F1 and EM. With F1 alone, naming both of two candidates (2/3) pays more than choosing one (1/2 on
average); with the mean it does not (1/3)."""
ChoiceMetric = Literal["f1", "exact"]


def score(answer: str | None, task: Task, metric: Metric) -> float:
    """From 0 to 1, of the gold answer that fits best; no answer is 0.

    Where nothing can be answered, 1 for saying so. A letter stands for its option. Of a choice with several right
    options, all must be named.
    """
    if answer is None:
        return 0.0
    if task.unanswerable:
        return float(abstains(answer))
    if several := several_right(answer, task.answers, task.options):
        by_name = {"f1": several.f1, "em": several.exact, "cover": several.cover}
        return (several.f1 + several.exact) / 2 if metric == "mean" else by_name[metric]
    said = in_words(answer, task.options)
    match metric:
        case "f1":
            return f1(said, task.answers)
        case "em":
            return float(exact_match(said, task.answers))
        case "cover":
            return float(cover(said, task.answers))
        case "mean":
            return (f1(said, task.answers) + exact_match(said, task.answers)) / 2


def right(answer: str | None, task: Task) -> bool:
    """Exactly right."""
    return score(answer, task, "em") == 1


def choice_score(answer: str | None, task: Task, metric: ChoiceMetric) -> float | None:
    """F1 between the named options and the right ones, or whether they are the same; None where it is no choice."""
    gold = right_options(task.answers, task.options)
    if not gold:
        return None
    named = chosen(answer or "", task.options)
    return set_f1(named, gold) if metric == "f1" else float(named == gold)


def by_length(answer: str | None, task: Task, *, times: float) -> float:
    """DynaSearcher's r_ans (its equation 2): F1 for a long answer, cover for one that is short enough.

    Long is `times` as many words as the gold answer, or more. Of several gold answers, the best.
    """
    if answer is None or task.unanswerable or several_right(answer, task.answers, task.options):
        return score(answer, task, "f1")
    said = in_words(answer, task.options)
    return max((_by_length(said, gold, times) for gold in task.answers), default=0.0)


def _by_length(said: str, gold: str, times: float) -> float:
    long = len(squad(said).split()) >= times * len(squad(gold).split())
    return f1(said, [gold]) if long else float(cover(said, [gold]))


def holds_answer(text: str, answers: Sequence[str]) -> bool:
    """Whether a gold answer is in a text as whole words."""
    return cover(text, answers)
